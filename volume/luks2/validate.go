package luks2

import (
	"fmt"
	"maps"
	"slices"

	"serpcrypt/cipher/modes"
	"serpcrypt/internal/hashes"
	"serpcrypt/volume/luks"
)

// RequirementError names what a program must know to use a container, and this
// one does not.
type RequirementError struct{ Names []string }

func (e *RequirementError) Error() string {
	return "luks2: config.requirements.mandatory: not known here: " + excerpts(e.Names)
}

// checkRequirements returns a *RequirementError if the container may only be
// used by programs that know more than this one. Its header can be read.
func (h *Header) checkRequirements() error {
	if names := h.Config.Requirements.Mandatory; len(names) > 0 {
		return &RequirementError{names}
	}
	return nil
}

// Validate returns what keeps the container from being used: a *RequirementError,
// or the first such fault as a *luks.FieldError. The sizes are those of Faults.
func (h *Header) Validate(headerSize, dataSize int64) error {
	if err := h.checkRequirements(); err != nil {
		return err
	}
	v := h.inspect(headerSize, dataSize)
	if v.firstFatal != nil {
		return v.firstFatal
	}
	return nil
}

// Faults returns all that is wrong with a header. It lies in a store of headerSize
// bytes, its data in one of dataSize, or luks.UnknownSize. A container may end where
// its data should begin, as header backups do.
func (h *Header) Faults(headerSize, dataSize int64) []*luks.FieldError {
	return h.inspect(headerSize, dataSize).faults
}

func (h *Header) inspect(headerSize, dataSize int64) *validator {
	v := &validator{h: h, headerSize: headerSize, dataSize: dataSize}
	v.checkTexts()
	v.checkConfig()
	v.checkSegments()
	v.checkDigests()
	for _, slot := range slices.Sorted(maps.Keys(h.Keyslots)) {
		v.checkKeyslot(slot)
	}
	v.checkTokens()
	return v
}

type validator struct {
	h          *Header
	headerSize int64 // of the stores, in bytes
	dataSize   int64 // or luks.UnknownSize
	faults     []*luks.FieldError
	firstFatal *luks.FieldError // or nil
}

// fatal records a fault that keeps the container from being used.
func (v *validator) fatal(path, format string, args ...any) {
	v.recordFatal(v.h.faultAt(path, format, args...))
}

func (v *validator) recordFatal(fault *luks.FieldError) {
	v.faults = append(v.faults, fault)
	if v.firstFatal == nil {
		v.firstFatal = fault
	}
}

// minor records one that does not, or only one key slot.
func (v *validator) minor(path, format string, args ...any) {
	v.faults = append(v.faults, v.h.faultAt(path, format, args...))
}

// recorder is fatal or minor.
type recorder func(path, format string, args ...any)

func (v *validator) checkTexts() {
	for _, text := range []struct {
		field  string
		offset int64
		says   string
	}{{"label", offLabel, v.h.Label}, {"subsystem", offSubsystem, v.h.Subsystem}} {
		if !isText(text.says) {
			v.minorField(text.field, text.offset, "%s is no text", excerpt(text.says))
		}
	}
	if !luks.IsUUID(v.h.UUID) {
		v.minorField("uuid", offUUID, "%s is no UUID", excerpt(v.h.UUID))
	}
}

// minorField records a fault of the binary header.
func (v *validator) minorField(field string, offset int64, format string, args ...any) {
	v.faults = append(v.faults, newFault(field, offset, format, args...))
}

func (v *validator) checkConfig() {
	c := &v.h.Config
	if want := v.h.Size - HeaderSize; c.JSONSize != want {
		v.fatal("config.json_size", "%d, but the header has %d bytes of it", c.JSONSize, want)
	}
	const field = "config.keyslots_size"
	if c.KeyslotsSize > MaxKeyslotsSize {
		v.fatal(field, "%d (at most %d)", c.KeyslotsSize, MaxKeyslotsSize)
	} else if c.KeyslotsSize%AreaAlignment != 0 {
		v.fatal(field, "%d is no multiple of %d", c.KeyslotsSize, AreaAlignment)
	}
}

func (v *validator) checkSegments() {
	if len(v.h.Segments) == 0 {
		v.fatal("segments", "there is none")
		return
	}
	for _, i := range slices.Sorted(maps.Keys(v.h.Segments)) {
		path := fmt.Sprintf("segments.%d", i)
		if i != 0 {
			v.fatal(path, "only one segment, 0, is supported")
		} else if s := v.h.Segments[0]; s.Type != SegmentCrypt {
			v.fatal(path+".type", "%s, only %q is supported", excerpt(s.Type), SegmentCrypt)
		} else {
			v.checkData(s)
		}
	}
}

// checkData checks segment 0.
func (v *validator) checkData(s *Segment) {
	const path = "segments.0"
	if s.Offset%SectorSize != 0 {
		v.fatal(path+".offset", "%d is no multiple of %d", s.Offset, SectorSize)
	} else if _, end := v.h.KeyslotsArea(); s.Offset != 0 && s.Offset < end {
		v.fatal(path+".offset", "the data begin at byte %d, the keyslots area ends at byte %d", s.Offset, end)
	} else if v.dataSize != luks.UnknownSize && s.Offset > v.dataSize {
		v.fatal(path+".offset", "the data begin at byte %d, their store ends at byte %d", s.Offset, v.dataSize)
	}
	if !modes.IsSectorSize(s.SectorSize) {
		v.fatal(path+".sector_size", "%d (one of 512, 1024, 2048, 4096)", s.SectorSize)
	} else if s.Size != DynamicSize && (s.Size <= 0 || s.Size%int64(s.SectorSize) != 0) {
		v.fatal(path+".size", "%d bytes are no whole sectors of %d", s.Size, s.SectorSize)
	} else if v.dataSize != luks.UnknownSize && s.Offset < v.dataSize {
		if fault := v.h.endFault(s, v.dataSize); fault != nil {
			v.recordFatal(fault)
		}
	}
	if _, err := parseSpec(s.Encryption); err != nil {
		v.fatal(path+".encryption", "%s", luks.Reason(err))
	}
	if s.Integrity != nil {
		v.fatal(path+".integrity", "authenticated sectors are not supported")
	}
	if len(s.Flags) > 0 {
		v.fatal(path+".flags", "%s are not known here", excerpts(s.Flags))
	}
	if len(v.digestsOf(func(d *Digest) []int { return d.Segments }, 0)) != 1 {
		v.fatal("digests", "not exactly one is for segment 0")
	}
}

// digestsOf returns the digests that name an object in the list that of gives.
func (v *validator) digestsOf(of func(*Digest) []int, object int) (named []int) {
	for _, i := range slices.Sorted(maps.Keys(v.h.Digests)) {
		if slices.Contains(of(v.h.Digests[i]), object) {
			named = append(named, i)
		}
	}
	return named
}

// parseSpec is modes.ParseSpec, without its long messages about long texts.
func parseSpec(text string) (modes.Spec, error) {
	spec, err := modes.ParseSpec(text)
	if err != nil && len(text) > mostExcerpt {
		return spec, fmt.Errorf("unknown cipher %s", excerpt(text))
	}
	return spec, err
}

const (
	// A shorter digest would let wrong keys pass. Those of containers that were
	// LUKS1 have this size, and so has SHA-1.
	minDigest = 20 // bytes
	maxDigest = 64 // bytes, as those of the longest hashes
)

func (v *validator) checkDigests() {
	for _, i := range slices.Sorted(maps.Keys(v.h.Digests)) {
		d := v.h.Digests[i]
		path := fmt.Sprintf("digests.%d", i)
		for _, slot := range d.Keyslots {
			if v.h.Keyslots[slot] == nil {
				v.fatal(path+".keyslots", "there is no key slot %d", slot)
			}
		}
		for _, segment := range d.Segments {
			if v.h.Segments[segment] == nil {
				v.fatal(path+".segments", "there is no segment %d", segment)
			}
		}
		record := recorder(v.minor)
		if slices.Contains(d.Segments, 0) {
			record = v.fatal
		}
		if d.Type != DigestPBKDF2 {
			record(path+".type", "%s, only %q is supported", excerpt(d.Type), DigestPBKDF2)
			continue
		}
		checkHash(record, path+".hash", d.Hash)
		checkPositive(record, path+".iterations", d.Iterations)
		if len(d.Salt) == 0 {
			record(path+".salt", "empty")
		}
		if n := len(d.Digest); n < minDigest || n > maxDigest {
			record(path+".digest", "%d bytes (allowed: %d to %d)", n, minDigest, maxDigest)
		}
	}
}

func checkPositive(record recorder, path string, n int) {
	if n < 1 {
		record(path, "%d", n)
	}
}

func checkHash(record recorder, path, name string) {
	if newHash, err := hashes.New(name); err != nil {
		record(path, "unknown hash %s", excerpt(name))
	} else if size := newHash().Size(); size < minDigest {
		record(path, "%s has %d bytes, %d are needed", name, size, minDigest)
	}
}

func (v *validator) checkTokens() {
	for _, i := range slices.Sorted(maps.Keys(v.h.Tokens)) {
		for _, slot := range v.h.Tokens[i].Keyslots {
			if v.h.Keyslots[slot] == nil {
				v.minor(fmt.Sprintf("tokens.%d.keyslots", i), "there is no key slot %d", slot)
			}
		}
	}
}
