package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"serpcrypt/internal/faultfs"
	"serpcrypt/internal/skip"
)

// mortal is a container whose server dies.
type mortal struct {
	*openSession
	raw      bool
	disk     *faultfs.FS // that it is on, if that loses power as well
	box      string
	keptOpen []string // mount points that stay
	random   *rand.Rand
	writers  []writer
}

// newMortal makes a container, on a disk that loses power or not, for some
// writers.
func newMortal(t *testing.T, raw, losesPower bool, options ...string) *mortal {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := &mortal{openSession: newOpenSession(t), raw: raw, box: "box.luks", random: rand.New(rand.NewPCG(seed, 0))}
	if losesPower {
		m.box, m.keptOpen = "disk/box.luks", []string{"disk"}
		m.disk = m.badDisk()
	}
	create := []string{"serpcrypt", "create", "--size", "40M", "--pbkdf-force-iterations", "1000", "-d", "key", m.box}
	if !raw {
		create = append(create, "--fs", "ext4")
	}
	m.ends(0, append(create, options...)...)
	m.open()
	for i := range 4 {
		random := rand.New(rand.NewPCG(seed, uint64(i+1)))
		var w writer
		var err error
		if raw {
			const n = 2 << 20 / deathBlock
			w, err = newBlockWriter(m.path("box/volume"), i*n, n, random)
		} else {
			w, err = newFileWriter(m.path(fmt.Sprintf("box/writer %d", i)), random)
		}
		if err != nil {
			t.Fatal(err)
		}
		m.writers = append(m.writers, w)
	}
	return m
}

func (m *mortal) open(options ...string) {
	m.t.Helper()
	args := append([]string{"serpcrypt", "open", "-d", "key", m.box, "box"}, options...)
	if m.raw {
		args = append(args, "--raw")
	}
	m.ends(0, args...)
}

// workUntil has all writers work until end makes an end of it.
func (m *mortal) workUntil(end func()) {
	m.t.Helper()
	failed := make(chan error, len(m.writers))
	for _, w := range m.writers {
		go func() { failed <- w.work(context.Background()) }()
	}
	time.Sleep(time.Duration(m.random.IntN(300)) * time.Millisecond)
	if len(failed) > 0 {
		m.t.Fatalf("it fails before its death: %v", <-failed)
	}
	end()
	for range m.writers {
		if err := m.within("a writer", func() error { return <-failed }); !isOfDeath(err) {
			m.t.Errorf("a writer ends with %v", err)
		}
	}
}

func (m *mortal) check() {
	m.t.Helper()
	for _, w := range m.writers {
		if err := m.within("a reader", w.check); err != nil {
			m.t.Error(err)
		}
	}
}

// fsck checks the file system while nobody has it mounted.
func (m *mortal) fsck() {
	m.t.Helper()
	if m.raw {
		return
	}
	m.ends(0, "serpcrypt", "open", "--raw", "-r", "-d", "key", m.box, "box")
	m.ends(0, "e2fsck", "-fn", "box/volume")
	m.ends(0, "serpcrypt", "close", "box")
}

// die kills the server at work, and cuts the power if it can.
func (m *mortal) die() (lost int) {
	m.t.Helper()
	m.workUntil(m.killServer)
	if m.disk != nil {
		lost = m.disk.CutPower(m.random.Uint64() | 1)
	}
	if says := m.ends(0, "serpcrypt", "status", "box").stdout; !strings.Contains(says, "dead") {
		m.t.Errorf("status says\n%s", says)
	}
	return lost
}

// TestDeath kills the server under programs that write and sync, at random. What
// fsync confirmed is there afterwards, also if the power failed at the same time,
// and the file system is whole.
func TestDeath(t *testing.T) {
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can mount a file system with a journal")
	}
	rounds := 5
	if os.Getenv("SERPCRYPT_LONG") == "1" {
		rounds = 100
	} else {
		t.Logf("%d rounds; SERPCRYPT_LONG=1 runs 100", rounds)
	}
	for _, c := range []struct {
		name            string
		raw, losesPower bool
		options         []string
	}{
		{"raw", true, false, []string{"--type", "luks1"}},
		{"raw, power fails", true, true, nil},
		{"ext4", false, false, nil},
		{"ext4, power fails", false, true, []string{"--type", "luks1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMortal(t, c.raw, c.losesPower, c.options...)
			lost := 0
			for round := range rounds {
				lost += m.die()
				if round%2 == 0 {
					m.ends(4, "serpcrypt", "close", "box")
					m.clean(m.keptOpen...)
				}
				m.open() // which cleans up if close has not
				m.check()
				m.ends(0, "serpcrypt", "close", "box")
				m.clean(m.keptOpen...)
				m.fsck()
				m.open()
				if t.Failed() {
					t.Fatalf("in round %d", round)
				}
			}
			m.ends(0, "serpcrypt", "close", "box")
			t.Logf("%d blocks of %d bytes were lost", lost, faultfs.BlockSize)
			if c.raw && c.losesPower && lost == 0 {
				t.Error("no power failure lost anything")
			}
		})
	}
}

// TestPowerFailsAfterClose: what was written and never synced is on the disk as
// soon as close says that all is well.
func TestPowerFailsAfterClose(t *testing.T) {
	for _, raw := range []bool{true, false} {
		t.Run(fmt.Sprintf("raw=%v", raw), func(t *testing.T) {
			m := newMortal(t, raw, true)
			want := make([]byte, 4<<20)
			patterned(want, 0, 1)
			file := "box/volume"
			if !raw {
				file = "box/file"
			}
			if err := writeUnsynced(m.path(file), want); err != nil {
				t.Fatal(err)
			}
			if raw && m.disk.Unsynced() == 0 {
				t.Error("what was not synced is on the disk")
			}
			m.ends(0, "serpcrypt", "close", "box")
			if lost := m.disk.CutPower(0); lost > 0 {
				t.Errorf("%d blocks are not on the disk", lost)
			}
			m.clean(m.keptOpen...)
			m.fsck()
			m.open()
			got := make([]byte, len(want))
			read, err := os.Open(m.path(file))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := read.ReadAt(got, 0); err != nil || string(got) != string(want) {
				t.Errorf("what was written is not there: %v", err)
			}
			read.Close()
			m.ends(0, "serpcrypt", "close", "box")
		})
	}
}

func writeUnsynced(path string, p []byte) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(p, 0); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
