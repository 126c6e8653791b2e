package fsprobe

import (
	"encoding/binary"
	"slices"
)

var le, be = binary.LittleEndian, binary.BigEndian

// hasAt reports whether signature stands at offset.
func hasAt(head []byte, offset int, signature string) bool {
	return string(head[offset:offset+len(signature)]) == signature
}

// ext knows ext2, ext3 and ext4 apart by their features.
// Source: Linux Documentation/filesystems/ext4/super.rst.
func ext(head []byte) *Found {
	const (
		hasJournal = 0x4 // compatible feature

		// What ext3 knows: file types, recovery, meta block groups; sparse
		// superblocks, large files, directory trees.
		ext3Incompatible = 0x2 | 0x4 | 0x10
		ext3ReadOnly     = 0x1 | 0x2 | 0x4

		is64Bit = 0x80 // incompatible feature
	)
	super := head[1024:2048]
	if le.Uint16(super[0x38:]) != 0xEF53 {
		return nil
	}
	compatible, incompatible, readOnly := le.Uint32(super[0x5C:]), le.Uint32(super[0x60:]), le.Uint32(super[0x64:])
	found := &Found{Name: "ext2"}
	switch {
	case incompatible&^ext3Incompatible != 0 || readOnly&^ext3ReadOnly != 0:
		found.Name = "ext4"
	case compatible&hasJournal != 0:
		found.Name = "ext3"
	}
	blocks := uint64(le.Uint32(super[0x4:]))
	if incompatible&is64Bit != 0 {
		blocks |= uint64(le.Uint32(super[0x150:])) << 32
	}
	if log := le.Uint32(super[0x18:]); log <= 6 { // 64 KiB, the largest block
		found.Size = product(blocks, 1024<<log)
	}
	return found
}

// xfs. Source: XFS Algorithms & Data Structures, "Superblocks".
func xfs(head []byte) *Found {
	if !hasAt(head, 0, "XFSB") {
		return nil
	}
	return &Found{"xfs", product(uint64(be.Uint32(head[4:])), be.Uint64(head[8:]))}
}

// btrfs. The size is that of this device, as a file system may span several.
// Source: btrfs documentation, "On-disk format", superblock and dev_item.
func btrfs(head []byte) *Found {
	super := head[64<<10:]
	if !hasAt(super, 0x40, "_BHRfS_M") {
		return nil
	}
	const deviceItem, totalBytes = 0xC9, 8
	return &Found{"btrfs", product(le.Uint64(super[deviceItem+totalBytes:]), 1)}
}

// f2fs. Source: Linux include/linux/f2fs_fs.h, struct f2fs_super_block.
func f2fs(head []byte) *Found {
	super := head[1024:]
	if le.Uint32(super) != 0xF2F52010 {
		return nil
	}
	found := &Found{Name: "f2fs"}
	if log := le.Uint32(super[16:]); log <= 16 {
		found.Size = product(le.Uint64(super[36:]), 1<<log)
	}
	return found
}

// squashfs. Source: Linux fs/squashfs/squashfs_fs.h, struct squashfs_super_block.
func squashfs(head []byte) *Found {
	if !hasAt(head, 0, "hsqs") {
		return nil
	}
	return &Found{"squashfs", product(le.Uint64(head[40:]), 1)}
}

// erofs. Source: Linux fs/erofs/erofs_fs.h, struct erofs_super_block.
func erofs(head []byte) *Found {
	super := head[1024:]
	if le.Uint32(super) != 0xE0F5E1E2 {
		return nil
	}
	found := &Found{Name: "erofs"}
	if log := super[12]; log >= 9 && log <= 16 {
		found.Size = product(uint64(le.Uint32(super[36:])), 1<<log)
	}
	return found
}

// nilfs2. Source: Linux include/uapi/linux/nilfs2_ondisk.h, struct
// nilfs_super_block.
func nilfs2(head []byte) *Found {
	super := head[1024:]
	if le.Uint16(super[6:]) != 0x3434 || le.Uint32(super) != 2 { // revision
		return nil
	}
	return &Found{"nilfs2", product(le.Uint64(super[32:]), 1)}
}

// udf has descriptors from byte 32768 on, one in each 2048 bytes or, if blocks
// are larger, in each block: the first begins the list, and the second says that
// it is UDF. Source: ECMA-167, 2/8 and 3/9.
func udf(head []byte) *Found {
	const list = 16 * 2048
	if !hasAt(head, list+1, "BEA01") {
		return nil
	}
	for blockSize := 2048; blockSize <= 16<<10; blockSize *= 2 {
		if second := list + blockSize + 1; hasAt(head, second, "NSR02") || hasAt(head, second, "NSR03") {
			return &Found{Name: "udf"}
		}
	}
	return nil
}

// iso9660. Source: ECMA-119, 8.4, primary volume descriptor in sector 16.
func iso9660(head []byte) *Found {
	descriptor := head[16*2048:]
	if !hasAt(descriptor, 1, "CD001") {
		return nil
	}
	return &Found{"iso9660", product(uint64(le.Uint32(descriptor[80:])), uint64(le.Uint16(descriptor[128:])))}
}

// The file systems of DOS and Windows begin with a boot sector: a jump, a
// name, bytes per sector at 11, and this signature at its end.
const bootSignature = "\x55\xAA"

// bootSectorSize returns the bytes per sector of a FAT or NTFS boot sector,
// or 0 if it isn't one.
func bootSectorSize(head []byte) uint64 {
	size := le.Uint16(head[11:])
	if !hasAt(head, 510, bootSignature) || size < 512 || size > 4096 || size&(size-1) != 0 {
		return 0
	}
	return uint64(size)
}

// vfat is FAT12, FAT16 or FAT32. Source: Microsoft FAT32 File System
// Specification 1.03, "Boot Sector and BPB".
func vfat(head []byte) *Found {
	sectorSize := bootSectorSize(head)
	isFAT := hasAt(head, 54, "FAT12   ") || hasAt(head, 54, "FAT16   ") || hasAt(head, 82, "FAT32   ")
	if sectorSize == 0 || !isFAT {
		return nil
	}
	sectors := uint64(le.Uint16(head[19:]))
	if sectors == 0 {
		sectors = uint64(le.Uint32(head[32:]))
	}
	return &Found{"vfat", product(sectors, sectorSize)}
}

// exfat. Source: Microsoft exFAT specification, 3.1, "Main Boot Sector".
func exfat(head []byte) *Found {
	if !hasAt(head, 3, "EXFAT   ") || !hasAt(head, 510, bootSignature) {
		return nil
	}
	found := &Found{Name: "exfat"}
	if shift := head[108]; shift >= 9 && shift <= 12 {
		found.Size = product(le.Uint64(head[72:]), 1<<shift)
	}
	return found
}

// ntfs. Source: the Linux-NTFS documentation, "$Boot".
func ntfs(head []byte) *Found {
	sectorSize := bootSectorSize(head)
	if sectorSize == 0 || !hasAt(head, 3, "NTFS    ") {
		return nil
	}
	return &Found{"ntfs", product(le.Uint64(head[40:]), sectorSize)}
}

// swap space states no page size: the signature ends the first page.
// Source: Linux include/linux/swap.h, union swap_header.
func swap(head []byte) *Found {
	for page := 4096; page <= 64<<10; page *= 2 {
		if hasAt(head, page-10, "SWAPSPACE2") || hasAt(head, page-10, "SWAP-SPACE") {
			lastPage := uint64(le.Uint32(head[1024+4:]))
			return &Found{"swap", product(lastPage+1, uint64(page))}
		}
	}
	return nil
}

// luks. Sources: LUKS1 On-Disk Format 1.2.3, table 1; LUKS2 1.1.4, 2.1.
func luks(head []byte) *Found {
	if !hasAt(head, 0, "LUKS\xBA\xBE") {
		return nil
	}
	switch be.Uint16(head[6:]) {
	case 1:
		return &Found{Name: "LUKS1"}
	case 2:
		return &Found{Name: "LUKS2"}
	}
	return &Found{Name: "LUKS"}
}

// lvm is a physical volume; its label may stand in any of the first four
// sectors. Source: LVM2 lib/label/label.h, struct label_header.
func lvm(head []byte) *Found {
	for sector := 0; sector < 4*512; sector += 512 {
		if hasAt(head, sector, "LABELONE") && hasAt(head, sector+24, "LVM2 001") {
			return &Found{Name: "LVM2_member"}
		}
	}
	return nil
}

// gpt is the table for sectors of 512 or 4096 bytes. Its backup takes the
// disk's last sector. Source: UEFI Specification 2.10, 5.3.2.
func gpt(head []byte) *Found {
	for _, sectorSize := range []uint64{512, 4096} {
		if header := head[sectorSize:]; hasAt(header, 0, "EFI PART") {
			backup := le.Uint64(header[32:])
			return &Found{"GPT", product(backup+1, sectorSize)}
		}
	}
	return nil
}

// mbr has four entries, of which one at least is in use and none impossible;
// it reaches to the end of the last. Source: UEFI Specification 2.10, 5.2.1.
func mbr(head []byte) *Found {
	if !hasAt(head, 510, bootSignature) {
		return nil
	}
	var end uint64
	for entry := range slices.Chunk(head[446:510], 16) {
		status, kind := entry[0], entry[4]
		start, sectors := uint64(le.Uint32(entry[8:])), uint64(le.Uint32(entry[12:]))
		switch {
		case status != 0 && status != 0x80:
			return nil
		case kind == 0:
			continue
		case start == 0 || sectors == 0:
			return nil
		}
		end = max(end, start+sectors)
	}
	if end == 0 {
		return nil
	}
	return &Found{"MBR", product(end, 512)}
}
