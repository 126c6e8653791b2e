package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	margin        = vg.Length(10)
	captionHeight = vg.Length(16)
)

// look is how a kernel is drawn, on every plot: colours that differ in lightness
// too, and a sign of its own.
type look struct {
	name  string
	color color.Color
	sign  draw.GlyphDrawer
}

var looks = map[string]look{
	"null":    {"no cipher", rgb(0x222222), draw.CrossGlyph{}},
	"stdlib":  {"Go's library", rgb(0xc9c9c9), draw.PlusGlyph{}},
	"looped":  {"portable, loops", rgb(0xa6a6a6), draw.RingGlyph{}},
	"generic": {"portable Go", rgb(0x7f7f7f), draw.CircleGlyph{}},
	"scalar":  {"scalar", rgb(0xb59a57), draw.BoxGlyph{}},
	"sse2":    {"SSE2", rgb(0x7fb2dc), draw.SquareGlyph{}},
	"avx2":    {"AVX2", rgb(0x2468a8), draw.TriangleGlyph{}},
	"avx512":  {"AVX-512", rgb(0xc0392b), draw.PyramidGlyph{}},
	"shani":   {"SHA-NI", rgb(0x6a3d9a), draw.BoxGlyph{}},
	"auto":    {"as it chooses", rgb(0x2e7d32), draw.RingGlyph{}},
}

func rgb(x uint32) color.Color {
	return color.RGBA{uint8(x >> 16), uint8(x >> 8), uint8(x), 0xff}
}

// lookOf is an error for a kernel that has none yet.
func lookOf(kernel string) (look, error) {
	l, ok := looks[kernel]
	if !ok {
		return l, fmt.Errorf("no look for the kernel %q", kernel)
	}
	return l, nil
}

// newPlot has horizontal lines behind its content.
func newPlot(title, xLabel, yLabel string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, xLabel, yLabel
	p.Title.Padding = 6
	for style, size := range map[*text.Style]vg.Length{
		&p.Title.TextStyle: 11, &p.X.Label.TextStyle: 9, &p.Y.Label.TextStyle: 9,
		&p.X.Tick.Label: 9, &p.Y.Tick.Label: 9, &p.Legend.TextStyle: 9,
	} {
		style.Font.Typeface, style.Font.Variant, style.Font.Size = "Liberation", "Sans", size
	}
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, 2.5 // to the left: who has another font sees other widths
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = rgb(0xdddddd)
	p.Add(grid)
	return p
}

// sheet puts plots in rows on white, with the machine and the date below.
func sheet(f *figures, width, height vg.Length, rows ...[]*plot.Plot) ([]byte, error) {
	canvas := vgsvg.New(width, height)
	whole := draw.New(canvas)
	whole.FillPolygon(color.White, []vg.Point{{}, {X: width}, {X: width, Y: height}, {Y: height}})

	caption := text.Style{Color: rgb(0x444444), Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: 8}, Handler: plot.DefaultTextHandler}
	whole.FillText(caption, vg.Point{X: margin, Y: margin / 2},
		fmt.Sprintf("%s, %d cores, %s; %s", f.Machine.CPU, f.Machine.Cores, f.Machine.Kernel, f.Date))

	tiles := draw.Tiles{Rows: len(rows), Cols: len(rows[0]), PadX: 2 * margin, PadY: 2 * margin}
	area := draw.Crop(whole, margin, -margin, captionHeight, -margin)
	for y, canvases := range plot.Align(rows, tiles, area) {
		for x, c := range canvases {
			rows[y][x].Draw(c)
		}
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, err
	}
	// Text stays text; who lacks this font shall see one like it.
	return bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

// addBars adds a group of bars for each name, a bar in it for each kernel, with
// its value above. valueOf gets the numbers of group and kernel.
func addBars(p *plot.Plot, width vg.Length, groups, kernels []string, valueOf func(group int, kernel string) (float64, error)) error {
	p.NominalX(groups...)
	highest := 0.0
	for k, kernel := range kernels {
		l, err := lookOf(kernel)
		if err != nil {
			return err
		}
		var heights plotter.Values
		labels := plotter.XYLabels{}
		for g := range groups {
			v, err := valueOf(g, kernel)
			if err != nil {
				return err
			}
			heights = append(heights, v)
			highest = max(highest, v)
			labels.XYs = append(labels.XYs, plotter.XY{X: float64(g), Y: v})
			labels.Labels = append(labels.Labels, fmt.Sprintf("%.1f", v))
		}
		bars, err := plotter.NewBarChart(heights, width)
		if err != nil {
			return err
		}
		bars.Color, bars.LineStyle.Width = l.color, 0
		bars.Offset = width * (vg.Length(k) - vg.Length(len(kernels)-1)/2)
		above, err := plotter.NewLabels(labels)
		if err != nil {
			return err
		}
		above.Offset = vg.Point{X: bars.Offset, Y: 2}
		for i := range above.TextStyle {
			above.TextStyle[i].Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 7}
			above.TextStyle[i].XAlign = text.XCenter
		}
		p.Add(bars, above)
		p.Legend.Add(l.name, bars)
	}
	p.X.Min, p.X.Max = -0.5, float64(len(groups))-0.5
	p.Y.Min, p.Y.Max = 0, 1.3*highest // with room for the legend
	p.Y.Tick.Marker = evenTicks(p.Y.Max)
	return nil
}

// addLines adds a line for each kernel on scales of powers. valueOf gets an x and
// a kernel.
func addLines(p *plot.Plot, xs []int, kernels []string, valueOf func(x int, kernel string) (float64, error)) error {
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	var xTicks plot.ConstantTicks
	for _, x := range xs {
		xTicks = append(xTicks, plot.Tick{Value: float64(x), Label: inUnits(x)})
	}
	p.X.Tick.Marker = xTicks
	for _, kernel := range kernels {
		l, err := lookOf(kernel)
		if err != nil {
			return err
		}
		var points plotter.XYs
		for _, x := range xs {
			v, err := valueOf(x, kernel)
			if err != nil {
				return err
			}
			points = append(points, plotter.XY{X: float64(x), Y: v})
		}
		line, signs, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, line.Width = l.color, 1.5
		signs.Color, signs.Shape, signs.Radius = l.color, l.sign, 3
		p.Add(line, signs)
		p.Legend.Add(l.name, line, signs)
	}
	return nil
}

// inUnits is a number of bytes, as short as it can be.
func inUnits(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprint(n)
}

// sameScale gives plots with lines the same scale, with room for the legend.
func sameScale(plots []*plot.Plot) {
	low, high := math.Inf(1), 0.0
	for _, p := range plots {
		low, high = min(low, p.Y.Min), max(high, p.Y.Max)
	}
	ticks := powerTicks(low, 2.5*high)
	for _, p := range plots {
		p.Y.Min, p.Y.Max = ticks[0].Value, ticks[len(ticks)-1].Value
		p.Y.Tick.Marker = ticks
	}
}

// powerTicks are 1, 2 and 5 times the powers of ten from the last one not above
// low to the last one not above high.
func powerTicks(low, high float64) (ticks plot.ConstantTicks) {
	for power := 1.0; power <= high; power *= 10 {
		for _, x := range []float64{power, 2 * power, 5 * power} {
			if x <= low {
				ticks = nil
			}
			if x <= high {
				ticks = append(ticks, plot.Tick{Value: x, Label: fmt.Sprint(x)})
			}
		}
	}
	return ticks
}

// evenTicks are at most eight steps of 1, 2 or 5 times a power of ten.
func evenTicks(high float64) (ticks plot.ConstantTicks) {
	for _, step := range powerTicks(0, high) {
		if high/step.Value <= 8 {
			for x := 0.0; x <= high; x += step.Value {
				ticks = append(ticks, plot.Tick{Value: x, Label: fmt.Sprint(x)})
			}
			return ticks
		}
	}
	return nil
}
