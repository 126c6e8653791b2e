package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"serpcrypt/cipher/serpent"
	"serpcrypt/hash/sha1"
)

func kernelFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "kernel", Value: "auto", EnvVars: []string{"SERPCRYPT_KERNEL"}, Usage: "which `CODE` computes Serpent: auto, generic, sse2, avx2, avx512"},
		&cli.StringFlag{Name: "sha1-kernel", Value: "auto", EnvVars: []string{"SERPCRYPT_SHA1_KERNEL"}, Usage: "which `CODE` computes SHA-1: auto, looped, generic, scalar, avx2, shani"},
	}
}

// chosenKernel returns what --kernel asks for.
func chosenKernel(c *cli.Context) (serpent.Kernel, error) {
	return parseKernel(c, "kernel", serpent.ParseKernel, serpent.Kernels())
}

// chosenSHA1Kernel returns what --sha1-kernel asks for.
func chosenSHA1Kernel(c *cli.Context) (sha1.Kernel, error) {
	return parseKernel(c, "sha1-kernel", sha1.ParseKernel, sha1.Kernels())
}

// parseKernel returns the kernel that a flag names, which is Auto, zero, if its
// environment variable is set to nothing.
func parseKernel[K fmt.Stringer](c *cli.Context, flag string, parse func(name string) (K, error), have []K) (auto K, err error) {
	name := c.String(flag)
	if name == "" {
		return auto, nil
	}
	k, err := parse(name)
	if err != nil {
		return auto, failf(exitUsage, hintKernels(flag, auto, have), "%w", err)
	}
	return k, nil
}

func hintKernels[K fmt.Stringer](flag string, auto K, have []K) string {
	names := []string{auto.String()}
	for _, k := range have {
		names = append(names, k.String())
	}
	return fmt.Sprintf("for --%s, this CPU and build have %s", flag, strings.Join(names, ", "))
}

// checkKernels refuses names that are not known or not for this CPU, and code
// that computes wrong. From then on all SHA-1 is computed by the chosen kernel.
func checkKernels(c *cli.Context) error {
	k, err := chosenKernel(c)
	if err != nil {
		return err
	}
	hashKernel, err := chosenSHA1Kernel(c)
	if err != nil {
		return err
	}
	if err := sha1.SelfTest(hashKernel); err != nil {
		return err
	}
	if err := sha1.SetDefault(hashKernel); err != nil {
		return err
	}
	// The portable code has the key slots, and is what verify compares with.
	for _, k := range []serpent.Kernel{k.Resolve(), serpent.Generic} {
		if err := serpent.SelfTest(k); err != nil {
			return err
		}
	}
	return nil
}
