package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"serpcrypt/volume"
	"serpcrypt/volume/luks2"
)

// dumpLUKS2 writes what cryptsetup luksDump prints.
func dumpLUKS2(b *strings.Builder, h *luks2.Header) {
	line := func(format string, a ...any) { fmt.Fprintf(b, format+"\n", a...) }
	line("LUKS header information")
	line("Version:       \t%d", luks2.Version)
	line("Epoch:         \t%d", h.SeqID)
	line("Metadata area: \t%d [bytes]", h.Size)
	line("Keyslots area: \t%d [bytes]", h.Config.KeyslotsSize)
	line("UUID:          \t%s", printable(h.UUID))
	line("Label:         \t%s", printableOr(h.Label, "(no label)"))
	line("Subsystem:     \t%s", printableOr(h.Subsystem, "(no subsystem)"))
	line("Flags:       \t%s", words(h.Config.Flags, "(no flags)"))
	if needed := h.Config.Requirements.Mandatory; len(needed) > 0 {
		line("Requirements:\t%s", words(needed, ""))
	}
	line("\nData segments:")
	for _, number := range slices.Sorted(maps.Keys(h.Segments)) {
		dumpSegment(line, number, h.Segments[number])
	}
	line("Keyslots:")
	for _, number := range slices.Sorted(maps.Keys(h.Keyslots)) {
		dumpKeyslot(line, number, h)
	}
	line("Tokens:")
	for _, number := range slices.Sorted(maps.Keys(h.Tokens)) {
		dumpToken(line, number, h.Tokens[number])
	}
	line("Digests:")
	for _, number := range slices.Sorted(maps.Keys(h.Digests)) {
		dumpDigest(line, number, h.Digests[number])
	}
}

// lineWriter writes a line to the dump.
type lineWriter func(format string, a ...any)

func dumpSegment(line lineWriter, number int, s *luks2.Segment) {
	line("  %d: %s", number, printable(s.Type))
	line("\toffset: %d [bytes]", s.Offset)
	if s.Size == luks2.DynamicSize {
		line("\tlength: (whole device)")
	} else {
		line("\tlength: %d [bytes]", s.Size)
	}
	if s.Type == luks2.SegmentCrypt {
		line("\tcipher: %s", printable(s.Encryption))
		line("\tsector: %d [bytes]", s.SectorSize)
	}
	if name := integrityName(s); name != "" {
		line("\tintegrity: %s", printable(name))
	}
	if len(s.Flags) > 0 {
		line("\tflags : %s", printable(strings.Join(s.Flags, ", ")))
	}
	line("")
}

// integrityName returns what authenticates the segment, or "".
func integrityName(s *luks2.Segment) string {
	var integrity struct {
		Type string `json:"type"`
	}
	// It is for dm-integrity, and shown as far as it is understood.
	_ = json.Unmarshal(s.Integrity, &integrity)
	return integrity.Type
}

func dumpKeyslot(line lineWriter, number int, h *luks2.Header) {
	k := h.Keyslots[number]
	var digests []int
	for _, digest := range slices.Sorted(maps.Keys(h.Digests)) {
		if slices.Contains(h.Digests[digest].Keyslots, number) {
			digests = append(digests, digest)
		}
	}
	unbound := ""
	if len(digests) == 0 || h.IsUnbound(number) {
		unbound = " (unbound)"
	}
	line("  %d: %s%s", number, printable(k.Type), unbound)
	line("\tKey:        %d bits", k.KeySize*8)
	line("\tPriority:   %s", priorityWord(k.Priority))
	if k.Type == luks2.KeyslotLUKS2 {
		line("\tCipher:     %s", printable(k.Area.Encryption))
		line("\tCipher key: %d bits", k.Area.KeySize*8)
		dumpKDF(line, k.KDF)
		line("\tAF stripes: %d", k.AF.Stripes)
		line("\tAF hash:    %s", printable(k.AF.Hash))
	}
	line("\tArea offset:%d [bytes]", k.Area.Offset)
	line("\tArea length:%d [bytes]", k.Area.Size)
	for _, digest := range digests {
		line("\tDigest ID:  %d", digest)
	}
}

func priorityWord(priority *int) string {
	switch {
	case priority == nil || *priority == luks2.PriorityNormal:
		return "normal"
	case *priority == luks2.PriorityIgnore:
		return "ignored"
	case *priority == luks2.PriorityPrefer:
		return "preferred"
	}
	return "invalid"
}

func dumpKDF(line lineWriter, k luks2.KDF) {
	line("\tPBKDF:      %s", printable(k.Type))
	if k.Type == luks2.KDFPBKDF2 {
		line("\tHash:       %s", printable(k.Hash))
		line("\tIterations: %d", k.Iterations)
	} else {
		line("\tTime cost:  %d", k.Time)
		line("\tMemory:     %d", k.Memory)
		line("\tThreads:    %d", k.CPUs)
	}
	line("\tSalt:       %s", hexRows(k.Salt))
}

func dumpToken(line lineWriter, number int, t *luks2.Token) {
	line("  %d: %s", number, printable(t.Type))
	if description := keyDescription(t); description != "" {
		line("\tKey description: %s", printable(description))
	}
	for _, slot := range t.Keyslots {
		line("\tKeyslot:    %d", slot)
	}
}

// keyDescription returns what the kernel's keyring calls the passphrase that a
// token stands for, or "".
func keyDescription(t *luks2.Token) string {
	if t.Type != luks2.TokenKeyring {
		return ""
	}
	var description string
	for _, member := range t.Unknown {
		if member.Name == "key_description" {
			// As with integrity, it is shown as far as it is understood.
			_ = json.Unmarshal(member.Value, &description)
		}
	}
	return description
}

func dumpDigest(line lineWriter, number int, d *luks2.Digest) {
	line("  %d: %s", number, printable(d.Type))
	if d.Type != luks2.DigestPBKDF2 {
		return
	}
	line("\tHash:       %s", printable(d.Hash))
	line("\tIterations: %d", d.Iterations)
	line("\tSalt:       %s", hexRows(d.Salt))
	line("\tDigest:     %s", hexRows(d.Digest))
}

// hexRows writes 16 bytes in a line.
func hexRows(b []byte) string {
	var rows []string
	for row := range slices.Chunk(b, 16) {
		rows = append(rows, spacedHex(row))
	}
	return strings.Join(rows, "\n\t            ")
}

// words writes each word with a space behind it, or none if there is no word.
func words(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return printable(strings.Join(list, " ")) + " "
}

func printableOr(text, none string) string {
	if text == "" {
		return none
	}
	return printable(text)
}

// luks2Document is what only headers of LUKS2 have. Metadata is the JSON text
// as it stands in the header, with what this program knows nothing of.
type luks2Document struct {
	HeaderSize   int64           `json:"header_size"` // of one copy
	SequenceID   uint64          `json:"sequence_id"`
	ChecksumHash string          `json:"checksum_hash"`
	Metadata     json.RawMessage `json:"metadata"`
}

func newLUKS2Document(h *volume.Header) (*luks2Document, error) {
	if h.LUKS2 == nil {
		return nil, nil
	}
	whole, err := h.LUKS2.MarshalCopy(0, [luks2.SaltSize]byte{})
	if err != nil {
		return nil, err
	}
	metadata, _, _ := bytes.Cut(whole[luks2.HeaderSize:], []byte{0})
	return &luks2Document{h.LUKS2.Size, h.LUKS2.SeqID, h.LUKS2.ChecksumHash, metadata}, nil
}
