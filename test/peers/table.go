package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// writeTable prints a row for each peer and a column for each task, indented as
// code is in Markdown.
func writeTable(w io.Writer, title string, results []result, cell func(result) string) {
	const width = 8
	first := 0
	var peers, columns []string
	cells := map[[2]string]string{}
	for _, r := range results {
		if !slices.Contains(peers, r.peer) {
			peers = append(peers, r.peer)
			first = max(first, len(r.peer)+2)
		}
		if !slices.Contains(columns, r.task.name()) {
			columns = append(columns, r.task.name())
		}
		cells[[2]string{r.peer, r.task.name()}] = cell(r)
	}
	line := func(name string, cell func(column string) string) {
		s := fmt.Sprintf("    %-*s", first, name)
		for _, column := range columns {
			s += fmt.Sprintf("%-*s", width, cell(column))
		}
		fmt.Fprintln(w, strings.TrimRight(s, " "))
	}
	fmt.Fprintf(w, "\n%s:\n\n", title)
	line("", func(column string) string { return column })
	for _, peer := range peers {
		line(peer, func(column string) string { return cells[[2]string{peer, column}] })
	}
}

func cyclesPerByte(r result) string {
	if r.cost.Cycles == 0 { // not known on this architecture
		return "-"
	}
	return fmt.Sprintf("%.2f", r.cost.Cycles/float64(r.task.bytes))
}

func megabytesPerSecond(r result) string {
	return fmt.Sprintf("%.0f", float64(r.task.bytes)/r.cost.Nanoseconds*1e3)
}
