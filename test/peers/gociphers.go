package main

import (
	"crypto/aes"
	"crypto/cipher"

	aead "github.com/aead/serpent"
	"golang.org/x/crypto/xts"

	"serpcrypt/cipher/modes"
	"serpcrypt/cipher/serpent"
)

// ourKernels returns a peer for each that this CPU has, and one for the fastest
// that gets its sectors one by one, as the other peers do.
func ourKernels() []sectorPeer {
	var peers []sectorPeer
	for _, k := range serpent.Kernels() {
		peers = append(peers, ours(k, "serpcrypt "+k.String(), false))
	}
	fastest := serpent.Auto.Resolve()
	return append(peers, ours(fastest, "serpcrypt "+fastest.String()+", sector by sector", true))
}

func ours(kernel serpent.Kernel, name string, oneByOne bool) sectorPeer {
	specs := map[string]string{
		"ecb": "serpent-ecb", "cbc": "serpent-cbc-plain64", "ctr": "serpent-ctr-plain64", "xts": "serpent-xts-plain64",
	}
	return sectorPeer{name: name, cipher: "serpent", modes: allModes, open: func(t sectorTask) (work, error) {
		s, err := modes.New(specs[t.mode], t.key, t.sectorSize, kernel)
		if err != nil {
			return work{}, err
		}
		crypt := s.Decrypt
		if t.encrypt {
			crypt = s.Encrypt
		}
		run := func(dst, src []byte) { crypt(dst, src, firstSector) }
		if oneByOne {
			run = t.sectorBySector(crypt)
		}
		return work{run, s.Wipe}, nil
	}}
}

// sectorBySector makes a call for each sector of a run.
func (t sectorTask) sectorBySector(crypt func(dst, src []byte, number uint64)) func(dst, src []byte) {
	return func(dst, src []byte) {
		for i := 0; i < len(src); i += t.sectorSize {
			crypt(dst[i:i+t.sectorSize], src[i:i+t.sectorSize], firstSector+uint64(i/sectorUnit))
		}
	}
}

func aeadSerpent() sectorPeer {
	return goXTS(sectorPeer{
		name:   "aead/serpent, x/crypto/xts",
		cipher: "serpent",
	}, aead.NewCipher)
}

func goAES() sectorPeer {
	return goXTS(sectorPeer{
		name:   "Go AES-256, x/crypto/xts",
		cipher: "aes",
	}, aes.NewCipher)
}

// goXTS completes p with XTS of golang.org/x/crypto over a block cipher.
func goXTS(p sectorPeer, newCipher func(key []byte) (cipher.Block, error)) sectorPeer {
	p.modes = []string{"xts"}
	p.open = func(t sectorTask) (work, error) {
		c, err := xts.NewCipher(newCipher, t.key)
		if err != nil {
			return work{}, err
		}
		crypt := c.Decrypt
		if t.encrypt {
			crypt = c.Encrypt
		}
		return work{t.sectorBySector(crypt), func() {}}, nil
	}
	return p
}
