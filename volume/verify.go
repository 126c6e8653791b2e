package volume

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/fsprobe"
	"serpcrypt/volume/luks"
)

// Report is what Verify has found, check by check in the order of the
// constants below.
type Report struct {
	Checks []Check

	Header     *Header        // nil if there is none
	WholeSlots []int          // the key slots in use whose material shows no damage
	Slot       int            // the key slot that opened, or -1
	Kernel     serpent.Kernel // that was compared with the portable one
	Bytes      int64          // of the payload that were read
	FileSystem *fsprobe.Found // what the volume holds, nil if that is unknown
}

// Check is one thing that has been looked at.
type Check struct {
	Name   string
	Result Result
	Faults []*FormatError // not all if there are very many; by offset
	More   int            // how many were left out
}

// The names of checks.
const (
	CheckHeader     = "header"      // every field
	CheckMaterial   = "key slots"   // the material of each in use looks random
	CheckKeySlot    = "key slot"    // opens with the passphrase
	CheckDigest     = "digest"      // of the volume key
	CheckPayload    = "payload"     // every sector, decrypted by two kernels
	CheckFileSystem = "file system" // lies within the volume
)

// Result is how a check went.
type Result string

const (
	Passed  Result = "passed"
	Failed  Result = "failed"
	Skipped Result = "skipped" // nothing to look at, or not possible after a failure
)

// maxFaults is how many faults of a payload are kept.
const maxFaults = 100

// Err returns the first fault found, or nil if there is none.
func (r *Report) Err() error {
	for _, c := range r.Checks {
		if len(c.Faults) > 0 {
			return c.Faults[0]
		}
	}
	return nil
}

// judge adds a check that was made.
func (r *Report) judge(name string, faults ...*FormatError) *Check {
	result := Passed
	if len(faults) > 0 {
		result = Failed
	}
	slices.SortStableFunc(faults, func(a, b *FormatError) int { return cmp.Compare(a.Offset, b.Offset) })
	r.Checks = append(r.Checks, Check{Name: name, Result: result, Faults: faults})
	return &r.Checks[len(r.Checks)-1]
}

// skip adds checks that were not made.
func (r *Report) skip(names ...string) {
	for _, name := range names {
		r.Checks = append(r.Checks, Check{Name: name, Result: Skipped})
	}
}

// Verify looks at all of a container: the header; the material of every key slot
// in use, which must look random; every sector of the payload, which the chosen
// kernel and the portable one must decrypt to the same; and whether the file
// system inside fits. That the key is there shows that its key
// slot and the digest are right. It writes nothing.
//
// key may be nil, as nobody gets one if the header is of no use. Then nothing
// but the header and its key slots is looked at.
//
// A changed byte of the payload it cannot see: it decrypts to something else,
// and nothing says what it was.
//
// The faults are in the report. The error is that of ctx, or one of the stores
// that leaves nothing to verify.
func Verify(ctx context.Context, at Stores, key *Key, o Options, progress Progress) (*Report, error) {
	v := verifier{at: at, options: o, progress: progress, newCipher: newCipher}
	return v.verify(ctx, key)
}

type verifier struct {
	at        Stores
	options   Options
	progress  Progress
	newCipher makeCipher
	report    Report
}

func (v *verifier) verify(ctx context.Context, key *Key) (*Report, error) {
	r := &v.report
	r.Slot = luks.NoSlot
	extents, err := v.verifyHeader(ctx)
	if err != nil {
		return nil, err
	}
	if key == nil || extents == nil {
		r.skip(CheckKeySlot, CheckDigest, CheckPayload, CheckFileSystem)
		return r, nil
	}
	if key.Slot == AnySlot {
		r.skip(CheckKeySlot)
	} else {
		r.Slot = key.Slot
		r.judge(CheckKeySlot)
	}
	r.judge(CheckDigest)
	if err := v.verifyPayload(ctx, extents, key.Bytes.Bytes()); err != nil {
		return nil, err
	}
	return r, v.verifyFileSystem(extents, key.Bytes.Bytes())
}

// verifyHeader returns no extents if the header is of no use.
func (v *verifier) verifyHeader(ctx context.Context) ([]extent, error) {
	c, err := readContainer(ctx, v.at)
	var fault *FormatError
	if errors.As(err, &fault) {
		v.report.judge(CheckHeader, fault)
		v.report.skip(CheckMaterial)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v.report.Header = c.header()
	faults := c.faults()
	var extents []extent
	err = c.validate()
	if err != nil && !isFormatError(err) {
		return nil, err
	}
	if err == nil {
		extents, err = c.extents()
		if errors.As(err, &fault) {
			faults = append(faults, fault)
		}
	}
	v.report.judge(CheckHeader, faults...)
	if c.validate() != nil {
		v.report.skip(CheckMaterial)
		return nil, nil
	}
	v.verifyMaterial(c)
	return extents, nil
}

// verifyPayload compares the chosen kernel with the portable one.
func (v *verifier) verifyPayload(ctx context.Context, extents []extent, key []byte) error {
	chosen, err := newSegments(extents, key, v.options.Kernel, v.newCipher)
	if err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	defer wipeSegments(chosen)
	portable, err := newSegments(extents, key, serpent.Generic, v.newCipher)
	if err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	defer wipeSegments(portable)

	var found faultList
	size := chosen[len(chosen)-1].end()
	err = eachChunk(ctx, oneRange(0, size), newProgressMeter(v.progress, size), func() func(int64, int) error {
		w := payloadWorker{store: v.at.Data, chosen: chosen, portable: portable, found: &found}
		return w.verifyChunk
	})
	if err != nil {
		return err
	}
	v.report.Kernel = v.options.Kernel.Resolve()
	v.report.Bytes = size
	if fault, err := v.incompleteSector(extents); err != nil {
		return err
	} else if fault != nil {
		found.faults = append(found.faults, fault)
	}
	v.report.judge(CheckPayload, found.faults...).More = found.more
	return nil
}

// incompleteSector: a payload that was cut or grown carelessly may end within
// a sector.
func (v *verifier) incompleteSector(extents []extent) (*FormatError, error) {
	size, err := v.at.Data.Size()
	if err != nil {
		return nil, err
	}
	last := extents[len(extents)-1]
	rest := size - (last.offset + last.size)
	if rest <= 0 || rest >= int64(last.sectorSize) {
		return nil, nil
	}
	return luks.BadField("payload", luks.NoSlot, size-rest, "the container ends %d bytes into a sector of %d", rest, last.sectorSize), nil
}

// faultList is filled by several workers.
type faultList struct {
	mu     sync.Mutex
	faults []*FormatError
	more   int
}

func (l *faultList) add(offset int64, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) == maxFaults {
		l.more++
		return
	}
	l.faults = append(l.faults, luks.BadField("payload", luks.NoSlot, offset, format, args...))
}

type payloadWorker struct {
	store            Store
	chosen, portable []segment
	found            *faultList

	raw, byChosen, byPortable [chunkSize]byte
}

// verifyChunk looks at n bytes of the volume from pos.
func (w *payloadWorker) verifyChunk(pos int64, n int) error {
	for n > 0 {
		s := segmentAt(w.chosen, pos)
		length := int(min(int64(n), s.end()-pos))
		w.verifyRun(s, segmentAt(w.portable, pos), pos, length)
		pos, n = pos+int64(length), n-length
	}
	return nil
}

// verifyRun looks at whole sectors of one segment.
func (w *payloadWorker) verifyRun(chosen, portable *segment, pos int64, n int) {
	raw, byChosen, byPortable := w.raw[:n], w.byChosen[:n], w.byPortable[:n]
	place := chosen.inStore(pos)
	if err := readFull(w.store, raw, place); err != nil {
		if n > chosen.sectorSize {
			// Sector by sector, to find those that cannot be read.
			for at := 0; at < n; at += chosen.sectorSize {
				w.verifyRun(chosen, portable, pos+int64(at), chosen.sectorSize)
			}
			return
		}
		w.found.add(place, "the sector cannot be read: %v", err)
		return
	}
	first := chosen.sectorAt(pos)
	chosen.cipher.Decrypt(byChosen, raw, first)
	portable.cipher.Decrypt(byPortable, raw, first)
	if bytes.Equal(byChosen, byPortable) {
		return
	}
	for at := 0; at < n; at += chosen.sectorSize {
		end := at + chosen.sectorSize
		if !bytes.Equal(byChosen[at:end], byPortable[at:end]) {
			w.found.add(place+int64(at), "the chosen and the portable cipher code decrypt the sector differently")
		}
	}
}

// verifyFileSystem names what is inside and compares its size.
func (v *verifier) verifyFileSystem(extents []extent, key []byte) error {
	inside, err := newVolume(v.at.Data, extents, key, Options{Kernel: serpent.Generic, ReadOnly: true})
	if err != nil {
		return err
	}
	defer inside.Close()
	found, err := fsprobe.Probe(inside)
	if err != nil || found == nil {
		// An unreadable sector has been reported with the payload.
		v.report.skip(CheckFileSystem)
		return nil
	}
	v.report.FileSystem = found
	if found.Name == fsprobe.UnfinishedImport {
		v.report.judge(CheckFileSystem, luks.BadField(CheckFileSystem, luks.NoSlot, v.report.Header.PayloadOffset, "an import into it was not finished"))
		return nil
	}
	if found.Size <= inside.size {
		v.report.judge(CheckFileSystem)
		return nil
	}
	v.report.judge(CheckFileSystem, luks.BadField(CheckFileSystem, luks.NoSlot, v.report.Header.PayloadOffset+inside.size,
		"the container ends here, but the %s in it has %d bytes and the payload only %d", found.Name, found.Size, inside.size))
	return nil
}
