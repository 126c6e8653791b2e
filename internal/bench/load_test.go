package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

func startTestLoad(t *testing.T) *load {
	t.Helper()
	l, err := startLoad(testLoad())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestLoad(t *testing.T) {
	l := startTestLoad(t)
	path := filepath.Join(t.TempDir(), "file")
	const area = 3 << 20
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := l.do(loadOrder{Path: path, Area: area, Write: true, Bytes: loadMaxBytes, Depth: 2, Once: true})
	if err != nil || a.Bytes != area || a.Time <= 0 {
		t.Fatalf("fill: %+v, %v", a, err)
	}
	content, err := os.ReadFile(path)
	if err != nil || len(content) != area || allZero(content[area-4096:]) {
		t.Fatalf("the file has %d bytes: %v", len(content), err)
	}
	for _, o := range []loadOrder{
		{Bytes: 4096, Depth: 1},
		{Bytes: 4096, Depth: loadMaxDepth, Random: true, Write: true},
		{Bytes: loadMaxBytes, Depth: 3, Time: time.Millisecond},
	} {
		o.Path, o.Area = path, area
		a, err := l.do(o)
		if err != nil || a.Bytes < int64(o.Depth*o.Bytes) || a.Bytes%int64(o.Bytes) != 0 || a.Time < o.Time {
			t.Errorf("%+v: %+v, %v", o, a, err)
		}
	}
	if after, err := os.ReadFile(path); err != nil || bytes.Equal(after, content) {
		t.Errorf("writing at random changed nothing: %v", err)
	}
	for what, o := range map[string]loadOrder{
		"no such file": {Path: path + "x", Area: area, Bytes: 4096, Depth: 1},
		"past the end": {Path: path, Area: 4 << 20, Bytes: loadMaxBytes, Depth: 1, Time: time.Minute},
		"too much":     {Path: path, Area: area, Bytes: 4096, Depth: loadMaxDepth + 1},
		"nothing":      {Path: path, Area: area, Depth: 1},
	} {
		if a, err := l.do(o); err == nil {
			t.Errorf("%s: %+v", what, a)
		}
	}
}

// In sequence the threads take turns, at random each goes its own way; all stay
// in the area.
func TestLoadPlaces(t *testing.T) {
	o := loadOrder{Area: 10*4096 + 512, Bytes: 4096}
	var taken atomic.Int64
	first, second := o.places(0, &taken), o.places(1, &taken)
	for i := range int64(24) {
		next := first
		if i%3 == 0 {
			next = second
		}
		if off, ok := next(); !ok || off != i%10*4096 {
			t.Fatalf("request %d goes to %d", i, off)
		}
	}
	o.Random = true
	seen := map[int64]bool{}
	next := o.places(0, &taken)
	for range 1000 {
		off, ok := next()
		if !ok || off%4096 != 0 || off < 0 || off > 9*4096 {
			t.Fatalf("a request goes to %d", off)
		}
		seen[off] = true
	}
	if len(seen) != 10 {
		t.Errorf("1000 requests went to %d of 10 places", len(seen))
	}
	o = loadOrder{Area: 8192, Bytes: 4096, Once: true}
	taken.Store(0)
	next = o.places(0, &taken)
	for i, want := range []bool{true, true, false, false} {
		if _, ok := next(); ok != want {
			t.Errorf("request %d of 2 is made: %v", i, ok)
		}
	}
}
