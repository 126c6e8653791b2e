package volume

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"serpcrypt/cipher/serpent"
	"serpcrypt/volume/luks"
)

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
