package bench

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// bars returns what is drawn in a line.
func bars(line string) (list []string) {
	for _, word := range strings.Fields(line) {
		if strings.Trim(word, "█▌#") == "" {
			list = append(list, word)
		}
	}
	return list
}

// TestLayoutOnTerminal: the bars of one table have the lengths of its figures.
func TestLayoutOnTerminal(t *testing.T) {
	cells := []struct{ row, column, text string }{
		{"16B", "a", "40.00x"}, {"16B", "b", "10.00x"}, {"16B", "change", "-55.0%"},
		{"8192B", "a", "0.01x"}, {"8192B", "b", "30.00x"}, {"8192B", "c", "-"},
		{"none", "c", ""}, {"one", "b", "1.25x"},
	}
	table := newTable("the title of this table", "size", cells, func(c struct{ row, column, text string }) (row, column, cell string) {
		return c.row, c.column, c.text
	})
	for _, c := range []struct {
		layout Layout
		want   string
	}{
		{Layout{}, `the title of this table

size    a       b       change  c
16B     40.00x  10.00x  -55.0%
8192B   0.01x   30.00x          -
none
one             1.25x
`},
		{Layout{80, true}, `the title of this table

size    a                 b                 change            c
16B     40.00x  █████████ 10.00x  ██▌       -55.0%
8192B   0.01x             30.00x  ███████                     -
one                       1.25x   ▌
`},
		{Layout{80, false}, `the title of this table

size    a                 b                 change            c
16B     40.00x  ######### 10.00x  ##        -55.0%
8192B   0.01x             30.00x  #######                     -
one                       1.25x
`},
		{Layout{40, true}, `the title of this table

size    a               b
16B     40.00x  ███████ 10.00x  ██
8192B   0.01x           30.00x  █████▌
one                     1.25x

size    change          c
16B     -55.0%
8192B                   -
`},
		{Layout{20, true}, `the title of this
table

size    a
16B     40.00x  ███
8192B   0.01x

size    b
16B     10.00x  █
8192B   30.00x  ██▌
one     1.25x

size    change
16B     -55.0%

size    c
8192B   -
`},
	} {
		if got := c.layout.render(table); got != c.want {
			t.Errorf("%+v: got\n%s\nwant\n%s", c.layout, got, c.want)
		}
	}
}

// TestNothingWraps: no line is longer than the terminal is wide, and bars stay
// within their bounds and differ.
func TestNothingWraps(t *testing.T) {
	r := fixedReport(fullKernels)
	r.Machine = Machine{"A Processor With a Very Long Name (Registered) at 2.10 GHz", 128, "Linux 7.0.11-generic"}
	r.Sectors = append(r.Sectors, SectorsResult{"sectors", "avx512", "lrw", "dec", 4096, 1 << 20, 128, 104e9, 1.7, 13.2})
	for _, columns := range []int{40, 80, 100, 200, 1000} {
		for _, blocks := range []bool{false, true} {
			layout := Layout{columns, blocks}
			var out strings.Builder
			if err := r.WriteTables(&out, layout); err != nil {
				t.Fatal(err)
			}
			lengths := map[string]int{}
			for line := range strings.Lines(out.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
					t.Errorf("%+v: a line of %d characters: %s", layout, n, line)
				}
				for _, bar := range bars(line) {
					lengths[bar]++
					if n := utf8.RuneCountInString(bar); n > longestBar {
						t.Errorf("%+v: a bar of %d characters: %s", layout, n, line)
					}
					if strings.Contains(bar, "#") == blocks {
						t.Errorf("%+v: bar %s", layout, bar)
					}
				}
			}
			if len(lengths) < 4 {
				t.Errorf("%+v: bars of %d lengths", layout, len(lengths))
			}
			if columns >= 200 && lengths[strings.Repeat(layout.bar(1, 1), longestBar)] == 0 {
				t.Errorf("%+v: no bar is as long as it may be", layout)
			}
		}
	}
}

func TestBar(t *testing.T) {
	for _, c := range []struct {
		part          float64
		width         int
		blocks, ascii string
	}{
		{1, 4, "████", "####"}, {0.5, 4, "██", "##"}, {0.63, 4, "██▌", "###"}, {0.1, 4, "▌", ""}, {0.01, 4, "", ""}, {0.99, 6, "██████", "######"},
	} {
		if got := (Layout{80, true}).bar(c.part, c.width); got != c.blocks {
			t.Errorf("%v of %d: %q, want %q", c.part, c.width, got, c.blocks)
		}
		if got := (Layout{80, false}).bar(c.part, c.width); got != c.ascii {
			t.Errorf("%v of %d: %q, want %q", c.part, c.width, got, c.ascii)
		}
	}
}
