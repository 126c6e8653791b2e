package luks2

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"serpcrypt/cipher/modes"
	"serpcrypt/internal/hashes"
	"serpcrypt/kdf"
	"serpcrypt/volume/keyslot"
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

// SlotFault returns the first fault that keeps a key slot from being opened, as a
// *luks.FieldError. The header lies in a store of headerSize bytes.
func (h *Header) SlotFault(slot int, headerSize int64) error {
	if h.Keyslots[slot] == nil {
		return h.faultAt(keyslotPath(slot), "there is no such key slot")
	}
	v := validator{h: h, headerSize: headerSize, dataSize: luks.UnknownSize}
	v.checkKeyslot(slot)
	if len(v.faults) > 0 {
		return v.faults[0]
	}
	return nil
}

// Payload returns where the data begin in their store, of dataSize bytes, and how
// long they are, in bytes: whole sectors, at least one. That store is another than
// the header's if the header is detached. The error is a *luks.FieldError.
func (h *Header) Payload(dataSize int64, detached bool) (offset, size int64, err error) {
	s := h.Segments[0]
	switch {
	case s == nil || !isSectorSize(s.SectorSize):
		return 0, 0, h.faultAt("segments.0", "there is no segment 0 that could be used")
	case s.Offset == 0 && !detached:
		return 0, 0, h.faultAt("segments.0.offset", "0: this is a detached header, whose data are in another file")
	case dataSize-s.Offset < int64(s.SectorSize):
		return 0, 0, h.faultAt("segments.0.offset", "the data begin at byte %d, their store ends at byte %d: there is no sector", s.Offset, dataSize)
	}
	if fault := h.endFault(s, dataSize); fault != nil {
		return 0, 0, fault
	}
	size = s.Size
	if size == DynamicSize {
		size = (dataSize - s.Offset) / SectorSize * SectorSize
	}
	return s.Offset, size, nil
}

// endFault says what is wrong with where the data end.
func (h *Header) endFault(s *Segment, dataSize int64) *luks.FieldError {
	const field = "segments.0.size"
	if s.Size != DynamicSize {
		if s.Size > dataSize-s.Offset {
			return h.faultAt(field, "the data take %d bytes from byte %d, their store ends at byte %d", s.Size, s.Offset, dataSize)
		}
		return nil
	}
	// What is left of a sector of the store belongs to nobody.
	size := (dataSize - s.Offset) / SectorSize * SectorSize
	if size > 0 && size%int64(s.SectorSize) != 0 {
		return h.faultAt(field, "dynamic, but the %d bytes up to the store's end are no whole sectors of %d", size, s.SectorSize)
	}
	return nil
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
	if !isSectorSize(s.SectorSize) {
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
			record(path+".digest", "%d bytes (%d to %d)", n, minDigest, maxDigest)
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

func keyslotPath(slot int) string { return fmt.Sprintf("keyslots.%d", slot) }

func (v *validator) checkKeyslot(slot int) {
	k := v.h.Keyslots[slot]
	path := keyslotPath(slot)
	v.checkArea(slot)
	if k.Type != KeyslotLUKS2 {
		v.minor(path+".type", "%s, only %q is supported", excerpt(k.Type), KeyslotLUKS2)
		return
	}
	if k.Priority != nil && *k.Priority > PriorityPrefer {
		v.minor(path+".priority", "%d (%d to %d)", *k.Priority, PriorityIgnore, PriorityPrefer)
	}
	v.checkSlotDigest(slot)
	if k.AF.Type != AFLUKS1 {
		v.minor(path+".af.type", "%s, only %q is supported", excerpt(k.AF.Type), AFLUKS1)
	} else {
		if k.AF.Stripes != keyslot.Stripes {
			v.minor(path+".af.stripes", "%d, always %d", k.AF.Stripes, keyslot.Stripes)
		}
		checkHash(v.minor, path+".af.hash", k.AF.Hash)
	}
	if k.Area.Type != AreaRaw {
		v.minor(path+".area.type", "%s, only %q is supported", excerpt(k.Area.Type), AreaRaw)
	} else if spec, err := parseSpec(k.Area.Encryption); err != nil {
		v.minor(path+".area.encryption", "%s", luks.Reason(err))
	} else if err := spec.CheckKeySize(k.Area.KeySize); err != nil {
		v.minor(path+".area.key_size", "%s: %s", spec, luks.Reason(err))
	}
	v.checkKDF(path+".kdf", &k.KDF)
}

// maxKeySize bounds the keys of anything else than a cipher: more than any
// cipher's, with room for a key of authentication.
const maxKeySize = 512 // bytes

// checkSlotDigest checks which digest tells whether the key is right, and that it
// is one for the segment if so said.
func (v *validator) checkSlotDigest(slot int) {
	path := keyslotPath(slot)
	k := v.h.Keyslots[slot]
	named := v.digestsOf(func(d *Digest) []int { return d.Keyslots }, slot)
	switch {
	case len(named) == 0:
		v.minor(path, "no digest is for it: nothing tells whether its key is right")
		return
	case len(named) > 1:
		v.minor(path, "the digests %d and %d are both for it", named[0], named[1])
		return
	}
	s := v.h.Segments[0]
	if s == nil || !slices.Contains(v.h.Digests[named[0]].Segments, 0) {
		if k.KeySize < 1 || k.KeySize > maxKeySize { // a key for something else
			v.minor(path+".key_size", "%d bytes (1 to %d)", k.KeySize, maxKeySize)
		}
		return
	}
	if spec, err := modes.ParseSpec(s.Encryption); err == nil {
		if err := spec.CheckKeySize(k.KeySize); err != nil {
			v.minor(path+".key_size", "%s: %s", spec, luks.Reason(err))
		}
	}
}

// checkArea checks the place of a key slot. One that could do harm to other parts
// of the container keeps it from being used.
func (v *validator) checkArea(slot int) {
	k := v.h.Keyslots[slot]
	path := keyslotPath(slot) + ".area"
	area := &k.Area
	begin, limit := v.h.KeyslotsArea()
	switch {
	case area.Offset < begin:
		v.fatal(path+".offset", "%d lies in the header, which takes %d bytes", area.Offset, begin)
		return
	case area.Offset > limit || area.Size > limit-area.Offset:
		v.fatal(path+".offset", "%d bytes from byte %d, the keyslots area ends at byte %d", area.Size, area.Offset, limit)
		return
	case area.Offset%AreaAlignment != 0:
		v.minor(path+".offset", "%d is no multiple of %d", area.Offset, AreaAlignment)
	}
	end := area.Offset + area.Size
	if end > v.headerSize {
		v.minor(path+".size", "the area ends at byte %d, its store at byte %d", end, v.headerSize)
	}
	if k.Type == KeyslotLUKS2 && area.Size < AreaSize(k.KeySize) {
		v.minor(path+".size", "%d bytes, a key of %d bytes takes %d", area.Size, k.KeySize, AreaSize(k.KeySize))
	}
	for _, other := range slices.Sorted(maps.Keys(v.h.Keyslots)) {
		if other >= slot {
			break
		}
		a := &v.h.Keyslots[other].Area
		if a.Offset < end && area.Offset < a.Offset+a.Size {
			v.fatal(path+".offset", "the area takes the bytes %d to %d and overlaps key slot %d (%d to %d)", area.Offset, end-1, other, a.Offset, a.Offset+a.Size-1)
		}
	}
}

func (v *validator) checkKDF(path string, k *KDF) {
	if len(k.Salt) == 0 {
		v.minor(path+".salt", "empty")
	}
	switch k.Type {
	case KDFPBKDF2:
		checkHash(v.minor, path+".hash", k.Hash)
		checkPositive(v.minor, path+".iterations", k.Iterations)
	case KDFArgon2i, KDFArgon2id:
		var cost *kdf.Argon2Error
		if errors.As(k.argon2().Check(), &cost) {
			param, _, _ := strings.Cut(cost.Param, " ")
			v.minor(path+"."+param, "%s", cost.Reason)
		}
	default:
		v.minor(path+".type", "unknown function %s (known: %s, %s, %s)", excerpt(k.Type), KDFPBKDF2, KDFArgon2i, KDFArgon2id)
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
