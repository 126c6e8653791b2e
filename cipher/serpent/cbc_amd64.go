//go:build !purego

package serpent

// encryptCBCVector works on whole sectors, one per lane, and returns how many.
func (c *Cipher) encryptCBCVector(dst, src, ivs []byte, sectorSize int) (sectors int) {
	switch lanes := c.passes().lanes(len(ivs) / BlockSize); lanes {
	case 0:
		return 0
	case 1:
		c.encryptCBCSector(dst, src, ivs, sectorSize)
		return 1
	}
	return c.encryptCBCSectors(dst, src, ivs, sectorSize)
}

// encryptCBCSector is for one sector alone.
func (c *Cipher) encryptCBCSector(dst, src, iv []byte, sectorSize int) {
	previous := iv
	for at := 0; at < sectorSize; at += BlockSize {
		c.crypt(dst[at:], src[at:at+BlockSize], previous, zeros[:], encrypting)
		previous = dst[at:]
	}
}

func (c *Cipher) encryptCBCSectors(dst, src, ivs []byte, sectorSize int) (sectors int) {
	var rows cbcRows
	for {
		lanes := c.passes().lanes(len(ivs)/BlockSize - sectors)
		if lanes == 0 {
			break
		}
		at := sectors * sectorSize
		c.encryptCBCLanes(&rows, dst[at:], src[at:], ivs[sectors*BlockSize:], sectorSize, lanes)
		sectors += lanes
	}
	wipe(&rows)
	return sectors
}

// cbcRows hold blocks of the sectors that are encrypted side by side: the first
// row the last ciphertext of each, the others its next blocks.
type cbcRows [1 + lineBlocks][maxPass]byte

// lineBlocks is how many blocks of a sector are moved at once: a line of the
// cache, as sectors that are a power of two apart push each other out of it.
const lineBlocks = 4

func (c *Cipher) encryptCBCLanes(rows *cbcRows, dst, src, ivs []byte, sectorSize, lanes int) {
	copy(rows[0][:lanes*BlockSize], ivs)
	n := c.passes().roomForLanes(lanes) * BlockSize
	for at := 0; at < sectorSize; at += lineBlocks * BlockSize {
		blocks := min(lineBlocks, (sectorSize-at)/BlockSize)
		rows.gather(c.kernel, src[at:], sectorSize, lanes, blocks)
		for i := 1; i <= blocks; i++ {
			c.crypt(rows[i][:], rows[i][:n], rows[i-1][:], zeros[:], encrypting)
		}
		rows.scatter(c.kernel, dst[at:], sectorSize, lanes, blocks)
		copy(rows[0][:n], rows[blocks][:])
	}
}

// gather fetches the next blocks of each sector.
func (rows *cbcRows) gather(k Kernel, src []byte, sectorSize, lanes, blocks int) {
	_ = src[(lanes-1)*sectorSize+blocks*BlockSize-1]
	switch {
	case blocks < lineBlocks:
		for lane := range lanes {
			for i := range blocks {
				copy(rows[1+i][lane*BlockSize:], src[lane*sectorSize+i*BlockSize:][:BlockSize])
			}
		}
	case k == AVX512 && lanes%4 == 0:
		gatherAVX512(&rows[1][0], &src[0], len(rows[1]), sectorSize, lanes)
	default:
		gatherSSE2(&rows[1][0], &src[0], len(rows[1]), sectorSize, lanes)
	}
}

// scatter is the inverse of gather.
func (rows *cbcRows) scatter(k Kernel, dst []byte, sectorSize, lanes, blocks int) {
	_ = dst[(lanes-1)*sectorSize+blocks*BlockSize-1]
	switch {
	case blocks < lineBlocks:
		for lane := range lanes {
			for i := range blocks {
				copy(dst[lane*sectorSize+i*BlockSize:], rows[1+i][lane*BlockSize:][:BlockSize])
			}
		}
	case k == AVX512 && lanes%4 == 0:
		scatterAVX512(&rows[1][0], &dst[0], len(rows[1]), sectorSize, lanes)
	default:
		scatterSSE2(&rows[1][0], &dst[0], len(rows[1]), sectorSize, lanes)
	}
}
