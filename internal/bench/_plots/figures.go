package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

const figuresName = "figures.json"

// figures are those of one machine, as serpcrypt bench --json prints them, and
// when they were taken.
type figures struct {
	Machine machine  `json:"machine"`
	Date    string   `json:"date"` // 2006-01-02
	Results []result `json:"results"`
}

type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
}

type result struct {
	task
	values
}

// task is what was measured.
type task struct {
	Suite       string `json:"suite"`
	Storage     string `json:"storage,omitempty"`
	Path        string `json:"path,omitempty"`
	Hash        string `json:"hash,omitempty"`
	Kernel      string `json:"kernel"`
	Mode        string `json:"mode,omitempty"`
	Op          string `json:"op,omitempty"`
	Pattern     string `json:"pattern,omitempty"`
	SectorSize  int    `json:"sector_size,omitempty"`
	Bytes       int    `json:"bytes,omitempty"`
	UpdateBytes int    `json:"update_bytes,omitempty"`
	Threads     int    `json:"threads,omitempty"`
	Slots       int    `json:"slots,omitempty"`
	Depth       int    `json:"depth,omitempty"`
}

type values struct {
	BytesPerSecond      float64 `json:"bytes_per_second,omitempty"`
	IterationsPerSecond float64 `json:"iterations_per_second,omitempty"`
	CyclesPerByte       float64 `json:"cycles_per_byte,omitempty"`
	AddedCyclesPerByte  float64 `json:"added_cycles_per_byte,omitempty"`
	RatioToGeneric      float64 `json:"ratio_to_generic,omitempty"`
	RatioToStdlib       float64 `json:"ratio_to_stdlib,omitempty"`
	RatioToNull         float64 `json:"ratio_to_null,omitempty"`
	TimeRatioToOneSlot  float64 `json:"time_ratio_to_one_slot,omitempty"`
}

func (v *values) all() []*float64 {
	return []*float64{&v.BytesPerSecond, &v.IterationsPerSecond, &v.CyclesPerByte, &v.AddedCyclesPerByte,
		&v.RatioToGeneric, &v.RatioToStdlib, &v.RatioToNull, &v.TimeRatioToOneSlot}
}

// readFigures reads a file of this program's, or one that bench has printed.
func readFigures(path string) (*figures, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &figures{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // else a median would lack what the plots do not know
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// merge returns the medians of runs, which need not have the same suites. Their
// date is that of the latest file.
func merge(paths []string) (*figures, error) {
	merged := &figures{}
	runs := map[task][]values{}
	var latest time.Time
	for i, path := range paths {
		f, err := readFigures(path)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if info.ModTime().After(latest) {
			latest = info.ModTime()
		}
		if i > 0 && f.Machine != merged.Machine {
			return nil, fmt.Errorf("%s is from another machine than %s", path, paths[0])
		}
		merged.Machine = f.Machine
		for _, r := range f.Results {
			if runs[r.task] == nil {
				merged.Results = append(merged.Results, r)
			}
			runs[r.task] = append(runs[r.task], r.values)
		}
	}
	for i := range merged.Results {
		r := &merged.Results[i]
		r.values = median(runs[r.task])
	}
	merged.Date = latest.UTC().Format(time.DateOnly)
	return merged, nil
}

// median is that of each value by itself.
func median(of []values) (m values) {
	for i, to := range m.all() {
		var list []float64
		for _, v := range of {
			list = append(list, *v.all()[i])
		}
		slices.Sort(list)
		n := len(list)
		*to = (list[(n-1)/2] + list[n/2]) / 2
	}
	return m
}

// marshal has a line for each result.
func (f *figures) marshal() []byte {
	line := func(v any) []byte {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // there is nothing in it that could not be marshalled
		}
		return text
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\"machine\": %s,\n\"date\": %q,\n\"results\": [\n", line(f.Machine), f.Date)
	for i, r := range f.Results {
		out.Write(line(r))
		if i < len(f.Results)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("]}\n")
	return out.Bytes()
}

// complete fails if a suite is missing.
func (f *figures) complete() error {
	for _, suite := range []string{"serpent", "sectors", "sha1", "kdf", "unlock", "volume"} {
		if !slices.ContainsFunc(f.Results, func(r result) bool { return r.Suite == suite }) {
			return fmt.Errorf("there are no figures of the suite %s", suite)
		}
	}
	return nil
}

// find returns the values of a task.
func (f *figures) find(t task) (values, error) {
	for _, r := range f.Results {
		if r.task == t {
			return r.values, nil
		}
	}
	return values{}, fmt.Errorf("there are no figures of %+v", t)
}

// kernels returns those of the results that are wanted, in their order.
func (f *figures) kernels(wanted func(task) bool) (list []string) {
	for _, r := range f.Results {
		if wanted(r.task) && !slices.Contains(list, r.Kernel) {
			list = append(list, r.Kernel)
		}
	}
	return list
}
