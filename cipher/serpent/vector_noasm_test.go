//go:build !amd64 || purego

package serpent

func spoilVectorKeys(v *vectorKeys, k Kernel) { panic("no vector kernel") }
