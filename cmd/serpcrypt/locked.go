package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"serpcrypt/internal/loopdev"
	"serpcrypt/internal/mounts"
	"serpcrypt/internal/procs"
	"serpcrypt/volume"
)

// programName is what the kernel calls the processes of this program.
const programName = "serpcrypt"

// openLocked is volume.OpenFile for what a person names. It also refuses what a
// loop device is made of, which holds no lock: one that can be written counts as
// somebody who writes, any other as somebody who reads. Who makes one later
// cannot be kept from it.
func openLocked(path string, readOnly bool) (*volume.File, error) {
	f, err := volume.OpenFile(path, readOnly)
	if errors.Is(err, volume.ErrBusy) {
		return nil, explainBusy(path, err)
	}
	if err != nil {
		return nil, err
	}
	err = refuseLoopDevices(f.OSFile(), path, readOnly)
	if err == nil && f.IsDevice() {
		err = refuseBusyBacking(f.OSFile(), path, readOnly)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// refuseLoopDevices refuses a file if a loop device made of it is in the way.
func refuseLoopDevices(file *os.File, path string, readOnly bool) error {
	users, err := loopdev.Users(file)
	if err != nil {
		return err
	}
	for _, u := range users {
		if readOnly && u.ReadOnly {
			continue
		}
		hint := "losetup --detach " + u.Path
		if use, end := deviceUse(u.Path); use != "" {
			hint = end + ", then " + hint
		}
		return failf(exitBusy, hint, "%w: %s, as the loop device %s", volume.ErrBusy, path, u.Path)
	}
	return nil
}

// refuseBusyBacking refuses a loop device whose backing file is locked. It need
// not be held: who opens that file later finds the loop device.
func refuseBusyBacking(device *os.File, path string, readOnly bool) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(device.Fd()), &stat); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	backing := loopdev.Backing(unix.Major(uint64(stat.Rdev)), unix.Minor(uint64(stat.Rdev)))
	if backing == "" {
		return nil
	}
	f, err := volume.OpenFile(backing, readOnly)
	if errors.Is(err, volume.ErrReadOnly) {
		f, err = volume.OpenFile(backing, true)
	}
	if errors.Is(err, volume.ErrBusy) {
		return fmt.Errorf("%s is made of a file in use: %w", path, explainBusy(backing, err))
	}
	if err != nil {
		debugf("%s: backing file: %v", path, err) // removed, or of another user
		return nil
	}
	return f.Close()
}

// explainBusy adds who has the file or device at path in use, as far as this
// user can see.
func explainBusy(path string, err error) error {
	if info, statErr := os.Stat(path); statErr == nil && info.Mode()&os.ModeDevice != 0 {
		if use, end := deviceUse(path); use != "" {
			return failf(exitBusy, end, "%w, %s", err, use)
		}
	}
	resolved, resolveErr := resolvePath(path)
	if resolveErr != nil {
		return err
	}
	users := procs.Using(resolved)
	if len(users) == 0 {
		return err
	}
	err = fmt.Errorf("%w, by %s", err, procs.Join(users))
	for _, u := range users {
		if u.Name == programName {
			return err // the usual hint shows more of it
		}
	}
	return withHint(err, "try again when that has ended")
}

// deviceUse says what a block device is used for, and how to end that, or "".
func deviceUse(path string) (use, end string) {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return "", ""
	}
	major, minor := unix.Major(uint64(stat.Rdev)), unix.Minor(uint64(stat.Rdev))
	if places, err := mounts.OfDevice(int(major), int(minor)); err == nil && len(places) > 0 {
		return "mounted at " + places[0], "umount " + shellQuote(places[0])
	}
	return holderIn(fmt.Sprintf("/sys/dev/block/%d:%d", major, minor))
}

// holderIn is deviceUse for a device that others are made of; folder is the
// device's in /sys.
func holderIn(folder string) (use, end string) {
	holders, _ := filepath.Glob(filepath.Join(folder, "holders", "*"))
	if len(holders) == 0 {
		return "", ""
	}
	holder := holders[0]
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(holder, "dm", name)) // "" if it is none
		return strings.TrimSpace(string(text))
	}
	name := read("name")
	switch {
	case strings.HasPrefix(read("uuid"), "CRYPT-"):
		return "by cryptsetup as " + name, "cryptsetup close " + shellQuote(name)
	case name != "":
		return "by the device mapper as " + name, "dmsetup info " + shellQuote(name) + " shows what that is"
	}
	return "by " + filepath.Join("/dev", filepath.Base(holder)), "lsblk shows what that is"
}
