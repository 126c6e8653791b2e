package volume

import "sync"

// stripeLocks keep a sector that is read, changed and written back from being
// read or written meanwhile. Each lock stands for every 64th stripe of each
// segment: whoever changes part of a sector takes it alone, all others share.
type stripeLocks [64]sync.RWMutex

// stripeSize is a multiple of every sector size, in bytes.
const stripeSize = 1 << 20

// at returns the lock for a place in a segment.
func (l *stripeLocks) at(inSegment int64) *sync.RWMutex {
	return &l[inSegment/stripeSize%int64(len(l))]
}
