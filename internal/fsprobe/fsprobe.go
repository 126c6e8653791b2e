// Package fsprobe names what lies on a disk by its signature: a file system,
// swap space, an encrypted container or a partition table.
//
// It is meant for hostile disks. It reads fixed small pieces at fixed places
// and follows no pointer; sizes that a disk states are reported, never used.
package fsprobe

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
)

// Found is what a disk holds.
type Found struct {
	Name string // as mount and blkid call it: "ext4", "vfat", "swap", "LUKS1", "MBR", ...
	Size int64  // bytes from the disk's start that it says it takes, 0 if it doesn't say
}

// IsFileSystem reports whether f can be mounted, as swap space, containers and
// tables of partitions cannot.
func (f *Found) IsFileSystem() bool {
	switch f.Name {
	case "LUKS", "LUKS1", "LUKS2", "swap", "LVM2_member", "GPT", "MBR", UnfinishedImport:
		return false
	}
	return true
}

// headBytes holds every signature but those of btrfs and of swap space made
// for pages of 64 KiB, which lie just behind.
const headBytes = 64<<10 + 4096

// A prober returns nil if the disk's first headBytes, padded with zeros, are
// not of its kind.
type prober func(head []byte) *Found

// The order settles what two claim: what is not yet whole, a container, then file
// systems, then the partition tables that some file systems carry for the sake of
// booting.
var probers = []prober{
	unfinished, luks, xfs, squashfs, erofs, exfat, ntfs, btrfs, ext, f2fs, nilfs2, udf, iso9660, swap, lvm, vfat, gpt, mbr,
}

// Probe returns what the disk r holds, or nil if that is nothing known. Only
// reading can fail; a disk that is too short for a signature doesn't have it.
func Probe(r io.ReaderAt) (*Found, error) {
	all, err := All(r)
	if len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// All returns everything that the disk r may hold, what Probe returns first. An
// older signature may be left where something new does not overwrite it: a
// partition table leaves a file system's.
func All(r io.ReaderAt) ([]Found, error) {
	head := make([]byte, headBytes)
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("fsprobe: %w", err)
	}
	var all []Found
	for _, probe := range probers {
		if found := probe(head); found != nil {
			all = append(all, *found)
		}
	}
	return all, nil
}

// product returns a*b, or 0, which means not known, if that is beyond any disk.
func product(a, b uint64) int64 {
	high, low := bits.Mul64(a, b)
	if high != 0 || low > math.MaxInt64 {
		return 0
	}
	return int64(low)
}
