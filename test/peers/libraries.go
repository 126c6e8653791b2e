package main

// #cgo CFLAGS: -O2 -Wall -Wextra
// #cgo LDFLAGS: -lgcrypt -lcrypto -lnettle
// #include "libraries.h"
import "C"

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// A call from Go to C costs some 50 ns, but that is once for a whole run: its
// sectors, messages or iterations are counted in C.

func bytesOf(p []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.SliceData(p)) }

func intOf(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// libgcrypt has to be readied before any use.
var gcryptVersion = C.GoString(C.gcrypt_start())

// versions names what the peers are made of.
func versions() []string {
	return []string{
		"libgcrypt " + gcryptVersion,
		C.GoString(C.openssl_version()),
		fmt.Sprintf("Nettle %d.%d", C.nettle_major(), C.nettle_minor()),
		versionOf("github.com/aead/serpent") + ", " + versionOf("golang.org/x/crypto"),
		runtime.Version(),
	}
}

// versionOf returns the module with the version with which the program was
// built.
func versionOf(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return module + " " + m.Version
			}
		}
	}
	return module + " of unknown version"
}
