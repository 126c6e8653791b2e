//go:build !purego

package sha1

// spoil changes the constant that only kernel k reads, and a second time
// restores it.
func spoil(k Kernel) {
	switch k {
	case Looped:
		loopedConstants[3] ^= 1
	case Scalar:
		scalarFirstConstant ^= 1
	}
}
