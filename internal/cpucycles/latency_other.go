//go:build !amd64

package cpucycles

// Cores of other architectures differ too much in the latency of a
// multiplication.
const multiplyLatency = 0
