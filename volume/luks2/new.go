package luks2

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"serpcrypt/cipher/modes"
	"serpcrypt/volume/luks"
)

// Params are what a new header is made from. The zero value of each field but
// Spec, KeyBytes and SectorSize is its default.
type Params struct {
	Spec       string // cipher of the data, as modes.ParseSpec reads it
	KeyBytes   int
	SectorSize int // bytes: 512, 1024, 2048 or 4096

	UUID      string // a new random one
	Label     string
	Subsystem string

	Size         int64 // of a copy of the header, in bytes; MinSize
	KeyslotsSize int64 // bytes; what is left before the data, MaxKeyslotsSize at most
	DataOffset   int64 // bytes; see below, or 0 if the header is detached
	Detached     bool  // the data lie in another store than the header

	// StoreSize is that of the store of an attached header, in bytes. The data
	// begin at 16 MiB; in a store under 64 MiB, at the first multiple of 1 MiB
	// behind areas for eight key slots. 0: the store is as big as that.
	StoreSize int64
}

const (
	defaultDataOffset = 16 << 20 // bytes, as cryptsetup has it
	smallStore        = 64 << 20 // bytes; below, the default takes less
	smallSlots        = 8
	dataAlignment     = 1 << 20 // bytes, of defaults

	checksumHash = "sha256"
)

// New returns a header with one segment and without key slots and digests. The
// error is a *modes.SpecError or a *luks.ParamError.
func New(p Params) (*Header, error) {
	spec, err := modes.ParseSpec(p.Spec)
	if err != nil {
		return nil, fmt.Errorf("luks2: %w", err)
	}
	if err := spec.CheckKeySize(p.KeyBytes); err != nil {
		return nil, fmt.Errorf("luks2: %w", err)
	}
	if !isSectorSize(p.SectorSize) {
		return nil, luks.BadParam("sector size", "%d (one of 512, 1024, 2048, 4096)", p.SectorSize)
	}
	if err := CheckText("label", p.Label); err != nil {
		return nil, err
	}
	if err := CheckText("subsystem", p.Subsystem); err != nil {
		return nil, err
	}
	id, err := luks.NewUUID(p.UUID)
	if err != nil {
		return nil, err
	}
	p, err = p.withPlaces()
	if err != nil {
		return nil, err
	}
	return &Header{
		Size:         p.Size,
		Label:        p.Label,
		Subsystem:    p.Subsystem,
		ChecksumHash: checksumHash,
		UUID:         id,
		Metadata: Metadata{
			Keyslots: map[int]*Keyslot{},
			Tokens:   map[int]*Token{},
			Segments: map[int]*Segment{0: {
				Type:       SegmentCrypt,
				Offset:     p.DataOffset,
				Size:       DynamicSize,
				Encryption: spec.String(),
				SectorSize: p.SectorSize,
			}},
			Digests: map[int]*Digest{},
			Config:  Config{JSONSize: p.Size - HeaderSize, KeyslotsSize: p.KeyslotsSize},
		},
	}, nil
}

func isSectorSize(n int) bool { return n >= 512 && n <= 4096 && n&(n-1) == 0 }

// CheckText returns a *luks.ParamError if a label or subsystem cannot be that text:
// LabelSize-1 bytes at most, and nothing that would not show.
func CheckText(param, text string) error {
	switch {
	case len(text) > LabelSize-1:
		return luks.BadParam(param, "%d bytes, there is room for %d", len(text), LabelSize-1)
	case !isText(text):
		return luks.BadParam(param, "%q is no text", text)
	}
	return nil
}

func isText(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func roundUp(n, multiple int64) int64 { return (n + multiple - 1) / multiple * multiple }

// withPlaces returns the parameters with Size, KeyslotsSize and DataOffset chosen
// where they are 0.
func (p Params) withPlaces() (Params, error) {
	fail := func(param, format string, args ...any) (Params, error) {
		return p, luks.BadParam(param, format, args...)
	}
	if p.Size == 0 {
		p.Size = MinSize
	}
	if p.Size < 0 || !isSize(uint64(p.Size)) {
		return fail("header size", "%d bytes, must be a power of two from %d to %d", p.Size, MinSize, MaxSize)
	}
	copies := 2 * p.Size
	if least := copies + AreaSize(p.KeyBytes); p.DataOffset != 0 && p.DataOffset < least {
		return fail("data offset", "%d bytes, but header and key slots take at least %d", p.DataOffset, least)
	}
	dataOffset := p.DataOffset
	if dataOffset == 0 && p.KeyslotsSize != 0 {
		dataOffset = roundUp(copies+max(p.KeyslotsSize, 0), dataAlignment)
	} else if dataOffset == 0 {
		dataOffset = p.defaultDataOffset()
	}
	if p.KeyslotsSize == 0 {
		p.KeyslotsSize = min((dataOffset-copies)/AreaAlignment*AreaAlignment, MaxKeyslotsSize)
	}
	switch least := AreaSize(p.KeyBytes); {
	case p.KeyslotsSize%AreaAlignment != 0:
		return fail("keyslots area", "%d bytes are no multiple of %d", p.KeyslotsSize, AreaAlignment)
	case p.KeyslotsSize > MaxKeyslotsSize:
		return fail("keyslots area", "%d bytes (at most %d)", p.KeyslotsSize, MaxKeyslotsSize)
	case p.KeyslotsSize < least:
		return fail("keyslots area", "%d bytes, a key slot takes %d", p.KeyslotsSize, least)
	case dataOffset%AreaAlignment != 0:
		return fail("data offset", "%d bytes are no multiple of %d", dataOffset, AreaAlignment)
	case dataOffset < copies+p.KeyslotsSize:
		return fail("data offset", "%d bytes, but header and key slots take %d", dataOffset, copies+p.KeyslotsSize)
	}
	if !p.Detached {
		p.DataOffset = dataOffset
	}
	return p, nil
}

func (p Params) defaultDataOffset() int64 {
	small := roundUp(2*p.Size+smallSlots*AreaSize(p.KeyBytes), dataAlignment)
	if !p.Detached && p.StoreSize != 0 && p.StoreSize < smallStore {
		return small
	}
	return max(defaultDataOffset, small)
}
