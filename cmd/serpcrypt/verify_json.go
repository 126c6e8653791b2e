package main

import (
	"serpcrypt/cipher/serpent"
)

// verifyDocument is what --json prints. Sizes and places are in bytes.
type verifyDocument struct {
	Container       string          `json:"container"`
	OK              bool            `json:"ok"`
	Header          *headerDocument `json:"header"`
	KeySlot         *int            `json:"key_slot"`
	Kernel          string          `json:"kernel"`
	ComparedWith    string          `json:"compared_with"`
	PayloadBytes    int64           `json:"payload_bytes"`
	FileSystem      string          `json:"file_system,omitempty"`
	FileSystemBytes int64           `json:"file_system_bytes,omitempty"`
	Checks          []checkDocument `json:"checks"`
	Fsck            *fsckDocument   `json:"fsck,omitempty"`
	CannotSee       string          `json:"cannot_see"`
}

type checkDocument struct {
	Name       string          `json:"name"`
	Result     string          `json:"result"`
	Faults     []faultDocument `json:"faults,omitempty"`
	MoreFaults int             `json:"more_faults,omitempty"`
}

type faultDocument struct {
	Field  string `json:"field"`
	Slot   *int   `json:"key_slot,omitempty"`
	Offset int64  `json:"offset"`
	Reason string `json:"reason"`
}

func newVerifyDocument(path string, f *findings) (*verifyDocument, error) {
	r := f.Report
	d := &verifyDocument{
		Container:    path,
		OK:           r.Err() == nil,
		KeySlot:      slotOrNil(r.Slot),
		Kernel:       r.Kernel.String(),
		ComparedWith: serpent.Generic.String(),
		PayloadBytes: r.Bytes,
		CannotSee:    cannotSee,
	}
	if r.Header != nil {
		var err error
		if d.Header, err = newHeaderDocument(path, r.Header, nil); err != nil {
			return nil, err
		}
	}
	if r.FileSystem != nil {
		d.FileSystem, d.FileSystemBytes = r.FileSystem.Name, r.FileSystem.Size
	}
	if f.fsck != nil {
		d.Fsck = f.fsck.document()
		d.OK = d.OK && !f.fsck.faulty
	}
	for _, check := range r.Checks {
		document := checkDocument{Name: check.Name, Result: string(check.Result), MoreFaults: check.More}
		for _, f := range check.Faults {
			document.Faults = append(document.Faults, faultDocument{f.Field, slotOrNil(f.Slot), f.Offset, f.Reason})
		}
		d.Checks = append(d.Checks, document)
	}
	return d, nil
}

func slotOrNil(slot int) *int {
	if slot < 0 {
		return nil
	}
	return &slot
}
