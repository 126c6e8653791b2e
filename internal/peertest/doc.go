// Package peertest compares this program's ciphers with those of other
// authors. It is a module of its own, so that the program does not depend on
// them: run its tests by `go test ./...` in this folder.
package peertest
