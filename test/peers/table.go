package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// writeTable prints a row for each peer and a column for each contest, indented as
// code is in Markdown.
func writeTable(w io.Writer, title string, results []result, cell func(result) string) {
	const least = 8 // the width of a column
	first := 0
	var peers, columns []string
	cells := map[[2]string]string{}
	widths := map[string]int{}
	for _, r := range results {
		if !slices.Contains(peers, r.peer) {
			peers = append(peers, r.peer)
			first = max(first, len(r.peer)+2)
		}
		if !slices.Contains(columns, r.column) {
			columns = append(columns, r.column)
		}
		text := cell(r)
		cells[[2]string{r.peer, r.column}] = text
		widths[r.column] = max(widths[r.column], least, len(r.column)+1, len(text)+1)
	}
	line := func(name string, cell func(column string) string) {
		s := fmt.Sprintf("    %-*s", first, name)
		for _, column := range columns {
			s += fmt.Sprintf("%-*s", widths[column], cell(column))
		}
		fmt.Fprintln(w, strings.TrimRight(s, " "))
	}
	fmt.Fprintf(w, "\n%s:\n\n", title)
	line("", func(column string) string { return column })
	for _, peer := range peers {
		line(peer, func(column string) string { return cells[[2]string{peer, column}] })
	}
}

func cyclesPerUnit(r result) string {
	if r.cost.Cycles == 0 { // not known on this architecture
		return "-"
	}
	return fmt.Sprintf("%.2f", r.cost.Cycles/float64(r.units))
}

func megabytesPerSecond(r result) string {
	return fmt.Sprintf("%.0f", float64(r.units)/r.cost.Nanoseconds*1e3)
}

func millionsPerSecond(r result) string {
	return fmt.Sprintf("%.3f", float64(r.units)/r.cost.Nanoseconds*1e3)
}
