package volume

import (
	"bytes"
	"fmt"
	"testing"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/faultstore"
	"serpcrypt/internal/golden"
)

func TestGolden(t *testing.T) { testGolden(t, golden.Small(t)) }

func TestGoldenLUKS2(t *testing.T) { testGolden(t, golden.LUKS2(t)) }

func TestGoldenBig(t *testing.T) { testGolden(t, golden.Big(t)) }

// testGolden exports and verifies each image by each of its passphrases and with
// each kernel.
func testGolden(t *testing.T, images []*golden.Image) {
	for _, image := range images {
		content := image.Unpack(t)
		s := faultstore.New(bytes.Clone(content))
		for slot, passphrase := range image.Passphrases {
			t.Run(fmt.Sprintf("%s,slot=%d", image.Name, slot), func(t *testing.T) {
				named := AnySlot
				if headerOf(t, s).Slots[slot].Priority == PriorityIgnore {
					if _, err := Unlock(background, Attached(s), passphrase, AnySlot, nil); err != ErrPassphrase {
						t.Errorf("a slot that is to be ignored: %v, want ErrPassphrase", err)
					}
					named = slot
				}
				key, err := Unlock(background, Attached(s), passphrase, named, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer key.Close()
				if h := headerOf(t, s); h.PayloadOffset != image.PayloadOffset || h.SectorSize != image.SectorSize || len(h.Warnings) > 0 {
					t.Errorf("header is %+v, want what %+v says", h, image)
				}
				if key.Slot != slot || !bytes.Equal(key.Bytes.Bytes(), image.VolumeKey) {
					t.Errorf("slot %d opens with %x, want slot %d and %x", key.Slot, key.Bytes.Bytes(), slot, image.VolumeKey)
				}
				forEachKernel(t, func(t *testing.T, k serpent.Kernel) {
					v, err := Open(Attached(s), key, Options{Kernel: k, ReadOnly: true})
					if err != nil {
						t.Fatal(err)
					}
					defer v.Close()
					var out bytes.Buffer
					if err := v.CopyOut(background, &out, nil); err != nil {
						t.Fatal(err)
					}
					if int64(out.Len()) != image.PayloadSize || sha256Hex(out.Bytes()) != image.PlaintextSHA256 {
						t.Errorf("plaintext of %d bytes, SHA-256 %s; want %d, %s", out.Len(), sha256Hex(out.Bytes()), image.PayloadSize, image.PlaintextSHA256)
					}
					report, err := Verify(background, Attached(s), key, Options{Kernel: k}, nil)
					if err != nil || report.Err() != nil || report.Kernel != k || report.Slot != slot || report.Bytes != image.PayloadSize {
						t.Errorf("Verify: %v, %+v", err, report)
					}
				})
			})
		}
		if !bytes.Equal(s.Bytes(), content) {
			t.Errorf("%s: reading has changed it", image.Name)
		}
	}
}

// TestGoldenWrite: what each kernel writes into a foreign container is the
// ciphertext that was there.
func TestGoldenWrite(t *testing.T) {
	for _, image := range append(golden.Small(t), golden.LUKS2(t)...) {
		t.Run(image.Name, func(t *testing.T) {
			content := image.Unpack(t)
			s := faultstore.New(bytes.Clone(content))
			key, err := CheckKey(background, Attached(s), image.VolumeKey)
			if err != nil {
				t.Fatal(err)
			}
			defer key.Close()
			forEachKernel(t, func(t *testing.T, k serpent.Kernel) {
				v, err := Open(Attached(s), key, Options{Kernel: k})
				if err != nil {
					t.Fatal(err)
				}
				defer v.Close()
				plain := readAll(t, v, v.Size())
				if err := v.Fill(background, nil); err != nil {
					t.Fatal(err)
				}
				if bytes.Equal(s.Bytes(), content) {
					t.Fatal("Fill has changed nothing")
				}
				if err := v.CopyIn(background, bytes.NewReader(plain), v.Size(), nil); err != nil {
					t.Fatal(err)
				}
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(s.Bytes(), content) {
					t.Error("written again, it is another container")
				}
			})
		})
	}
}
