package luks2

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"serpcrypt/cipher/modes"
	"serpcrypt/kdf"
	"serpcrypt/volume/keyslot"
	"serpcrypt/volume/luks"
)

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
		v.minor(path+".priority", "%d (allowed: %d to %d)", *k.Priority, PriorityIgnore, PriorityPrefer)
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
			v.minor(path+".key_size", "%d bytes (allowed: 1 to %d)", k.KeySize, maxKeySize)
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
