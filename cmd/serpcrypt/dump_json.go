package main

import (
	"encoding/hex"

	"serpcrypt/volume"
)

// headerDocument is what --json prints: every field of the header. Places and
// sizes are in bytes, if the name does not say bits.
type headerDocument struct {
	Container        string         `json:"container"`
	Type             string         `json:"type"`
	Version          int            `json:"version"`
	UUID             string         `json:"uuid"`
	Label            string         `json:"label,omitempty"`
	Subsystem        string         `json:"subsystem,omitempty"`
	Cipher           string         `json:"cipher"`
	Mode             string         `json:"mode"`
	Hash             string         `json:"hash"`
	KeyBits          int            `json:"key_bits"`
	SectorSize       int            `json:"sector_size"`
	PayloadOffset    int64          `json:"payload_offset"`
	Digest           string         `json:"digest"`
	DigestSalt       string         `json:"digest_salt"`
	DigestIterations int            `json:"digest_iterations"`
	KeySlots         []slotDocument `json:"key_slots"`
	LUKS2            *luks2Document `json:"luks2,omitempty"`
}

type slotDocument struct {
	Slot       int    `json:"slot"`
	State      string `json:"state"`
	Priority   string `json:"priority,omitempty"` // of LUKS2: ignore, normal, prefer
	KDF        string `json:"kdf,omitempty"`
	Hash       string `json:"hash,omitempty"`
	Iterations int    `json:"iterations"`
	argon2Document
	Salt           string   `json:"salt"`
	Cipher         string   `json:"cipher,omitempty"` // of the material
	MaterialOffset int64    `json:"material_offset"`
	MaterialSize   int64    `json:"material_size,omitempty"`
	Stripes        int      `json:"stripes"`
	StripesHash    string   `json:"stripes_hash,omitempty"`
	UnlockSeconds  *float64 `json:"unlock_seconds_estimated,omitempty"` // of a slot in use
	SingleLane     *float64 `json:"unlock_seconds_single_lane,omitempty"`
}

// argon2Document is what a derivation by Argon2 costs.
type argon2Document struct {
	Passes    int `json:"argon2_passes,omitempty"`
	MemoryKiB int `json:"argon2_memory_kib,omitempty"`
	Lanes     int `json:"argon2_lanes,omitempty"`
}

func newArgon2Document(c volume.Argon2Cost) argon2Document {
	return argon2Document{c.Time, c.MemoryKiB, c.Lanes}
}

func newHeaderDocument(path string, h *volume.Header, times map[int]unlockTimes) (*headerDocument, error) {
	luks2, err := newLUKS2Document(h)
	return &headerDocument{
		Container:        path,
		Type:             h.Type,
		Version:          h.Version,
		UUID:             h.UUID,
		Label:            h.Label,
		Subsystem:        h.Subsystem,
		Cipher:           h.Cipher,
		Mode:             h.Mode,
		Hash:             h.Hash,
		KeyBits:          h.KeyBytes * 8,
		SectorSize:       h.SectorSize,
		PayloadOffset:    h.PayloadOffset,
		Digest:           hex.EncodeToString(h.Digest),
		DigestSalt:       hex.EncodeToString(h.DigestSalt),
		DigestIterations: h.DigestIterations,
		KeySlots:         slotDocuments(h, times),
		LUKS2:            luks2,
	}, err
}

func slotDocuments(h *volume.Header, times map[int]unlockTimes) []slotDocument {
	slots := []slotDocument{}
	for i, s := range h.Slots {
		if h.LUKS2 != nil && s.State == volume.SlotDisabled {
			continue // there is nothing of it
		}
		slot := slotDocument{
			Slot:           i,
			State:          string(s.State),
			Priority:       priorityName(h, s),
			KDF:            s.KDF,
			Hash:           s.Hash,
			Iterations:     s.Iterations,
			argon2Document: newArgon2Document(s.Argon2),
			Salt:           hex.EncodeToString(s.Salt),
			Cipher:         s.Cipher,
			MaterialOffset: s.MaterialOffset,
			MaterialSize:   s.MaterialSize,
			Stripes:        s.Stripes,
			StripesHash:    s.StripesHash,
		}
		if t, ok := times[i]; ok {
			slot.UnlockSeconds, slot.SingleLane = &t.Here, &t.SingleLane
		}
		slots = append(slots, slot)
	}
	return slots
}

// priorityName is empty where slots have none.
func priorityName(h *volume.Header, s volume.Slot) string {
	if h.LUKS2 == nil {
		return ""
	}
	switch s.Priority {
	case volume.PriorityIgnore:
		return "ignore"
	case volume.PriorityPrefer:
		return "prefer"
	}
	return "normal"
}
