package sha1

import (
	"crypto/subtle"
	"encoding/binary"
)

// Chain is an output block of PBKDF2-HMAC-SHA1 under way (RFC 8018, section
// 5.2): after as many iterations as wanted, T is the block. It has no pointers,
// and may lie in locked memory.
type Chain struct {
	T [Size]byte // U_1 ^ ... ^ U_i

	inner, outer [Size]byte // HMAC's hash values after the blocks of key and pad
	u            [Size]byte // U_i, the outcome of the last iteration
}

// HMAC XORs its key with these (RFC 2104, section 2).
const (
	innerPad = 0x36
	outerPad = 0x5c
)

// Start does the first iteration of output block index, which counts from 1.
func (c *Chain) Start(password, salt []byte, index uint32) {
	k := Default()
	var key [BlockSize]byte
	defer wipe(&key)
	if len(password) > BlockSize {
		sumKernel(k, (*[Size]byte)(key[:]), password)
	} else {
		copy(key[:], password)
	}
	xorAll(&key, innerPad)
	compress(k, &c.inner, &initial, key[:], nil)
	xorAll(&key, innerPad^outerPad)
	compress(k, &c.outer, &initial, key[:], nil)

	// Set one by one: what is set at once is first put together elsewhere.
	var d digest
	defer wipe(&d)
	d.kernel = k
	d.bytes = BlockSize
	d.state = c.inner
	d.Write(salt)
	d.Write(binary.BigEndian.AppendUint32(nil, index))
	d.Sum(c.u[:0])
	d.tail = [BlockSize]byte{}
	d.bytes = BlockSize
	d.state = c.outer
	d.Write(c.u[:])
	d.Sum(c.u[:0])
	c.T = c.u
}

func xorAll(block *[BlockSize]byte, pad byte) {
	for i := range block {
		block[i] ^= pad
	}
}

// Iterate does n more iterations of each chain, with kernel k or, for
// AutoChains, with those that are the fastest for so many chains. The error is
// a *KernelError if CPU or build cannot run k; no chain has moved then.
//
// Chains side by side cost much less than one by one. They need not belong to
// the same key. No call of assembly takes much longer than 0.2 ms, so that the
// garbage collector need not wait for more.
func Iterate(k ChainKernel, chains []Chain, n int) error {
	passes, err := passesOf(k, chainKernels)
	if err != nil || n <= 0 {
		return err
	}
	for len(chains) > 0 {
		run := chains[:min(len(chains), maxPlanned)]
		chains = chains[len(run):]
		for _, p := range plan(passes, len(run)) {
			m := min(p.chains, len(run))
			p.iterate(run[:m], n)
			run = run[m:]
		}
	}
	return nil
}

// paddedOutcome is the block that follows a block of key, with zeros for an
// outcome: HMAC's hashes take one and its padding.
var paddedOutcome = func() (block [BlockSize]byte) {
	block[Size] = 0x80
	binary.BigEndian.PutUint64(block[lengthOffset:], 8*(BlockSize+Size))
	return block
}()

// iterateStream is n iterations by a kernel for one stream.
func (c *Chain) iterateStream(k Kernel, n int) {
	block := paddedOutcome
	for range n {
		copy(block[:], c.u[:])
		compress(k, &c.u, &c.inner, block[:], nil)
		copy(block[:], c.u[:])
		compress(k, &c.u, &c.outer, block[:], nil)
		subtle.XORBytes(c.T[:], c.T[:], c.u[:])
	}
	wipe(&block)
}
