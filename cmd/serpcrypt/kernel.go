package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"serpcrypt/cipher/serpent"
	"serpcrypt/hash/sha1"
)

func kernelFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "kernel", Value: "auto", EnvVars: []string{"SERPCRYPT_KERNEL"}, Usage: "which `CODE` computes Serpent: auto, generic, sse2, avx2, avx512"},
		&cli.StringFlag{Name: "sha1-kernel", Value: "auto", EnvVars: []string{"SERPCRYPT_SHA1_KERNEL"}, Usage: "which `CODE` computes SHA-1: auto, looped, generic, scalar, sse2, avx2, avx512, shani"},
	}
}

// chosenKernel returns what --kernel asks for, or Auto if its environment
// variable is set to nothing.
func chosenKernel(c *cli.Context) (serpent.Kernel, error) {
	name := c.String("kernel")
	if name == "" {
		return serpent.Auto, nil
	}
	k, err := serpent.ParseKernel(name)
	if err != nil {
		return serpent.Auto, failf(exitUsage, hintKernels("kernel", namesOf(serpent.Kernels())), "%w", err)
	}
	return k, nil
}

// chosenSHA1Kernels returns what --sha1-kernel asks for: code for messages and
// code for chains of PBKDF2. If there is only one of the two by that name, the
// other is chosen as if nothing was said.
func chosenSHA1Kernels(c *cli.Context) (sha1.Kernel, sha1.ChainKernel, error) {
	name := c.String("sha1-kernel")
	if name == "" {
		return sha1.Auto, sha1.AutoChains, nil
	}
	one, err := sha1.ParseKernel(name)
	many, manyErr := sha1.ParseChainKernel(name)
	switch {
	case err == nil && manyErr == nil:
		return one, many, nil
	case err == nil:
		return one, sha1.AutoChains, nil
	case manyErr == nil:
		return sha1.Auto, many, nil
	}
	// Perhaps this CPU lacks it: that says more than that there is none.
	if lacking := new(sha1.KernelError); errors.As(manyErr, &lacking) && lacking.Known {
		err = manyErr
	}
	have := namesOf(sha1.Kernels())
	for _, name := range namesOf(sha1.ChainKernels()) {
		if !slices.Contains(have, name) {
			have = append(have, name)
		}
	}
	return sha1.Auto, sha1.AutoChains, failf(exitUsage, hintKernels("sha1-kernel", have), "%w", err)
}

func namesOf[K fmt.Stringer](kernels []K) (list []string) {
	for _, k := range kernels {
		list = append(list, k.String())
	}
	return list
}

func hintKernels(flag string, have []string) string {
	return fmt.Sprintf("for --%s, this CPU and build have auto, %s", flag, strings.Join(have, ", "))
}

// checkKernels refuses names that are not known or not for this CPU, and code
// that computes wrong. From then on all SHA-1 is computed by the chosen kernel.
func checkKernels(c *cli.Context) error {
	k, err := chosenKernel(c)
	if err != nil {
		return err
	}
	hashKernel, chainKernel, err := chosenSHA1Kernels(c)
	if err != nil {
		return err
	}
	if err := errors.Join(sha1.SelfTest(hashKernel), sha1.SelfTestChains(chainKernel)); err != nil {
		return err
	}
	if err := errors.Join(sha1.SetDefault(hashKernel), sha1.SetDefaultChains(chainKernel)); err != nil {
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
