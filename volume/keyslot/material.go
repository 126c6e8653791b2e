// Package keyslot is what the key slots of LUKS1 and LUKS2 have in common: the
// material in which a slot keeps the volume key, and the search for the slot
// that a passphrase opens.
package keyslot

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"time"

	"serpcrypt/cipher/modes"
	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/cpucycles"
	"serpcrypt/internal/secret"
	"serpcrypt/volume/af"
)

const (
	// Stripes is what the volume key is split into (LUKS1 1.2.3, table 1:
	// LUKS_STRIPES).
	Stripes = 4000
	// SectorSize is that of the material's encryption, in bytes, whatever the
	// payload has.
	SectorSize = 512
)

// Material is the volume key in a key slot: split into stripes and encrypted
// under the slot's key.
type Material struct {
	Offset int64  // of its place in the container, in bytes
	KeyLen int    // of the volume key, in bytes
	Hash   string // of the anti-forensic splitter
	Cipher string // as modes.ParseSpec reads it
}

// MaterialSize returns the bytes that the material of a volume key of so many
// bytes takes: whole sectors.
func MaterialSize(keyLen int64) int64 {
	return (keyLen*Stripes + SectorSize - 1) / SectorSize * SectorSize
}

// Seal returns the material, encrypted. It is random in part, and another each
// time. Errors are those of af.Split and modes.New.
func (m *Material) Seal(key, slotKey []byte) ([]byte, error) {
	plain, err := m.room()
	if err != nil {
		return nil, fmt.Errorf("keyslot: key material: %w", err)
	}
	defer plain.Close()
	if err := af.Split(m.stripes(plain), key, Stripes, m.Hash); err != nil {
		return nil, err
	}
	cipher, err := m.sectors(slotKey)
	if err != nil {
		return nil, err
	}
	cipher.Encrypt(plain.Bytes(), plain.Bytes(), 0)
	cipher.Wipe()
	return bytes.Clone(plain.Bytes()), nil
}

// Open reads the material from the container r and returns what it decrypts to:
// the volume key, if slotKey is the slot's. Errors are those of r, modes.New and
// af.Merge.
func (m *Material) Open(r io.ReaderAt, slotKey []byte) (*secret.Buffer, error) {
	plain, err := m.room()
	if err != nil {
		return nil, fmt.Errorf("keyslot: key material: %w", err)
	}
	defer plain.Close()
	if _, err := io.ReadFull(io.NewSectionReader(r, m.Offset, int64(plain.Len())), plain.Bytes()); err != nil {
		return nil, fmt.Errorf("keyslot: key material: %w", err)
	}
	cipher, err := m.sectors(slotKey)
	if err != nil {
		return nil, err
	}
	cipher.Decrypt(plain.Bytes(), plain.Bytes(), 0)
	cipher.Wipe()
	key, err := secret.New(m.KeyLen)
	if err != nil {
		return nil, fmt.Errorf("keyslot: key material: %w", err)
	}
	if err := af.Merge(key.Bytes(), m.stripes(plain), Stripes, m.Hash); err != nil {
		key.Close()
		return nil, err
	}
	return key, nil
}

// room is for the material in whole sectors.
func (m *Material) room() (*secret.Buffer, error) {
	return secret.New(int(MaterialSize(int64(m.KeyLen))))
}

func (m *Material) stripes(room *secret.Buffer) []byte { return room.Bytes()[:m.KeyLen*Stripes] }

// sectors returns the cipher. A slot is too small for a fast kernel to matter,
// and a wrong one would cost the key.
func (m *Material) sectors(slotKey []byte) (*modes.Sectors, error) {
	return modes.New(m.Cipher, slotKey, SectorSize, serpent.Generic)
}

// OpenTime measures what Open takes, in processor time, under a slot key of so
// many bytes. The error is one of Open.
func (m *Material) OpenTime(slotKeyLen int) (time.Duration, error) {
	slotKey := make([]byte, slotKeyLen)
	for i := range slotKey {
		slotKey[i] = byte(i)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const times = 3 // the first one finds nothing in the caches
	var least time.Duration
	for i := range times {
		before := cpucycles.ThreadTime()
		key, err := m.Open(zeros{}, slotKey)
		if err != nil {
			return 0, err
		}
		key.Close()
		if taken := cpucycles.ThreadTime() - before; i == 0 || taken < least {
			least = taken
		}
	}
	return least, nil
}

type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}
