package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const docs = "../../../docs/bench"

func committed(t *testing.T) *figures {
	t.Helper()
	f, err := readFigures(filepath.Join(docs, figuresName))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCommittedPlots: they are what this program makes of the committed figures.
func TestCommittedPlots(t *testing.T) {
	const largestFigures, largestPlot = 300_000, 60_000
	f := committed(t)
	text, err := os.ReadFile(filepath.Join(docs, figuresName))
	if err != nil || len(text) > largestFigures {
		t.Errorf("%d bytes of figures, %v", len(text), err)
	}
	if !bytes.Equal(f.marshal(), text) {
		t.Errorf("%s is not as this program writes it", figuresName)
	}
	want := []string{figuresName}
	for _, p := range plots {
		want = append(want, p.name)
		svg, err := p.draw(f)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		is, err := os.ReadFile(filepath.Join(docs, p.name))
		if err != nil || !bytes.Equal(is, svg) {
			t.Errorf("%s is not what the figures make (%v): make plots draws it anew", p.name, err)
		}
		if len(svg) > largestPlot {
			t.Errorf("%s has %d bytes", p.name, len(svg))
		}
	}
	entries, err := os.ReadDir(docs)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s has %v, want %v", docs, got, want)
	}
}

// TestPlotsAreLegible: on white whatever is behind, with text as text, and with
// where and when the figures come from.
func TestPlotsAreLegible(t *testing.T) {
	f := committed(t)
	for _, p := range plots {
		svg, err := p.draw(f)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		first := "" // what is drawn first
		inText := false
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			switch x := token.(type) {
			case xml.StartElement:
				inText = x.Name.Local == "text"
				if first == "" && (inText || x.Name.Local == "path") {
					for _, a := range x.Attr {
						first += a.Name.Local + "=" + a.Value + " "
					}
				}
			case xml.CharData:
				if inText {
					texts = append(texts, string(x))
				}
			case xml.EndElement:
				inText = false
			}
		}
		if !strings.Contains(first, "fill:#FFFFFF") {
			t.Errorf("%s: first comes %s", p.name, first)
		}
		all := strings.Join(texts, "\n")
		for _, want := range []string{f.Machine.CPU, f.Machine.Kernel, f.Date, "portable Go"} {
			if !strings.Contains(all, want) {
				t.Errorf("%s does not say %q", p.name, want)
			}
		}
		if !strings.Contains(all, "MB/s") && !strings.Contains(all, "cycles per byte") {
			t.Errorf("%s has no unit: %s", p.name, all)
		}
	}
}

// TestMissingFigures: plots without a part of what they show are not drawn.
func TestMissingFigures(t *testing.T) {
	all := committed(t)
	without := func(missing func(task) bool) *figures {
		f := *all
		f.Results = slices.DeleteFunc(slices.Clone(all.Results), func(r result) bool { return missing(r.task) })
		return &f
	}
	for _, suite := range []string{"serpent", "sectors", "sha1", "kdf", "unlock", "volume"} {
		folder := t.TempDir()
		f := without(func(t task) bool { return t.Suite == suite })
		if err := os.WriteFile(filepath.Join(folder, figuresName), f.marshal(), 0o600); err != nil {
			t.Fatal(err)
		}
		err := run([]string{folder})
		if err == nil || !strings.HasSuffix(err.Error(), "no figures of the suite "+suite) {
			t.Errorf("without %s: error %v", suite, err)
		}
		if left, _ := filepath.Glob(folder + "/*.svg"); len(left) > 0 {
			t.Errorf("without %s: %v have been drawn", suite, left)
		}
	}
	for name, missing := range map[string]func(task) bool{
		"kernels.svg":  func(t task) bool { return t.Suite == "sectors" && t.Mode == "cbc" && t.Kernel == "generic" },
		"requests.svg": func(t task) bool { return t.Suite == "serpent" && t.Bytes == 16 && t.Kernel == "generic" },
		"sha1.svg":     func(t task) bool { return t.Suite == "kdf" && t.Bytes == 32 && t.Kernel == "generic" },
		"volume.svg":   func(t task) bool { return t.Suite == "volume" && t.Depth == 8 && t.Kernel == "null" },
	} {
		for _, p := range plots {
			_, err := p.draw(without(missing))
			if (err != nil) != (p.name == name) {
				t.Errorf("without a part of %s: %s: error %v", name, p.name, err)
			}
		}
	}
}

const someRun = `{"machine": {"cpu": "C", "cores": 2, "kernel": "L"}, "results": [
{"suite": "kdf", "hash": "sha1", "kernel": "auto", "bytes": 20, "iterations_per_second": SPEED, "ratio_to_stdlib": 2},
{"suite": "kdf", "hash": "sha1", "kernel": "auto", "bytes": 32, "iterations_per_second": 7, "ratio_to_stdlib": SPEED}]}`

func runFiles(t *testing.T, texts ...string) (paths []string) {
	t.Helper()
	for i, text := range texts {
		path := filepath.Join(t.TempDir(), "run.json")
		day := time.Date(2026, 3, 10-i, 12, 0, 0, 0, time.UTC)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, day, day)); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func TestMerge(t *testing.T) {
	speed := func(x string) string { return strings.ReplaceAll(someRun, "SPEED", x) }
	f, err := merge(runFiles(t, speed("30"), speed("10"), speed("11")))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"machine": {"cpu":"C","cores":2,"kernel":"L"},
"date": "2026-03-10",
"results": [
{"suite":"kdf","hash":"sha1","kernel":"auto","bytes":20,"iterations_per_second":11,"ratio_to_stdlib":2},
{"suite":"kdf","hash":"sha1","kernel":"auto","bytes":32,"iterations_per_second":7,"ratio_to_stdlib":11}
]}
`
	if got := string(f.marshal()); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if f, err := merge(runFiles(t, speed("30"), speed("10"))); err != nil || f.Results[0].IterationsPerSecond != 20 {
		t.Errorf("of two runs: %+v, %v", f, err)
	}
	for what, texts := range map[string][]string{
		"another machine":  {speed("1"), strings.Replace(speed("1"), `"C"`, `"D"`, 1)},
		"an unknown field": {strings.Replace(speed("1"), "hash", "hush", 1)},
		"no JSON":          {""},
	} {
		if _, err := merge(runFiles(t, texts...)); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// TestRun: from runs to files, and again the same from what it has written.
func TestRun(t *testing.T) {
	folder, again := t.TempDir(), t.TempDir()
	if err := run([]string{folder, filepath.Join(docs, figuresName)}); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(folder, figuresName))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(again, figuresName), written, 0o600), run([]string{again})); err != nil {
		t.Fatal(err)
	}
	for _, p := range plots {
		a, errA := os.ReadFile(filepath.Join(folder, p.name))
		b, errB := os.ReadFile(filepath.Join(again, p.name))
		if err := errors.Join(errA, errB); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: two that are not the same, %v", p.name, err)
		}
	}
	if err := run([]string{t.TempDir(), runFiles(t, someRun)[0]}); err == nil {
		t.Error("a run without most suites: no error")
	}
	if err := run(nil); err == nil {
		t.Error("no folder: no error")
	}
}
