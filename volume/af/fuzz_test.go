package af

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"serpcrypt/internal/golden"
	"serpcrypt/internal/hashes"
)

// FuzzSplitMerge splits keys, and merges any material by any name of a hash.
func FuzzSplitMerge(f *testing.F) {
	for i, name := range append(hashes.Names(), "SHA1", "nosuch", "") {
		f.Add(bytes.Repeat([]byte{byte(i)}, 16*i+1), []byte("material of any length"), uint16(3*i), name)
	}
	f.Add(make([]byte, 64), make([]byte, 4000), uint16(4000), "sha1")
	image, area := realArea(f)
	f.Add(image.VolumeKey, area, uint16(4000), "sha256")
	f.Fuzz(func(t *testing.T, key, material []byte, stripes uint16, hash string) {
		_, unknown := hashes.New(hash)
		fits := stripes > 0 && len(key) > 0
		if len(key)*int(stripes) <= 1<<16 {
			split := make([]byte, len(key)*int(stripes))
			if err := Split(split, key, int(stripes), hash); (err == nil) != (fits && unknown == nil) {
				t.Fatalf("Split of %d bytes to %d stripes by %q: %v", len(key), stripes, hash, err)
			} else if err == nil {
				merged := make([]byte, len(key))
				if err := Merge(merged, split, int(stripes), hash); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(merged, key) {
					t.Errorf("%d stripes by %s: merged to %x, want %x", stripes, hash, merged, key)
				}
			}
		}
		merged, before := make([]byte, len(key)), bytes.Clone(material)
		err := Merge(merged, material, int(stripes), hash)
		if fits = fits && len(material) == len(key)*int(stripes); (err == nil) != (fits && unknown == nil) {
			t.Errorf("Merge of %d bytes to %d by %q: %v", len(material), len(key), hash, err)
		}
		if size := new(SizeError); !fits && !errors.As(err, &size) {
			t.Errorf("Merge of %d bytes to %d: %v, want a *SizeError", len(material), len(key), err)
		}
		if !bytes.Equal(material, before) {
			t.Error("Merge has changed the material")
		}
	})
}

// realArea returns a golden container whose key is short, and the area of its key
// slot 0.
func realArea(f *testing.F) (*golden.Image, []byte) {
	image := golden.Named(f, "l1-cbc-plain64-128-")
	const begin, stripes = 4096, 4000
	size := len(image.VolumeKey) * stripes
	if size != 64000 {
		f.Fatalf("%s has an area of %d bytes", image.Name, size)
	}
	return image, image.Head(f, int64(begin+size))[begin:]
}

// FuzzNotRandom looks at any area: spots are in it, in order, and have sectors
// that begin where they do; and zeros in any sector are found.
func FuzzNotRandom(f *testing.F) {
	f.Add([]byte{}, uint16(0))
	f.Add(randomArea(1, 2*spotSize+1), uint16(1))
	_, area := realArea(f)
	f.Add(area, uint16(7))
	for i, d := range damage {
		f.Add(append(randomArea(2, i*spotSize), d.content...), uint16(i))
	}
	f.Fuzz(func(t *testing.T, area []byte, sector uint16) {
		before := bytes.Clone(area)
		check := func(spots []Spot) {
			end := int64(0)
			for _, s := range spots {
				whole := s.Size%spotSize == 0 || s.Offset+s.Size == int64(len(area))
				if s.Offset < end || s.Offset%spotSize != 0 || s.Size <= 0 || !whole || s.Offset+s.Size > int64(len(area)) || s.What == "" {
					t.Fatalf("%d bytes: %v", len(area), spots)
				}
				end = s.Offset + s.Size
			}
		}
		check(NotRandom(area))
		if !bytes.Equal(area, before) {
			t.Fatal("NotRandom has changed the area")
		}
		if len(area) < spotSize {
			return
		}
		at := int(sector) % (len(area) / spotSize) * spotSize
		clear(area[at:][:spotSize])
		spots := NotRandom(area)
		check(spots)
		if !slices.ContainsFunc(spots, func(s Spot) bool {
			return s.What == "zeros" && s.Offset <= int64(at) && s.Offset+s.Size >= int64(at+spotSize)
		}) {
			t.Errorf("zeros at byte %d of %d are not among %v", at, len(area), spots)
		}
	})
}
