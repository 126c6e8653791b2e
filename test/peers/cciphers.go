package main

// #include "sectors.h"
import "C"

import (
	"errors"
	"fmt"
)

func libgcrypt() sectorPeer {
	return sectorPeer{
		name:   "libgcrypt Serpent",
		cipher: "serpent",
		modes:  allModes,
		open: func(t sectorTask) (work, error) {
			mode := map[string]C.enum_mode{"ecb": C.ECB, "cbc": C.CBC, "ctr": C.CTR, "xts": C.XTS}[t.mode]
			cipher := C.gcrypt_open(mode, bytesOf(t.key), C.size_t(len(t.key)))
			if cipher == nil {
				return work{}, fmt.Errorf("libgcrypt has no Serpent in %s", t.mode)
			}
			return work{
				run: func(dst, src []byte) {
					if C.gcrypt_crypt(cipher, mode, intOf(t.encrypt), bytesOf(dst), bytesOf(src),
						C.size_t(len(src)), C.size_t(t.sectorSize), firstSector) == 0 {
						panic("libgcrypt fails")
					}
				},
				close: func() { C.gcrypt_close(cipher) },
			}, nil
		},
	}
}

func openssl() sectorPeer {
	return sectorPeer{
		name:   "OpenSSL AES-256",
		cipher: "aes",
		modes:  []string{"xts"},
		open: func(t sectorTask) (work, error) {
			cipher := C.openssl_open(intOf(t.encrypt), bytesOf(t.key))
			if cipher == nil {
				return work{}, errors.New("OpenSSL has no AES-256-XTS")
			}
			return work{
				run: func(dst, src []byte) {
					if C.openssl_crypt(cipher, bytesOf(dst), bytesOf(src),
						C.size_t(len(src)), C.size_t(t.sectorSize), firstSector) == 0 {
						panic("OpenSSL fails")
					}
				},
				close: func() { C.openssl_close(cipher) },
			}, nil
		},
	}
}
