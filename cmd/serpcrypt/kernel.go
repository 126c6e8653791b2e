package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"serpcrypt/cipher/serpent"
	"serpcrypt/hash/sha1"
)

func kernelFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "kernel", Value: "auto", EnvVars: []string{"SERPCRYPT_KERNEL"}, Usage: "which `CODE` computes Serpent: auto, generic, sse2, avx2, avx512"},
		&cli.StringFlag{Name: "sha1-kernel", Value: "auto", EnvVars: []string{"SERPCRYPT_SHA1_KERNEL"}, Usage: "which `CODE` computes SHA-1: auto, generic"},
	}
}

// chosenKernel returns what --kernel asks for.
func chosenKernel(c *cli.Context) (serpent.Kernel, error) {
	name := c.String("kernel")
	if name == "" { // the environment variable is set to nothing
		return serpent.Auto, nil
	}
	k, err := serpent.ParseKernel(name)
	if err != nil {
		return 0, failf(exitUsage, hintKernels(), "%w", err)
	}
	return k, nil
}

func hintKernels() string {
	names := []string{serpent.Auto.String()}
	for _, k := range serpent.Kernels() {
		names = append(names, k.String())
	}
	return "this CPU and build have " + strings.Join(names, ", ")
}

// checkKernels refuses names that are not known or not for this CPU, and code
// that computes wrong.
func checkKernels(c *cli.Context) error {
	k, err := chosenKernel(c)
	if err != nil {
		return err
	}
	switch name := c.String("sha1-kernel"); name {
	case "", "auto", "generic":
	default:
		return failf(exitUsage, "there are auto and generic", "--sha1-kernel: unknown kernel %q", name)
	}
	// The portable code has the key slots, and is what verify compares with.
	for _, k := range []serpent.Kernel{k.Resolve(), serpent.Generic} {
		if err := serpent.SelfTest(k); err != nil {
			return err
		}
	}
	return sha1.SelfTest()
}
