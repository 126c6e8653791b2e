//go:build !(amd64 || 386) || purego

package sha1

// spoil changes the constant that only kernel k reads, and a second time
// restores it.
func spoil(k Kernel) {
	if k == Looped {
		loopedConstants[3] ^= 1
	}
}
