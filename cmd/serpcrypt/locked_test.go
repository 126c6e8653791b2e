package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/child"
	"serpcrypt/internal/skip"
	"serpcrypt/volume"
)

// qemuIO starts a qemu-io that has the image open until the test is done.
func qemuIO(t *testing.T, path string, options ...string) *child.Child {
	t.Helper()
	return child.Start(t, exec.Command("qemu-io", append(options, "-f", "raw", path)...), "read 0 512\n", "read 512/512 bytes")
}

// useCommands are those that need the payload, and whether they write.
func useCommands(t *testing.T, box string) map[bool][][]string {
	out := filepath.Join(t.TempDir(), "out")
	return map[bool][][]string{
		false: {{"export", box, out}, {"verify", box}},
		true:  {{"import", os.DevNull, box}, {"create", "--force", "-q", "--size", "3M", box}, {"resize", box, "8M"}},
	}
}

// TestQemuHoldsContainer: what qemu has open is in use.
func TestQemuHoldsContainer(t *testing.T) {
	newQemu(t)
	for name, options := range map[string][]string{"writes": nil, "reads": {"-r"}} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t)
			holder := qemuIO(t, box, options...)
			for writes, commands := range useCommands(t, box) {
				for _, args := range commands {
					o := serpcrypt(t, testPassphrase, args...)
					if !writes && name == "reads" {
						o.must(t, 0)
						continue
					}
					o.must(t, exitBusy)
					want := fmt.Sprintf("in use: %s, by qemu-io (%d)", box, holder.Process.Pid)
					if !strings.Contains(o.stderr, want) || !strings.Contains(o.stderr, "hint: try again when that has ended") {
						t.Errorf("%v: no %q in\n%s", args, want, o.stderr)
					}
				}
			}
		})
	}
}

// TestQemuFindsLocks: what we have open, qemu refuses, or reads beside us.
func TestQemuFindsLocks(t *testing.T) {
	newQemu(t)
	box := newBox(t)
	for _, c := range []struct {
		name     string
		readOnly bool
	}{{"written", false}, {"read", true}} {
		t.Run(c.name, func(t *testing.T) {
			f, err := volume.OpenFile(box, c.readOnly)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, q := range []struct {
				args   []string
				writes bool
			}{
				{[]string{"qemu-io", "-f", "raw", "-c", "write 0 512", box}, true},
				{[]string{"qemu-io", "-r", "-f", "raw", "-c", "read 0 512", box}, false},
				{[]string{"qemu-img", "convert", "-f", "raw", "-O", "raw", box, box + ".copy"}, false},
				{[]string{"qemu-img", "resize", "-f", "raw", box, "+1M"}, true},
			} {
				out, err := exec.Command(q.args[0], q.args[1:]...).CombinedOutput()
				refused := err != nil && strings.Contains(string(out), " lock")
				if want := q.writes || !c.readOnly; refused != want || !want && err != nil {
					t.Errorf("%v: refused is %v, want %v: %v\n%s", q.args, refused, want, err, out)
				}
			}
		})
	}
}

// loopOn makes a loop device of a file.
func loopOn(t *testing.T, path string, options ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can make a loop device")
	}
	out, err := exec.Command("losetup", append(options, "--find", "--show", path)...).CombinedOutput()
	if err != nil {
		skip.Skip(t, "no loop device: "+string(out))
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("%s", out)
		}
	})
	return device
}

// TestLoopDeviceHoldsContainer: cryptsetup makes such a device of a file, and
// neither locks it.
func TestLoopDeviceHoldsContainer(t *testing.T) {
	for name, options := range map[string][]string{"writable": nil, "read-only": {"--read-only"}} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t)
			device := loopOn(t, box, options...)
			for writes, commands := range useCommands(t, box) {
				for _, args := range commands {
					o := serpcrypt(t, testPassphrase, args...)
					if !writes && name == "read-only" {
						o.must(t, 0)
						continue
					}
					o.must(t, exitBusy)
					if want := "in use: " + box + ", as the loop device " + device; !strings.Contains(o.stderr, want) ||
						!strings.Contains(o.stderr, "hint: losetup --detach "+device) {
						t.Errorf("%v: no %q with a hint in\n%s", args, want, o.stderr)
					}
				}
			}
			// The device itself is as good a name of the container.
			serpcrypt(t, testPassphrase, "verify", device).must(t, 0)
			serpcrypt(t, "", "dump", box).must(t, 0)
		})
	}
}

// TestLoopDeviceOfOpenContainer: nor does a loop device get around the lock.
func TestLoopDeviceOfOpenContainer(t *testing.T) {
	box := newBox(t)
	device := loopOn(t, box)
	for _, readOnly := range []bool{false, true} {
		f, err := volume.OpenFile(box, readOnly)
		if err != nil {
			t.Fatal(err)
		}
		for writes, commands := range useCommands(t, device) {
			for _, args := range commands {
				if args[0] == "create" || args[0] == "resize" {
					args = []string{"create", "--force", "-q", device}
				}
				o := serpcrypt(t, testPassphrase, args...)
				if !writes && readOnly {
					o.must(t, 0)
					continue
				}
				o.must(t, exitBusy)
				if want := device + " is made of a file in use: in use: " + box; !strings.Contains(o.stderr, want) {
					t.Errorf("%v: no %q in\n%s", args, want, o.stderr)
				}
			}
		}
		f.Close()
	}
	serpcrypt(t, testPassphrase, "verify", device).must(t, 0)
}

// TestMountedDeviceIsNamed: the message says where, and the hint how to end it.
func TestMountedDeviceIsNamed(t *testing.T) {
	mkfs, err := findMkfs("ext4")
	if err != nil {
		skip.Skip(t, err.Error())
	}
	box := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(box, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs, "-q", box).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	device := loopOn(t, box)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(device, dir, "ext4", 0, ""); err != nil {
		skip.Skip(t, "nothing can be mounted here: "+err.Error())
	}
	defer unix.Unmount(dir, 0)
	for path, want := range map[string]string{
		device: "error: in use: " + device + ", mounted at " + dir + "\nserpcrypt: hint: umount " + dir + "\n",
		box:    "error: in use: " + box + ", as the loop device " + device + "\nserpcrypt: hint: umount " + dir + ", then losetup --detach " + device + "\n",
	} {
		if o := serpcrypt(t, testPassphrase, "verify", path).must(t, exitBusy); !strings.Contains(o.stderr, want) {
			t.Errorf("no %q in\n%s", want, o.stderr)
		}
	}
}

// TestHolders reads folders such as those in /sys: there is no device mapper
// everywhere.
func TestHolders(t *testing.T) {
	for _, c := range []struct{ holder, name, uuid, use, end string }{
		{"dm-0", "my box", "CRYPT-LUKS2-0123-my box", "by cryptsetup as my box", "cryptsetup close 'my box'"},
		{"dm-1", "vg-root", "LVM-0123", "by the device mapper as vg-root", "dmsetup info vg-root shows what that is"},
		{"md0", "", "", "by /dev/md0", "lsblk shows what that is"},
	} {
		folder := t.TempDir()
		dm := filepath.Join(folder, "holders", c.holder, "dm")
		if err := os.MkdirAll(dm, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"name": c.name, "uuid": c.uuid} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dm, name), []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if use, end := holderIn(folder); use != c.use || end != c.end {
			t.Errorf("%s: %q, %q; want %q, %q", c.holder, use, end, c.use, c.end)
		}
	}
	if use, _ := holderIn(t.TempDir()); use != "" {
		t.Errorf("nothing is %q", use)
	}
}
