package main

// #cgo CFLAGS: -O2 -Wall -Wextra
// #cgo LDFLAGS: -lgcrypt -lcrypto
// #include "sectors.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// A call from Go to C costs some 50 ns, but that is once for a whole run: the
// sectors are counted in C.

func bytesOf(p []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.SliceData(p)) }

func intOf(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func libgcrypt() (peer, error) {
	version := C.gcrypt_start()
	if version == nil {
		return peer{}, errors.New("libgcrypt does not start")
	}
	return peer{
		name:    "libgcrypt Serpent",
		version: "libgcrypt " + C.GoString(version),
		cipher:  "serpent",
		modes:   allModes,
		open: func(t task) (work, error) {
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
	}, nil
}

func openssl() peer {
	return peer{
		name:    "OpenSSL AES-256",
		version: C.GoString(C.openssl_version()),
		cipher:  "aes",
		modes:   []string{"xts"},
		open: func(t task) (work, error) {
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
