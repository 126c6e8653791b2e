package sha1

// Cycles estimates what Iterate takes for an iteration of so many chains, in
// cycles of the core. It is the fewer for a chain, the better they fill the lanes
// of the kernel: only the relations can be relied on. It returns 0 if CPU or
// build cannot run k.
func (k ChainKernel) Cycles(chains int) int {
	list, err := passesOf(k, chainKernels)
	if err != nil {
		return 0
	}
	cycles := 0
	for chains > 0 {
		n := min(chains, maxPlanned)
		for _, p := range plan(list, n) {
			cycles += p.cycles()
		}
		chains -= n
	}
	return cycles
}
