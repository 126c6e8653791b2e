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

	DataOffset int64 // bytes; see below, or 0 if the header is detached
	Detached   bool  // the data lie in another store than the header

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
	if !modes.IsSectorSize(p.SectorSize) {
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
	keyslotsSize, dataOffset, err := p.places()
	if err != nil {
		return nil, err
	}
	return &Header{
		Size:         MinSize,
		Label:        p.Label,
		Subsystem:    p.Subsystem,
		ChecksumHash: checksumHash,
		UUID:         id,
		Metadata: Metadata{
			Keyslots: map[int]*Keyslot{},
			Tokens:   map[int]*Token{},
			Segments: map[int]*Segment{0: {
				Type:       SegmentCrypt,
				Offset:     dataOffset,
				Size:       DynamicSize,
				Encryption: spec.String(),
				SectorSize: p.SectorSize,
			}},
			Digests: map[int]*Digest{},
			Config:  Config{JSONSize: MinSize - HeaderSize, KeyslotsSize: keyslotsSize},
		},
	}, nil
}

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

const bothCopies = 2 * MinSize // bytes

// places returns how many bytes the keyslots area takes, which is what is left
// before the data, and where these begin.
func (p Params) places() (keyslotsSize, dataOffset int64, err error) {
	dataOffset = p.DataOffset
	if dataOffset == 0 {
		dataOffset = p.defaultDataOffset()
	}
	switch least := bothCopies + AreaSize(p.KeyBytes); {
	case dataOffset < least:
		return 0, 0, luks.BadParam("data offset", "%d bytes, but header and key slots take at least %d", dataOffset, least)
	case dataOffset%AreaAlignment != 0:
		return 0, 0, luks.BadParam("data offset", "%d bytes are no multiple of %d", dataOffset, AreaAlignment)
	}
	keyslotsSize = min(dataOffset-bothCopies, MaxKeyslotsSize)
	if p.Detached {
		dataOffset = p.DataOffset
	}
	return keyslotsSize, dataOffset, nil
}

func (p Params) defaultDataOffset() int64 {
	small := roundUp(bothCopies+smallSlots*AreaSize(p.KeyBytes), dataAlignment)
	if !p.Detached && p.StoreSize != 0 && p.StoreSize < smallStore {
		return small
	}
	return max(defaultDataOffset, small)
}
