package bench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Layout is what tables are printed on.
type Layout struct {
	Columns int  // of the terminal; 0: it is none, and tables get no bars
	Blocks  bool // it shows Unicode's block characters
}

const (
	columnWidth = 8 // characters, with the space behind them
	pageWidth   = 100

	shortestBar, longestBar = 4, 16 // characters
)

// wrap breaks text into lines, between words.
func (l Layout) wrap(text string) string {
	width := l.Columns
	if width == 0 {
		width = pageWidth
	}
	if len(text) <= width {
		return text + "\n"
	}
	var out strings.Builder
	used := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i > 0 && used+1+len(word) > width:
			out.WriteString("\n")
			used = 0
		case i > 0:
			out.WriteString(" ")
			used++
		}
		out.WriteString(word)
		used += len(word)
	}
	return out.String() + "\n"
}

// render gives each column 8 characters, or as many as it needs. On a terminal a
// bar follows each figure, as long as it says; the longest one of the table fills
// its place. Columns that then do not fit go below, with the rows that they have.
func (l Layout) render(t *table) string {
	first, other := t.widths()
	bar, abreast := l.divide(first, other, len(t.columns))
	largest := t.largest()
	var out strings.Builder
	out.WriteString(l.wrap(t.title))
	line := func(name string, texts []string, bars bool) {
		s := fmt.Sprintf("%-*s", first, name)
		for _, text := range texts {
			s += fmt.Sprintf("%-*s", other, text)
			if bar > 0 {
				drawn := ""
				if x, ok := figure(text); ok && bars {
					drawn = l.bar(x/largest, bar)
				}
				s += fmt.Sprintf("%-*s ", bar, drawn)
			}
		}
		out.WriteString(strings.TrimRight(s, " ") + "\n")
	}
	for columns := range slices.Chunk(t.columns, abreast) {
		out.WriteString("\n")
		line(t.corner, columns, false)
		for _, row := range t.rows {
			if texts := t.row(row, columns); l.Columns == 0 || slices.Max(texts) != "" {
				line(row, texts, true)
			}
		}
	}
	return out.String()
}

// divide returns how long bars can be beside columns of these widths, and how many
// columns but the first go side by side.
func (l Layout) divide(first, other, columns int) (bar, abreast int) {
	columns = max(1, columns)
	if l.Columns == 0 {
		return 0, columns
	}
	room := l.Columns - first
	abreast = max(1, room/(other+shortestBar+1))
	lines := (columns + abreast - 1) / abreast
	abreast = (columns + lines - 1) / lines
	return max(0, min(longestBar, room/abreast-other-1)), abreast
}

// bar is as long as a part of the width, to half a character where there are
// block characters.
func (l Layout) bar(part float64, width int) string {
	if !l.Blocks {
		return strings.Repeat("#", int(math.Round(part*float64(width))))
	}
	halves := int(math.Round(2 * part * float64(width)))
	return strings.Repeat("█", halves/2) + strings.Repeat("▌", halves%2)
}

// row returns the cells of a row in some columns.
func (t *table) row(row string, columns []string) (cells []string) {
	for _, column := range columns {
		cells = append(cells, t.cells[[2]string{row, column}])
	}
	return cells
}

// widths returns those of the first and of each other column, with the space
// behind them.
func (t *table) widths() (first, other int) {
	first, other = max(columnWidth, len(t.corner)+1), columnWidth
	for _, row := range t.rows {
		first = max(first, len(row)+1)
	}
	for _, column := range t.columns {
		other = max(other, len(column)+1)
	}
	for _, cell := range t.cells {
		other = max(other, len(cell)+1)
	}
	return first, other
}

// largest returns the largest figure.
func (t *table) largest() float64 {
	most := 0.0
	for _, cell := range t.cells {
		if x, ok := figure(cell); ok {
			most = max(most, x)
		}
	}
	return most
}

// figure returns the figure in a cell that has a bar: it is more than zero, and no
// change in percent.
func figure(cell string) (float64, bool) {
	x, err := strconv.ParseFloat(strings.TrimSuffix(cell, "x"), 64)
	return x, err == nil && x > 0 && !math.IsInf(x, 0)
}
