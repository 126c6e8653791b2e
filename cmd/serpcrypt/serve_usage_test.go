package main

import (
	"os"
	"testing"
	"time"
)

func TestUsageMeter(t *testing.T) {
	var m usageMeter
	start := time.Now()
	for i, step := range []struct {
		second        float64
		read, written int64
		want          usage
	}{
		{0, 100, 0, usage{ReadBytes: 100}}, // since when is unknown
		{1, 300, 10, usage{300, 10, 200, 10, 0}},
		{2, 300, 30, usage{300, 30, 100, 15, 0}},
		{4, 500, 30, usage{500, 30, 100, 7.5, 0}}, // a second was late
		{5, 500, 30, usage{500, 30, 80, 6, 0}},
		{6, 500, 30, usage{500, 30, 400. / 6, 5, 0}}, // five steps back
		{7, 500, 30, usage{500, 30, 200. / 6, 20. / 6, 0}},
		{8, 500, 30, usage{500, 30, 200. / 6, 0, 0}},
		{9, 500, 30, usage{500, 30, 0, 0, 0}},
		{10, 500, 30, usage{500, 30, 0, 0, 0}},
	} {
		at := start.Add(time.Duration(step.second * float64(time.Second)))
		if got := m.add(step.read, step.written, at); got != step.want {
			t.Errorf("step %d: %+v, want %+v", i, got, step.want)
		}
	}
}

func TestUsageFile(t *testing.T) {
	e, lock, err := testRuntime(t).newEntry(openState{})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if u, err := e.readUsage(); err != nil || u != (usage{}) {
		t.Errorf("before it is used: %+v, %v", u, err)
	}
	want := usage{ReadBytes: 1 << 40, WrittenBytes: 2, ReadRate: 0.5, WriteRate: 3e9, FailedWrites: 7}
	if err := e.writeUsage(want); err != nil {
		t.Fatal(err)
	}
	if u, err := e.readUsage(); err != nil || u != want {
		t.Errorf("%+v, %v; want %+v", u, err, want)
	}
	if u := (openContainer{entry: e, alive: true}).usage(); u != want {
		t.Errorf("of a server that lives: %+v, want %+v", u, want)
	}
	want.ReadRate, want.WriteRate = 0, 0
	if u := (openContainer{entry: e}).usage(); u != want {
		t.Errorf("of a dead server: %+v, want %+v", u, want)
	}
	if err := os.WriteFile(e.usagePath(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.readUsage(); err == nil {
		t.Error("a damaged file is no error")
	}
	if err := e.remove(); err != nil {
		t.Error(err)
	}
}
