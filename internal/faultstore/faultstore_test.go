package faultstore

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"
)

func pattern(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }

func TestReadsWhatWasWritten(t *testing.T) {
	s := New(make([]byte, 2000))
	if n, err := s.WriteAt(pattern(7, 1000), 900); n != 1000 || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	want := make([]byte, 2000)
	copy(want[900:], pattern(7, 1000))
	got := make([]byte, 2100)
	if n, err := s.ReadAt(got, 0); n != 2000 || err != io.EOF || !bytes.Equal(got[:n], want) {
		t.Errorf("read %d, %v: %x", n, err, got)
	}
	if n, err := s.ReadAt(got[:1], 2000); n != 0 || err != io.EOF {
		t.Errorf("read past the end: %d, %v", n, err)
	}
	if n, err := s.WriteAt(pattern(8, 10), 1995); n != 5 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("wrote past the end: %d, %v", n, err)
	}
	if size, err := s.Size(); size != 2000 || err != nil {
		t.Errorf("size %d, %v", size, err)
	}
}

func TestFaults(t *testing.T) {
	s := New(make([]byte, 2048))
	var fault error
	var seen []Op
	s.Fault = func(op Op) error { seen = append(seen, op); return fault }

	fault = syscall.EIO
	if n, err := s.WriteAt(pattern(1, 512), 512); n != 0 || err != syscall.EIO {
		t.Errorf("write: %d, %v", n, err)
	}
	if n, err := s.ReadAt(make([]byte, 100), 5); n != 0 || err != syscall.EIO {
		t.Errorf("read: %d, %v", n, err)
	}
	if err := s.Sync(); err != syscall.EIO {
		t.Errorf("sync: %v", err)
	}
	fault = Short(100)
	if n, err := s.WriteAt(pattern(2, 512), 0); n != 100 || err != fault {
		t.Errorf("short write: %d, %v", n, err)
	}
	if want := append(pattern(2, 100), make([]byte, 1948)...); !bytes.Equal(s.Bytes(), want) {
		t.Error("the writes that failed left something else than the 100 bytes of the short one")
	}
	if n, err := s.WriteAt(make([]byte, 100), 600); n != 100 || err != nil {
		t.Errorf("write that is shorter: %d, %v", n, err)
	}
	want := []Op{{Write, 512, 512}, {Read, 5, 100}, {Kind: Sync}, {Write, 0, 512}, {Write, 600, 100}}
	if len(seen) != len(want) {
		t.Fatalf("saw %v, want %v", seen, want)
	}
	for i := range want {
		if seen[i] != want[i] {
			t.Errorf("saw %v, want %v", seen[i], want[i])
		}
	}
}

func TestPowerCut(t *testing.T) {
	s := New(pattern('0', 4*SectorSize))
	write := func(b byte, from, sectors int) error {
		_, err := s.WriteAt(pattern(b, sectors*SectorSize), int64(from*SectorSize))
		return err
	}
	sync := func() error { return s.Sync() }
	if err := errors.Join(write('1', 0, 2), sync(), write('2', 1, 2)); err != nil {
		t.Fatal(err)
	}
	s.Fault = func(op Op) error { return ErrPower }
	if err := write('3', 2, 1); err != ErrPower {
		t.Errorf("the write that meets the cut: %v", err)
	}
	s.Fault = nil
	if _, err := s.ReadAt(make([]byte, 1), 0); err != ErrPower {
		t.Errorf("read after the cut: %v", err)
	}
	if err := sync(); err != ErrPower {
		t.Errorf("sync after the cut: %v", err)
	}

	summary := func(s *Store) string {
		var sectors []byte
		for i := range 4 {
			sectors = append(sectors, s.sector(i)[0])
		}
		return string(sectors)
	}
	if got := summary(s.AfterPowerCut(Oldest)); got != "1100" {
		t.Errorf("what was synced is %s, want 1100", got)
	}
	if got := summary(s.AfterPowerCut(Newest)); got != "1230" {
		t.Errorf("all is %s, want 1230", got)
	}
	possible := map[string]bool{"1100": true, "1120": true, "1130": true, "1200": true, "1220": true, "1230": true}
	seen := map[string]bool{}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		got := summary(s.AfterPowerCut(random.IntN))
		seen[got] = true
		if !possible[got] {
			t.Fatalf("impossible: %s", got)
		}
	}
	if len(seen) != len(possible) {
		t.Errorf("seen only %v", seen)
	}
}

func TestPowerCuts(t *testing.T) {
	s := New(pattern('0', 4*SectorSize))
	for _, text := range []string{"1", "2", "2"} { // the last one changes nothing
		if _, err := s.WriteAt(pattern(text[0], SectorSize), 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.WriteAt(pattern('7', 2*SectorSize), 2*SectorSize); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ most, disks, distinct int }{{12, 12, 12}, {100, 12, 12}, {11, 11, 2}, {2, 2, 2}} {
		seen := map[string]bool{}
		n := 0
		for disk := range s.AfterPowerCuts(c.most, random) {
			n++
			seen[string(disk.Bytes())] = true
		}
		if n != c.disks || len(seen) < c.distinct {
			t.Errorf("at most %d: %d disks, %d of them distinct, want %d and %d", c.most, n, len(seen), c.disks, c.distinct)
		}
		if !seen[string(s.Bytes())] || !seen[string(pattern('0', 4*SectorSize))] {
			t.Errorf("at most %d: an extreme is missing", c.most)
		}
	}
	n := 0
	for range s.AfterPowerCuts(12, random) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("stopped after %d", n)
	}
}
