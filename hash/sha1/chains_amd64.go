//go:build !purego

package sha1

import (
	"encoding/binary"
	"math/bits"

	"github.com/klauspost/cpuid/v2"
)

// amd tells which costs of passes hold here.
var amd = cpuid.CPU.IsVendor(cpuid.AMD) || cpuid.CPU.IsVendor(cpuid.Hygon)

// chainRequirements are the CPU features that each kernel of assembly needs. The
// package cpuid reports those of AVX only if the system saves the registers.
var chainRequirements = []struct {
	kernel   ChainKernel
	features []cpuid.FeatureID
}{
	{ChainsScalar, []cpuid.FeatureID{cpuid.SSE2}},
	{ChainsSSE2, []cpuid.FeatureID{cpuid.SSE2}},
	{ChainsAVX2, []cpuid.FeatureID{cpuid.AVX2}},
	{ChainsAVX512, []cpuid.FeatureID{cpuid.AVX512F, cpuid.AVX512VL}},
	{ChainsSHANI, []cpuid.FeatureID{cpuid.SSE2, cpuid.SHA}},
}

func assemblyChainKernels() []ChainKernel { return usableForChains(&cpuid.CPU) }

func usableForChains(cpu *cpuid.CPUInfo) (kernels []ChainKernel) {
	for _, r := range chainRequirements {
		if cpu.Supports(r.features...) {
			kernels = append(kernels, r.kernel)
		}
	}
	return kernels
}

func (p *pass) iterateAssembly(chains []Chain, n int) {
	var m chainMemory
	p.pack(&m, chains)
	for n > 0 {
		now := min(n, p.iterationsPerCall())
		p.call(&m, now)
		n -= now
	}
	p.unpack(chains, &m)
	wipe(&m)
}

// memoryWords is what the largest kernel needs.
const memoryWords = 1519

// chainMemory is what the kernels of assembly work on: states, outcomes and sums
// of chains in the order that suits the kernel, and room for schedules.
type chainMemory [memoryWords]uint32

// call does n iterations of the chains in the memory.
func (s shape) call(m *chainMemory, n int) {
	memory := (*[memoryWords]uint32)(m)
	switch s {
	case shape{ChainsSSE2, 4}:
		iterateSSE2x4(memory, n)
	case shape{ChainsSSE2, 8}:
		iterateSSE2x8(memory, n)
	case shape{ChainsAVX2, 8}:
		iterateAVX2x8(memory, n)
	case shape{ChainsAVX2, 16}:
		iterateAVX2x16(memory, n)
	case shape{ChainsAVX512, 4}:
		iterateAVX512x4(memory, n)
	case shape{ChainsAVX512, 8}:
		iterateAVX512x8(memory, n)
	case shape{ChainsAVX512, 16}:
		iterateAVX512x16(memory, n)
	case shape{ChainsAVX512, 32}:
		iterateAVX512x32(memory, n)
	case shape{ChainsSHANI, 1}:
		iterateSHANIx1(memory, n)
	case shape{ChainsSHANI, 2}:
		iterateSHANIx2(memory, n)
	case shape{ChainsSHANI, 3}:
		iterateSHANIx3(memory, n)
	case shape{ChainsSHANI, 4}:
		iterateSHANIx4(memory, n)
	default:
		panic("sha1: no code for this pass")
	}
}

// pack puts chains into the memory, which is zero, and unpack gets them back.
func (s shape) pack(m *chainMemory, chains []Chain) {
	for i := range chains {
		if s.kernel == ChainsSHANI {
			m.packRegisters(i, &chains[i])
		} else {
			m.packLane(i, s.chains, &chains[i])
		}
	}
}

func (s shape) unpack(chains []Chain, m *chainMemory) {
	for i := range chains {
		if s.kernel == ChainsSHANI {
			m.unpackRegisters(i, &chains[i])
		} else {
			m.unpackLane(i, s.chains, &chains[i])
		}
	}
}

// Rows of the memory of vector kernels: a word of each chain. Those of the two
// halves, the inner and the outer hash, come first, then five of the outcomes.
const (
	rowState   = 0  // of a half: five
	rowStart   = 5  // what the first five rounds take from the state alone
	rowRotated = 10 // a and b of the state
	rowSum     = 12 // of the outcomes, five; that of the inner half means nothing
	halfRows   = 17
	rowOutcome = 2 * halfRows
)

// packLane puts a chain into its lane of the rows, of so many lanes.
func (m *chainMemory) packLane(lane, lanes int, c *Chain) {
	at := func(row int) int { return row*lanes + lane }
	for half, digest := range [...]*[Size]byte{&c.inner, &c.outer} {
		row := half * halfRows
		m.putWords(at(row+rowState), lanes, digest[:])
		m.putStart(at(row+rowState), at(row+rowStart), at(row+rowRotated), lanes)
	}
	m.putWords(at(rowOutcome), lanes, c.u[:])
	m.putWords(at(halfRows+rowSum), lanes, c.T[:])
}

// putStart computes what the first rounds take from the state that is at a place.
func (m *chainMemory) putStart(state, start, rotated, lanes int) {
	a, b, c, d, e := m[state], m[state+lanes], m[state+2*lanes], m[state+3*lanes], m[state+4*lanes]
	a30, b30 := bits.RotateLeft32(a, 30), bits.RotateLeft32(b, 30)
	m[rotated] = a30
	m[rotated+lanes] = b30
	m[start] = e + k0 + choose(b, c, d) + bits.RotateLeft32(a, 5)
	m[start+lanes] = d + k0 + choose(a, b30, c)
	m[start+2*lanes] = c + k0
	m[start+3*lanes] = b30 + k0
	m[start+4*lanes] = a30 + k0
}

func (m *chainMemory) unpackLane(lane, lanes int, c *Chain) {
	m.getWords(c.u[:], rowOutcome*lanes+lane, lanes)
	m.getWords(c.T[:], (halfRows+rowSum)*lanes+lane, lanes)
}

// putWords puts big-endian words to a place and each step from there.
func (m *chainMemory) putWords(place, step int, words []byte) {
	for ; len(words) > 0; words = words[4:] {
		m[place] = binary.BigEndian.Uint32(words)
		place += step
	}
}

func (m *chainMemory) getWords(words []byte, place, step int) {
	for ; len(words) > 0; words = words[4:] {
		binary.BigEndian.PutUint32(words, m[place])
		place += step
	}
}

// Rows of the memory of SHA extensions: four words of a chain, the first of them
// last. Those of the two halves come first, chain by chain, then two of each
// chain's outcome: a to d, and e with the padding that follows it in a message.
const (
	rowABCD       = iota // of the state
	rowE                 // and zeros
	rowPadded            // e and padding
	rowSumABCD           // of the outcomes; those of the inner half mean nothing
	rowSumE              // the other words mean nothing
	registerRows         // of a chain in a half
	registerWords = 4
	maxRegisters  = 4 // chains
)

// firstWord returns the place of the first word of a row, from which the others
// go down.
func firstWord(row int) int { return row*registerWords + registerWords - 1 }

func registerRow(half, chain, row int) int {
	return firstWord((half*maxRegisters+chain)*registerRows + row)
}

func outcomeRow(chain, row int) int { return registerRow(2, 0, 2*chain+row) }

const aToD = 4 * registerWords // bytes

// packRegisters puts a chain into its rows.
func (m *chainMemory) packRegisters(chain int, c *Chain) {
	const padding = 0x80000000
	for half, digest := range [...]*[Size]byte{&c.inner, &c.outer} {
		m.putWords(registerRow(half, chain, rowABCD), -1, digest[:aToD])
		m.putWords(registerRow(half, chain, rowE), -1, digest[aToD:])
		m.putWords(registerRow(half, chain, rowPadded), -1, digest[aToD:])
		m[registerRow(half, chain, rowPadded)-1] = padding
	}
	m.putWords(outcomeRow(chain, 0), -1, c.u[:aToD])
	m.putWords(outcomeRow(chain, 1), -1, c.u[aToD:])
	m[outcomeRow(chain, 1)-1] = padding
	m.putWords(registerRow(1, chain, rowSumABCD), -1, c.T[:aToD])
	m.putWords(registerRow(1, chain, rowSumE), -1, c.T[aToD:])
}

func (m *chainMemory) unpackRegisters(chain int, c *Chain) {
	m.getWords(c.u[:aToD], outcomeRow(chain, 0), -1)
	m.getWords(c.u[aToD:], outcomeRow(chain, 1), -1)
	m.getWords(c.T[:aToD], registerRow(1, chain, rowSumABCD), -1)
	m.getWords(c.T[aToD:], registerRow(1, chain, rowSumE), -1)
}
