package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"serpcrypt/internal/skip"
)

// TestEndWhileInUse sends SIGTERM to a server whose files programs work in and will
// not let go of, as a system does that goes down. It puts all on the disk, takes the
// files away from the programs, and ends.
func TestEndWhileInUse(t *testing.T) {
	if politeTime+2*lastTime > 9*time.Second {
		t.Errorf("a server may take %v and more to end, and a system that goes down grants 10 s", politeTime+2*lastTime)
	}
	for _, c := range []struct {
		name string
		raw  bool
	}{{"raw", true}, {"ext4", false}} {
		t.Run(c.name, func(t *testing.T) {
			if !c.raw && os.Geteuid() != 0 {
				skip.Skip(t, "only root can mount a file system with a journal")
			}
			m := newMortal(t, c.raw, true)
			holder := exec.Command("sleep", "1000")
			holder.Dir = m.path("box")
			if err := holder.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				holder.Process.Kill()
				holder.Wait()
			}()
			m.workUntil(func() {
				start := time.Now()
				f := m.theOpen()
				if err := syscall.Kill(f.state.PID, syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				for f.entry.alive() {
					if time.Since(start) > hangLimit {
						m.abortRequests()
						t.Fatal("the server does not end")
					}
					time.Sleep(10 * time.Millisecond)
				}
				t.Logf("it took %v", time.Since(start).Round(time.Millisecond))
			})
			if lost := m.disk.CutPower(0); c.raw && lost > 0 {
				t.Errorf("%d blocks are not on the disk", lost)
			}
			if found, err := findOpen(); err != nil || len(found) > 0 {
				t.Errorf("open are %+v, %v", found, err)
			}
			m.clean(m.keptOpen...)
			m.open()
			m.check()
			m.ends(0, "serpcrypt", "close", "box")
			m.fsck()
		})
	}
}
