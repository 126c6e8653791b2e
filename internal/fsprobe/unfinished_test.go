package fsprobe

import (
	"bytes"
	"testing"
)

// TestUnfinishedMark: whatever else seems to be there counts for nothing.
func TestUnfinishedMark(t *testing.T) {
	for _, name := range []string{"ext4", "btrfs", "iso9660", "swap"} {
		disk := testDisk(t, name)
		copy(disk, UnfinishedMark())
		found, err := Probe(bytes.NewReader(disk))
		if err != nil || found == nil || found.Name != UnfinishedImport || found.Size != 0 || found.IsFileSystem() {
			t.Errorf("over %s: got %v, %v", name, found, err)
		}
	}
	if mark := UnfinishedMark(); len(mark) != 512 {
		t.Errorf("the mark has %d bytes, and should be a sector", len(mark))
	}
}
