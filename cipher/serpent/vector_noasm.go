//go:build !amd64 || purego

package serpent

// vectorKeys is empty: this build has only the portable code.
type vectorKeys struct{}

func vectorKernels() []Kernel { return nil }

func (v *vectorKeys) set(k Kernel, plain, encrypt, decrypt *roundKeys) {}

// Each of these returns how much a vector kernel has done: nothing here.

func (c *Cipher) blocksVector(dst, src []byte, d direction) int             { return 0 }
func (c *Cipher) xexVector(dst, src, tweaks []byte, d direction) int        { return 0 }
func (c *Cipher) seriesVector(dst, src []byte, s *series, d direction) int  { return 0 }
func (c *Cipher) encryptCBCVector(dst, src, ivs []byte, sectorSize int) int { return 0 }
