//go:build (amd64 || 386) && !purego

package sha1

import "testing"

func TestScalarWipesWords(t *testing.T) {
	words := [16]uint32{5: 1}
	var sum [Size]byte
	message := randomBytes(t, 2*BlockSize)
	compressScalar(&sum, &initial, &message[0], 2, nil, 0, &scalarFirstConstant, &words)
	if words != [16]uint32{} {
		t.Errorf("words of the schedule are left: %#x", words)
	}
}
