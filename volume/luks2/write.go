package luks2

import (
	"crypto/rand"
	"io"
	"math"

	"serpcrypt/volume/luks"
)

// Save writes the header as the next state of what the store has: SeqID goes up
// beyond it, and each copy gets a new salt. The copies are written one after the
// other, the one that counts last; each is synced and read back before the other
// is touched. So at least one is always good, if one has been. A copy needs no
// order of its sectors: the first holds salt and checksum, and with any other than
// the new ones behind it the copy is not good.
//
// If a copy is not what was written, the error is a *luks.FieldError. After an error the
// store may have the old state or the new one.
func (h *Header) Save(s luks.Store) error {
	u, err := h.Prepare(s)
	if err != nil {
		return err
	}
	return u.Save(s)
}

// Update is a header that is ready to be saved.
type Update struct {
	order  [2]int64 // where the copies go, the one that counts last
	copies [2][]byte
}

// Prepare does all of Save but to write, so that it finds what could not be
// written: then the error is a *luks.FieldError. Nobody may write the header before the
// update is saved.
func (h *Header) Prepare(s io.ReaderAt) (*Update, error) {
	const anySize = math.MaxInt64 // where the store ends, reading does
	found, _ := Read(s, anySize)
	for _, c := range found.Copies {
		h.SeqID = max(h.SeqID, c.SeqID)
	}
	if h.SeqID == math.MaxUint64 {
		return nil, newFault("seqid", offSeqID, "%d: it cannot go up any more", h.SeqID)
	}
	h.SeqID++

	u := &Update{order: [2]int64{0, h.Size}}
	if found.Copies[primary].counts() && !found.Copies[secondary].counts() {
		u.order = [2]int64{h.Size, 0}
	}
	for i, offset := range u.order {
		var salt [SaltSize]byte
		rand.Read(salt[:]) // never fails
		b, err := h.MarshalCopy(offset, salt)
		if err != nil {
			return nil, err
		}
		written, err := ParseCopy(b, offset)
		if err != nil {
			return nil, err
		}
		u.copies[i], h.places = b, written.places
	}
	return u, nil
}

// Save writes the copies, as Header.Save does.
func (u *Update) Save(s luks.Store) error {
	for i, offset := range u.order {
		if err := luks.WriteChecked(s, u.copies[i], offset, "header copy", luks.NoSlot); err != nil {
			return err
		}
	}
	return nil
}

// counts reports whether the copy has the newest state.
func (c *Copy) counts() bool { return c.Fault == nil && !c.Stale }
