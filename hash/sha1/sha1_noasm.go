package sha1

// compress takes the whole blocks of p into the state. len(p) is a multiple of
// BlockSize. This is the one place where an implementation is chosen.
func compress(state *[5]uint32, p []byte) { compressGeneric(state, p) }
