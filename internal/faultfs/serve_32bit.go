//go:build 386 || arm || mips || mipsle

package faultfs

// Main fails: go-fuse does not compile for these.
func Main() int { return 1 }
