package main

// The kernels of each machine. The most groups are for long runs, fewer for
// their ends and for short ones.

func sse2Kernels(s *Sboxes) []Kernel {
	return kernels(sse2, s,
		Size{Leads: []int{0}},
		Size{Leads: []int{0, 1}},
		Size{Leads: []int{0, 1, 2}, InOrder: true},
	)
}

func avx2Kernels(s *Sboxes) []Kernel {
	return kernels(avx2, s,
		Size{Leads: []int{0}},
		Size{Leads: []int{0, 1}},
		Size{Leads: []int{0, 1, 2}, InOrder: true},
	)
}

func avx512Kernels(s *Sboxes) []Kernel {
	return kernels(avx512, s,
		Size{Leads: []int{0}},
		Size{Leads: []int{0, 1}},
		Size{Leads: []int{0, 0, 1}},
		Size{Leads: []int{0, 0, 1, 1}},
		Size{Leads: []int{0, 0, 0, 1, 1, 1}},
	)
}
