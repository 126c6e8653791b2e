package fsprobe

// UnfinishedImport is the name of what is found where an import was interrupted.
// No file system begins like that, and what else seems to be there is perhaps
// only a part of it.
const UnfinishedImport = "unfinished import"

// unfinishedText begins the volume while an import is under way.
const unfinishedText = "serpcrypt: what is being imported into this volume is not yet all here\n"

// UnfinishedMark returns the first sector of a volume into which something is
// being imported.
func UnfinishedMark() []byte {
	sector := make([]byte, 512)
	copy(sector, unfinishedText)
	return sector
}

func unfinished(head []byte) *Found {
	if !hasAt(head, 0, unfinishedText) {
		return nil
	}
	return &Found{Name: UnfinishedImport}
}
