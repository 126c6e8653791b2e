package luks2

import (
	"crypto/sha256"
	"fmt"
	"io"

	"serpcrypt/volume/luks"
)

// Found is what a store has of a header.
type Found struct {
	Header *Header // that counts: of the good copy with the highest sequence number; nil if no copy is good
	Copies [2]Copy // primary, secondary
}

// Copy is one of the two of a header.
type Copy struct {
	Offset int64 // in bytes from the start of the store; of a secondary that is nowhere, where it should be
	SeqID  uint64
	Fault  *luks.FieldError // nil: the copy is good
	Stale  bool             // it is good, but the other one is newer

	isLUKS1 bool              // what lies there is a header of LUKS1
	err     error             // of the store, if that is the fault
	content [sha256.Size]byte // of what does not differ between copies of one state
}

const (
	primary   = 0
	secondary = 1
)

// Read reads the header from a store of size bytes. Where nothing else is known
// the secondary copy is looked for at all places that it may have. If no copy is
// good the error is the *luks.FieldError of the one that is more of a copy, or that
// of the store if it keeps this one from being read, and what was found is returned
// all the same. Two good copies with the same sequence number and different contents
// are a fault of the secondary.
func Read(s io.ReaderAt, size int64) (*Found, error) {
	found := new(Found)
	var headers [2]*Header
	found.Copies[primary], headers[primary] = readCopy(s, size, 0)
	if h := headers[primary]; h != nil {
		found.Copies[secondary], headers[secondary] = readCopy(s, size, h.Size)
	} else if found.Copies[primary].isLUKS1 {
		// What looks like a secondary copy would be left over.
		found.Copies[secondary] = Copy{Offset: MinSize, Fault: newFault("magic", MinSize, "not looked for")}
	} else {
		found.Copies[secondary], headers[secondary] = searchSecondary(s, size)
	}
	found.compare(headers)
	if found.Header != nil {
		return found, nil
	}
	best := &found.Copies[primary]
	if second := &found.Copies[secondary]; best.Fault.Field == "magic" && second.Fault.Field != "magic" {
		best = second
	}
	if best.err != nil {
		return found, fmt.Errorf("luks2: header: %w", best.err)
	}
	return found, best.Fault
}

// compare chooses the header that counts.
func (f *Found) compare(headers [2]*Header) {
	first, second := &f.Copies[primary], &f.Copies[secondary]
	switch {
	case headers[primary] == nil || headers[secondary] == nil:
	case first.SeqID > second.SeqID:
		second.Stale = true
	case first.SeqID < second.SeqID:
		first.Stale = true
	case first.content != second.content:
		second.Fault = newFault("seqid", second.Offset+offSeqID, "%d as in the primary copy, but the contents differ", second.SeqID)
	}
	for i, h := range headers {
		if h != nil && f.Copies[i].Fault == nil && !f.Copies[i].Stale {
			f.Header = h
			return
		}
	}
}

// searchSecondary looks for the secondary copy at all places. Of several good
// ones, as headers of other sizes may have left, it returns the newest; of none,
// the first that begins like one.
func searchSecondary(s io.ReaderAt, size int64) (best Copy, header *Header) {
	best = Copy{Offset: MinSize, Fault: newFault("magic", MinSize, "a secondary copy is at none of its places")}
	for offset := int64(MinSize); offset <= MaxSize; offset *= 2 {
		c, h := readCopy(s, size, offset)
		switch {
		case h != nil && (header == nil || h.SeqID > header.SeqID):
			best, header = c, h
		case header == nil && best.Fault.Field == "magic" && c.Fault.Field != "magic":
			best = c
		}
	}
	return best, header
}

// readCopy reads the copy at offset; the header is nil if the copy is not good.
func readCopy(s io.ReaderAt, size, offset int64) (Copy, *Header) {
	c := Copy{Offset: offset}
	var h *Header
	if b := c.readAll(s, size); c.Fault == nil {
		if h, c.Fault = parseCopy(b, offset); h != nil {
			c.SeqID = h.SeqID
			c.content = contentOf(b)
		}
	}
	return c, h
}

// readAll reads as many bytes as the copy says that it has, MaxSize at most.
func (c *Copy) readAll(s io.ReaderAt, size int64) []byte {
	head := c.read(s, size, HeaderSize, "magic", offMagic)
	if c.Fault != nil {
		return nil
	}
	c.isLUKS1 = c.Offset == 0 && isLUKS1(head)
	f, fault := parseFields(head, c.Offset)
	if fault != nil {
		c.Fault = fault
		return nil
	}
	return c.read(s, size, int64(f.Size), "hdr_size", offSize)
}

// read returns so many bytes of the copy. The field, at its offset in the copy, is
// what is wrong if they are not there.
func (c *Copy) read(s io.ReaderAt, size, length int64, field string, fieldOffset int64) []byte {
	at := c.Offset + fieldOffset
	if end := c.Offset + length; end > size {
		c.Fault = newFault(field, at, "the copy ends at byte %d or later, its store at byte %d", end, size)
		return nil
	}
	b := make([]byte, length)
	if _, err := io.ReadFull(io.NewSectionReader(s, c.Offset, length), b); err != nil {
		c.Fault, c.err = newFault(field, at, "the copy cannot be read: %v", err), err
		return nil
	}
	return b
}

// contentOf returns the hash of a copy without what makes it another than one of
// the same state: which copy it is, salt and checksum. It destroys the copy.
func contentOf(b []byte) [sha256.Size]byte {
	for _, field := range []struct{ offset, size int }{
		{offMagic, len(Magic)}, {offSalt, SaltSize}, {offOffset, 8}, {offChecksum, checksumSize},
	} {
		clear(b[field.offset : field.offset+field.size])
	}
	return sha256.Sum256(b)
}
