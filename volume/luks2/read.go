package luks2

import (
	"crypto/sha256"
	"errors"
	"io"
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
	Fault  *FieldError // nil: the copy is good
	Stale  bool        // it is good, but the other one is newer

	content [sha256.Size]byte // of what does not differ between copies of one state
}

const (
	primary   = 0
	secondary = 1
)

// Read reads the header from a store of size bytes. Where nothing else is known
// the secondary copy is looked for at all places that it may have. If no copy is
// good the error is the *FieldError of the one that is more of a copy, and what
// was found is returned all the same. Two good copies with the same sequence
// number and different contents are a fault of the secondary.
func Read(s io.ReaderAt, size int64) (*Found, error) {
	found := new(Found)
	var headers [2]*Header
	found.Copies[primary], headers[primary] = readCopy(s, size, 0)
	if h := headers[primary]; h != nil {
		found.Copies[secondary], headers[secondary] = readCopy(s, size, h.Size)
	} else if errors.Is(found.Copies[primary].Fault, ErrLUKS1) {
		// What looks like a secondary copy would be left over.
		found.Copies[secondary] = Copy{Offset: MinSize, Fault: newFault("magic", MinSize, "not looked for")}
	} else {
		found.Copies[secondary], headers[secondary] = searchSecondary(s, size)
	}
	found.compare(headers)
	if found.Header == nil {
		first, second := found.Copies[primary].Fault, found.Copies[secondary].Fault
		if first.Field == "magic" && second.Field != "magic" {
			return found, second
		}
		return found, first
	}
	return found, nil
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
	b, fault := readCopyBytes(s, size, offset)
	var h *Header
	if fault == nil {
		h, fault = parseCopy(b, offset)
	}
	if fault != nil {
		c.Fault = fault
		return c, nil
	}
	c.SeqID = h.SeqID
	c.content = contentOf(b)
	return c, h
}

// readCopyBytes reads as many bytes as the copy at offset says that it has,
// MaxSize at most.
func readCopyBytes(s io.ReaderAt, size, offset int64) ([]byte, *FieldError) {
	head, fault := readBytes(s, size, offset, HeaderSize, "magic")
	if fault != nil {
		return nil, fault
	}
	f, fault := parseFields(head, offset)
	if fault != nil {
		return nil, fault
	}
	return readBytes(s, size, offset, int64(f.Size), "hdr_size")
}

func readBytes(s io.ReaderAt, size, offset, length int64, field string) ([]byte, *FieldError) {
	at := offset
	if field == "hdr_size" {
		at += offSize
	}
	if offset+length > size {
		return nil, newFault(field, at, "the copy ends at byte %d or later, its store at byte %d", offset+length, size)
	}
	b := make([]byte, length)
	if _, err := io.ReadFull(io.NewSectionReader(s, offset, length), b); err != nil {
		fault := newFault(field, at, "the copy cannot be read: %v", err)
		fault.Err = err
		return nil, fault
	}
	return b, nil
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

// ErrLUKS1 is wrapped by the error about a header that is one of LUKS1.
var ErrLUKS1 = errors.New("this is a LUKS1 header")
