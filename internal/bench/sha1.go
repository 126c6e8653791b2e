package bench

import (
	stdsha1 "crypto/sha1"
	"fmt"
	"hash"

	"serpcrypt/hash/sha1"
	"serpcrypt/internal/cpucycles"
)

// updates are the sizes of messages and of the writes that bring them, of
// Linux's crypto/tcrypt.c.
var updates = []struct{ message, update int }{
	{16, 16},
	{64, 16}, {64, 64},
	{256, 16}, {256, 64}, {256, 256},
	{1024, 16}, {1024, 256}, {1024, 1024},
	{2048, 16}, {2048, 256}, {2048, 1024}, {2048, 2048},
	{4096, 16}, {4096, 256}, {4096, 1024}, {4096, 4096},
	{8192, 16}, {8192, 256}, {8192, 1024}, {8192, 4096}, {8192, 8192},
}

// hasher is a SHA-1 that takes part.
type hasher struct {
	name string
	new  func() hash.Hash
}

// hashers returns crypto/sha1, and ours: with each kernel for messages in one
// write, and else only those that are compared by the size of writes.
func hashers(inOne bool) []hasher {
	list := []hasher{{stdlibKernel, stdsha1.New}}
	for _, k := range sha1.Kernels() {
		if inOne || k == sha1.Generic || k == sha1.Default() {
			list = append(list, hasher{k.String(), func() hash.Hash { return sha1.NewKernel(k) }})
		}
	}
	return list
}

func sha1Contests(report *Report, _ Options) ([]contest, error) {
	report.sha1Kernel = sha1.Default().String()
	var contests []contest
	for _, u := range updates {
		c := contest{what: fmt.Sprintf("sha1 of %d bytes in writes of %d", u.message, u.update)}
		message := testBytes(u.message)
		list := hashers(u.update == u.message)
		for _, k := range list {
			h, sum := k.new(), make([]byte, sha1.Size)
			c.contestants = append(c.contestants, contestant{k.name, alone(func() {
				h.Reset()
				for rest := message; len(rest) > 0; rest = rest[u.update:] {
					h.Write(rest[:u.update])
				}
				h.Sum(sum[:0])
			}), sum})
		}
		c.report = func(costs []cpucycles.Cost) {
			for i, k := range list {
				s := speedOf(u.message, costs[i], costs[0])
				report.SHA1 = append(report.SHA1, SHA1Result{
					Suite: "sha1", Kernel: k.name, Bytes: u.message, UpdateBytes: u.update,
					BytesPerSecond: s.perSecond, CyclesPerByte: s.cyclesPerUnit, RatioToStdlib: s.ratio,
				})
			}
		}
		contests = append(contests, c)
	}
	return contests, nil
}

// sha1Tables returns that of all kernels, as they were compared for Git in 2009,
// three times, and that of portable and chosen code by size of writes, as it
// came with Linux's SHA-1 for x86-64 in 2007.
func sha1Tables(results []SHA1Result, chosen string) (tables []*table) {
	var inOne []SHA1Result
	for _, x := range results {
		if x.Bytes == x.UpdateBytes {
			inOne = append(inOne, x)
		}
	}
	if len(inOne) == 0 {
		return nil
	}
	add := func(what string, cell func(SHA1Result) string) {
		tables = append(tables, newTable("sha1, "+what, "size", inOne, func(x SHA1Result) (row, column, _ string) {
			return inBytes(x.Bytes), x.Kernel, cell(x)
		}))
	}
	add("speed ratios to the standard library", func(x SHA1Result) string { return asRatio(x.RatioToStdlib) })
	add("MB/s (10^6 bytes)", func(x SHA1Result) string { return asMegabytes(x.BytesPerSecond) })
	add("core cycles per byte", func(x SHA1Result) string { return asCycles(x.CyclesPerByte) })
	return append(tables, updatesTable(results, chosen))
}

func updatesTable(results []SHA1Result, chosen string) *table {
	type cell struct{ row, column, text string }
	var cells []cell
	generic := map[string]SHA1Result{} // by row
	for _, x := range results {
		row := inBytes(x.Bytes) + "/" + inBytes(x.UpdateBytes)
		if x.Kernel == sha1.Generic.String() {
			generic[row] = x
		}
		if x.Kernel == sha1.Generic.String() || x.Kernel == chosen {
			cells = append(cells, cell{row, x.Kernel, asCycles(x.CyclesPerByte)})
		}
	}
	for _, x := range results {
		row := inBytes(x.Bytes) + "/" + inBytes(x.UpdateBytes)
		if x.Kernel == chosen {
			change := generic[row].BytesPerSecond/x.BytesPerSecond - 1
			cells = append(cells, cell{row, "change", fmt.Sprintf("%+.1f%%", 100*change)})
		}
	}
	title := fmt.Sprintf("sha1, core cycles per byte in writes of less, generic and %s", chosen)
	return newTable(title, "size/write", cells, func(c cell) (row, column, text string) { return c.row, c.column, c.text })
}
