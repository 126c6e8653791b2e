package volume

// NewBare returns a volume of all whole sectors of the store, without a header
// and under a cipher of the caller's making, which Close wipes. It shows what
// the way of the data costs, by whatever cipher.
func NewBare(s Store, cipher SectorCipher, sectorSize int) (*Volume, error) {
	size, err := s.Size()
	if err != nil {
		return nil, err
	}
	sectors := extent{size: size / int64(sectorSize) * int64(sectorSize), sectorSize: sectorSize}
	return overSegments(s, []segment{{sectors, cipher}}, Options{}), nil
}
