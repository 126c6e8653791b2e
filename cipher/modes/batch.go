package modes

import "serpcrypt/internal/secret"

// A batch is what goes to the cipher in one call. Its IVs, as blocks, are lanes of
// a kernel, and so are its sectors in CBC encryption.
const (
	// maxBatchSectors is twice what the widest kernel takes at once. A power of
	// two above it leaves 64 or 128 over, which are one or two even passes.
	maxBatchSectors = 192

	// fewSectors of 512 bytes are a block of 4096. Beside so few it would show
	// if memory for the IVs of a whole batch were cleared.
	fewSectors = 8
)

// cryptFew is for the modes that take an IV for each sector, and for up to
// fewSectors of these.
//
//go:noinline
func (s *Sectors) cryptFew(dst, src []byte, first uint64, encrypt bool) {
	var ivs [fewSectors * ivSize]byte
	s.cryptBatches(dst, src, first, ivs[:], encrypt)
}

// cryptMany is the same for any number of sectors.
//
//go:noinline
func (s *Sectors) cryptMany(dst, src []byte, first uint64, encrypt bool) {
	var ivs [maxBatchSectors * ivSize]byte
	s.cryptBatches(dst, src, first, ivs[:], encrypt)
}

// cryptBatches works on as many sectors at once as scratch has room for their
// IVs.
func (s *Sectors) cryptBatches(dst, src []byte, first uint64, scratch []byte, encrypt bool) {
	batch := min(len(src), len(scratch)/ivSize*s.sectorSize)
	for len(src) > 0 {
		n := min(len(src), batch)
		ivs := scratch[:n/s.sectorSize*ivSize]
		s.makeIVs(ivs, first, dst)
		s.cryptBatch(dst[:n], src[:n], ivs, encrypt)
		dst, src = dst[n:], src[n:]
		first += uint64(n / unitSize)
	}
	// XTS tweaks and ESSIV IVs are secret.
	secret.Wipe(scratch[:batch/s.sectorSize*ivSize])
}

func (s *Sectors) cryptBatch(dst, src, ivs []byte, encrypt bool) {
	if s.blocks.data != nil && s.mode != modeLRW {
		s.blocks.crypt(s.mode, dst, src, ivs, s.sectorSize, encrypt)
		return
	}
	data := &s.keys.data
	switch s.mode {
	case modeXTS:
		s.keys.tweak.EncryptBlocks(ivs, ivs)
		if encrypt {
			data.EncryptXTS(dst, src, ivs)
		} else {
			data.DecryptXTS(dst, src, ivs)
		}
	case modeCBC:
		if encrypt {
			data.EncryptCBC(dst, src, ivs)
		} else {
			data.DecryptCBC(dst, src, ivs)
		}
	case modeCTR:
		data.CryptCTR(dst, src, ivs)
	case modeLRW:
		s.cryptLRW(dst, src, ivs, encrypt)
	}
}
