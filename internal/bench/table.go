package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteTables prints the report in the layout of the table that came with
// Linux's Serpent for SSE2 in 2011: a row for each size, a column for each mode
// and direction, and speeds as ratios to the portable code. Each suite ends with
// a sentence. On no terminal lines have at most 100 characters.
func (r *Report) WriteTables(w io.Writer, l Layout) error {
	var out strings.Builder
	out.WriteString(l.wrap(fmt.Sprintf("%s, %d cores, %s", r.Machine.CPU, r.Machine.Cores, r.Machine.Kernel)))
	if l.Columns > 0 {
		out.WriteString("\n" + l.wrap("A bar is as long as its figure says: of speeds the longest is the best, of cycles and times the shortest."))
	}
	for _, p := range r.parts() {
		for _, t := range p.tables {
			out.WriteString("\n" + l.render(t))
		}
		if p.sentence != "" {
			out.WriteString("\n" + l.wrap(p.sentence))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// part is what is printed of a suite.
type part struct {
	tables   []*table
	sentence string // "" where what it speaks of was not measured
}

func (r *Report) parts() []part {
	return []part{
		{serpentTables(r.Serpent), serpentSentence(r.Serpent)},
		{sectorsTables(r.Sectors), sectorsSentence(r.Sectors)},
		{sha1Tables(r.SHA1, r.sha1Kernel), sha1Sentence(r.SHA1, r.sha1Kernel)},
		{kdfTables(r.KDF), kdfSentence(r.KDF)},
		{unlockTables(r.Unlock), unlockSentence(r.Unlock)},
		{volumeTables(r.Volume), volumeSentence(r.Volume)},
	}
}

// serpentTables has a row for each size of request.
func serpentTables(results []SerpentResult) (tables []*table) {
	for _, results := range byKernel(results, func(x SerpentResult) string { return x.Kernel }) {
		kernel := results[0].Kernel
		add := func(what string, cell func(SerpentResult) string) {
			tables = append(tables, newTable("serpent, "+what, "size", results, func(x SerpentResult) (row, column, _ string) {
				return inBytes(x.Bytes), x.Mode + "-" + x.Op, cell(x)
			}))
		}
		if kernel != "generic" {
			add(kernel+"/generic speed ratios", func(x SerpentResult) string { return asRatio(x.RatioToGeneric) })
		}
		add(kernel+", MB/s (10^6 bytes)", func(x SerpentResult) string { return asMegabytes(x.BytesPerSecond) })
		add(kernel+", core cycles per byte", func(x SerpentResult) string { return asCycles(x.CyclesPerByte) })
	}
	return tables
}

// sectorsTables has a row for each run and size of sector.
func sectorsTables(results []SectorsResult) (tables []*table) {
	for _, results := range byKernel(results, func(x SectorsResult) string { return x.Kernel }) {
		kernel := results[0].Kernel
		add := func(what string, cell func(SectorsResult) string) {
			tables = append(tables, newTable("sectors, "+what, "run/sector", results, func(x SectorsResult) (row, column, _ string) {
				return inRun(x), x.Mode + "-" + x.Op, cell(x)
			}))
		}
		if kernel != "generic" {
			add(kernel+"/generic speed ratios", func(x SectorsResult) string { return asRatio(x.RatioToGeneric) })
		}
		add(kernel+", MB/s (10^6 bytes)", func(x SectorsResult) string { return asMegabytes(x.BytesPerSecond) })
		add(kernel+", core cycles per byte", func(x SectorsResult) string { return asCycles(x.CyclesPerByte) })
	}
	if t := threadsTable(results); t != nil {
		tables = append(tables, t)
	}
	return tables
}

// threadsTable shows how much faster several threads are than one. It is nil if
// nothing was measured in several.
func threadsTable(results []SectorsResult) *table {
	type task struct {
		kernel, mode, op  string
		sectorSize, bytes int
	}
	taskOf := func(x SectorsResult) task { return task{x.Kernel, x.Mode, x.Op, x.SectorSize, x.Bytes} }
	inOne := map[task]float64{}
	var inSeveral []SectorsResult
	for _, x := range results {
		if x.Threads == 1 {
			inOne[taskOf(x)] = x.BytesPerSecond
		} else {
			inSeveral = append(inSeveral, x)
		}
	}
	if len(inSeveral) == 0 {
		return nil
	}
	title := fmt.Sprintf("sectors, speed ratios of %d threads to one", inSeveral[0].Threads)
	return newTable(title, "kernel and run", inSeveral, func(x SectorsResult) (row, column, cell string) {
		ratio := x.BytesPerSecond / inOne[taskOf(x)]
		x.Threads = 1
		return x.Kernel + " " + inRun(x), x.Mode + "-" + x.Op, asRatio(ratio)
	})
}

// inRun is at most 19 characters, so that lines with ten columns fit a hundred.
func inRun(x SectorsResult) string {
	run := fmt.Sprintf("%s/%s", inUnits(x.Bytes), inUnits(x.SectorSize))
	if x.Threads > 1 {
		run += fmt.Sprintf(", %d threads", x.Threads)
	}
	return run
}

func inUnits(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%dM", n>>20)
	case n >= 16<<10:
		return fmt.Sprintf("%dK", n>>10)
	}
	return inBytes(n)
}

// byKernel splits the results, in the order in which the kernels, or whatever
// else tells them apart, first appear.
func byKernel[T any](results []T, kernel func(T) string) [][]T {
	var split [][]T
	for _, x := range results {
		i := slices.IndexFunc(split, func(s []T) bool { return kernel(s[0]) == kernel(x) })
		if i < 0 {
			i = len(split)
			split = append(split, nil)
		}
		split[i] = append(split[i], x)
	}
	return split
}

func inBytes(n int) string         { return fmt.Sprintf("%dB", n) }
func asRatio(x float64) string     { return fmt.Sprintf("%.2fx", x) }
func asMegabytes(x float64) string { return fmt.Sprintf("%.1f", x/1e6) }

func asCycles(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}

// table has its rows and columns in the order in which they first appear.
type table struct {
	title, corner string
	rows, columns []string
	cells         map[[2]string]string // by row and column
}

// newTable puts each result where place says.
func newTable[T any](title, corner string, results []T, place func(T) (row, column, cell string)) *table {
	t := &table{title: title, corner: corner, cells: map[[2]string]string{}}
	for _, x := range results {
		row, column, cell := place(x)
		if !slices.Contains(t.rows, row) {
			t.rows = append(t.rows, row)
		}
		if !slices.Contains(t.columns, column) {
			t.columns = append(t.columns, column)
		}
		t.cells[[2]string{row, column}] = cell
	}
	return t
}
