package main

// The kernels of each machine. The most blocks are for long runs, fewer for
// their ends and for short ones.

func sse2Kernels(s *Sboxes) []Kernel {
	return kernels(s,
		Size{Machine: sse2, Leads: []int{0}},
		Size{Machine: sse2, Leads: []int{0, 1}},
		Size{Machine: sse2, Leads: []int{0, 1, 2}, InOrder: true},
	)
}

func avx2Kernels(s *Sboxes) []Kernel {
	return kernels(s,
		Size{Machine: avx2, Leads: []int{0}},
		Size{Machine: avx2, Leads: []int{0, 1}},
		Size{Machine: avx2, Leads: []int{0, 1, 2}, InOrder: true},
	)
}

func avx512Kernels(s *Sboxes) []Kernel {
	return kernels(s,
		Size{Machine: avx512(4), Leads: []int{0}, Lack: 3},
		Size{Machine: avx512(4), Leads: []int{0}, Lack: 2},
		Size{Machine: avx512(4), Leads: []int{0}},
		Size{Machine: avx512(8), Leads: []int{0}},
		Size{Machine: avx512(16), Leads: []int{0}},
		Size{Machine: avx512(16), Leads: []int{0, 1}},
		Size{Machine: avx512(16), Leads: []int{0, 0, 1}},
		Size{Machine: avx512(16), Leads: []int{0, 0, 1, 1}},
		Size{Machine: avx512(16), Leads: []int{0, 0, 0, 1, 1, 1}},
	)
}
