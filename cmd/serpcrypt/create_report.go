package main

import (
	"fmt"

	"serpcrypt/volume"
)

// creationReport is what has been made, and the document of --json. Sizes and
// places are in bytes.
type creationReport struct {
	Container  string `json:"container"`
	HeaderFile string `json:"header,omitempty"` // if it is detached
	Type       string `json:"type"`
	UUID       string `json:"uuid"`
	Cipher     string `json:"cipher"`
	KeyBits    int    `json:"key_bits"`
	SectorSize int    `json:"sector_size"`
	Label      string `json:"label,omitempty"`
	Subsystem  string `json:"subsystem,omitempty"`
	Hash       string `json:"hash"`
	KDF        string `json:"kdf"`
	Iterations int    `json:"iterations,omitempty"`
	argon2Document
	DigestIterations int `json:"digest_iterations"`
	KeySlot          int `json:"key_slot"`
	unlockTimes
	PayloadOffset int64  `json:"payload_offset"`
	PayloadBytes  int64  `json:"payload_bytes"`
	FileSystem    string `json:"file_system,omitempty"`
	Filled        bool   `json:"filled"`

	passphrase string // how the key is derived from it, for people
}

func newCreationReport(want *creation, p volume.Params, h *volume.Header, payload int64, times unlockTimes) *creationReport {
	return &creationReport{
		Container:        want.path,
		HeaderFile:       want.header,
		Type:             h.Type,
		UUID:             h.UUID,
		Cipher:           h.Cipher + "-" + h.Mode,
		KeyBits:          h.KeyBytes * 8,
		SectorSize:       h.SectorSize,
		Label:            h.Label,
		Subsystem:        h.Subsystem,
		Hash:             h.Hash,
		KDF:              p.KDF,
		Iterations:       p.Iterations,
		argon2Document:   newArgon2Document(p.Argon2),
		DigestIterations: h.DigestIterations,
		KeySlot:          p.Slot,
		unlockTimes:      times,
		PayloadOffset:    h.PayloadOffset,
		PayloadBytes:     payload,
		FileSystem:       want.fs,
		Filled:           !want.sparse,
		passphrase:       describeKDF(keyParams(p)),
	}
}

func (r *creationReport) show(asJSON bool) error {
	if asJSON {
		return printJSON(r)
	}
	infof("Made %s", r.Container)
	if r.HeaderFile != "" {
		infof("Made %s, its header", r.HeaderFile)
	}
	row := func(name, format string, a ...any) { infof("  %-13s%s", name+":", fmt.Sprintf(format, a...)) }
	row("Format", "%s, UUID %s", r.Type, r.UUID)
	row("Cipher", "%s, %d-bit key, sectors of %d bytes", r.Cipher, r.KeyBits, r.SectorSize)
	row("Passphrase", "%s, key slot %d", r.passphrase, r.KeySlot)
	row("Unlocking", "%s", r.unlockTimes)
	row("Payload", "%s", formatExactly(r.PayloadBytes))
	if r.FileSystem != "" {
		row("File system", "%s", r.FileSystem)
	}
	if !screen.quiet {
		hintf("without its header all is lost; keep a copy elsewhere: %s", r.backupCommand())
	}
	return nil
}

// backupCommand copies the header.
func (r *creationReport) backupCommand() string {
	words := "serpcrypt header backup "
	if r.HeaderFile != "" {
		words += "--header " + shellQuote(r.HeaderFile) + " "
	}
	return words + shellQuote(r.Container) + " " + shellQuote(r.Container+".header")
}
