package main

import (
	"flag"
	"testing"

	"github.com/urfave/cli/v2"

	"serpcrypt/hash/sha1"
)

// TestSHA1KernelsByName: a name may be that of code for messages, for chains, or
// for both.
func TestSHA1KernelsByName(t *testing.T) {
	chosen := func(name string) (sha1.Kernel, sha1.ChainKernel, error) {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.String("sha1-kernel", name, "")
		return chosenSHA1Kernels(cli.NewContext(nil, flags, nil))
	}
	known := map[string]bool{"": true, "auto": true}
	for _, k := range sha1.Kernels() {
		known[k.String()] = true
		if one, _, err := chosen(k.String()); err != nil || one != k {
			t.Errorf("%v: %v, %v", k, one, err)
		}
	}
	for _, k := range sha1.ChainKernels() {
		known[k.String()] = true
		if _, many, err := chosen(k.String()); err != nil || many != k {
			t.Errorf("%v: %v, %v", k, many, err)
		}
	}
	for _, name := range []string{"", "auto", "looped", "generic", "scalar", "sse2", "avx2", "avx512", "shani", "mmx"} {
		if _, _, err := chosen(name); (err == nil) != known[name] {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "auto"} {
		if one, many, _ := chosen(name); one != sha1.Auto || many != sha1.AutoChains {
			t.Errorf("%q: %v and %v", name, one, many)
		}
	}
	if _, many, _ := chosen("looped"); many != sha1.AutoChains {
		t.Errorf("looped: chains by %v", many)
	}
}
