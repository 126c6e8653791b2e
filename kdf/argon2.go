package kdf

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"golang.org/x/crypto/argon2"

	"serpcrypt/internal/secret"
)

// The variants of Argon2 that LUKS2 knows.
const (
	Argon2i  = "argon2i"
	Argon2id = "argon2id"
)

// Limits of the costs of Argon2.
const (
	// MinArgon2Time is the least that new key slots get, as cryptsetup does.
	MinArgon2Time = 4
	// MaxArgon2Time is the most that fits the algorithm's 32 bits, and an int.
	MaxArgon2Time = min(math.MaxUint32, math.MaxInt)
	// MinArgon2Memory is the least that new key slots get, in KiB.
	MinArgon2Memory = 32
	// MaxArgon2Memory is 4 GiB, in KiB: no key slot of cryptsetup has more.
	MaxArgon2Memory = 4 << 20
	// MaxArgon2CPUs is the most that x/crypto computes with.
	MaxArgon2CPUs = math.MaxUint8

	// The memory is at least so many blocks of 1 KiB for each lane (RFC 9106,
	// section 3.1).
	blocksPerLane = 8
)

// Argon2 is a variant of Argon2 (RFC 9106, version 0x13) and its costs.
type Argon2 struct {
	Variant string // Argon2i or Argon2id
	Time    int    // passes over the memory: 1 to MaxArgon2Time
	Memory  int    // KiB: 8*CPUs to MaxArgon2Memory
	CPUs    int    // lanes: 1 to MaxArgon2CPUs
}

// Argon2Error says which cost of Argon2 is not possible.
type Argon2Error struct{ Param, Reason string }

func (e *Argon2Error) Error() string { return fmt.Sprintf("kdf: Argon2: %s: %s", e.Param, e.Reason) }

// Check returns an *Argon2Error if no key can be derived so.
func (a Argon2) Check() error {
	if a.Variant != Argon2i && a.Variant != Argon2id {
		return &Argon2Error{"variant", fmt.Sprintf("unknown variant %q (known: %s, %s)", a.Variant, Argon2i, Argon2id)}
	}
	if err := inRange("time", a.Time, 1, MaxArgon2Time); err != nil {
		return err
	}
	if err := inRange("cpus", a.CPUs, 1, MaxArgon2CPUs); err != nil {
		return err
	}
	return inRange("memory in KiB", a.Memory, blocksPerLane*a.CPUs, MaxArgon2Memory)
}

// CheckNew is as Check, with the limits that cryptsetup keeps to in new key
// slots.
func (a Argon2) CheckNew() error {
	if err := a.Check(); err != nil {
		return err
	}
	if err := inRange("time", a.Time, MinArgon2Time, MaxArgon2Time); err != nil {
		return err
	}
	if err := inRange("cpus", a.CPUs, 1, maxNewCPUs); err != nil {
		return err
	}
	return inRange("memory in KiB", a.Memory, MinArgon2Memory, MaxArgon2Memory)
}

func inRange(param string, n, least, most int) error {
	if n < least || n > most {
		return &Argon2Error{param, fmt.Sprintf("%d (allowed: %d to %d)", n, least, most)}
	}
	return nil
}

// Key derives a key of keyLen bytes, at least 1, through
// golang.org/x/crypto/argon2.
//
// The memory that this takes is ordinary: it goes back to the system, which
// clears it, before the key is handed out. The library's short-lived copies of
// the password are left to the garbage collector; the process that derives such
// a key should end soon after.
//
// When ctx is done, Key returns its error at once. The library cannot be
// stopped: the work goes on in the background, keeps its memory as long as it
// runs, and its outcome is wiped.
//
// Other errors are an *Argon2Error, and a *MemoryError if there is too little
// memory.
func (a Argon2) Key(ctx context.Context, password, salt []byte, keyLen int) (*secret.Buffer, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if err := inRange("key bytes", keyLen, 1, math.MaxInt32); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkMemory(int64(a.Memory) << 10); err != nil {
		return nil, err
	}
	// The caller may wipe its own while the work goes on.
	ownPassword, err := secret.Copy(password)
	if err != nil {
		return nil, fmt.Errorf("kdf: %w", err)
	}
	key, err := secret.New(keyLen)
	if err != nil {
		ownPassword.Close()
		return nil, fmt.Errorf("kdf: %w", err)
	}
	ownSalt := slices.Clone(salt)
	return abandonable(ctx, func() *secret.Buffer {
		defer ownPassword.Close()
		a.deriveByLibrary(key.Bytes(), ownPassword.Bytes(), ownSalt)
		return key
	})
}

func (a Argon2) deriveByLibrary(key, password, salt []byte) {
	derive := argon2.IDKey
	if a.Variant == Argon2i {
		derive = argon2.Key
	}
	derived := derive(password, salt, uint32(a.Time), uint32(a.Memory), uint8(a.CPUs), uint32(len(key)))
	copy(key, derived)
	secret.Wipe(derived)
	// The next derivation should find this one's memory free, and nobody what
	// is in it.
	debug.FreeOSMemory()
}

// abandonable returns what work returns, or the error of ctx if that is done
// before. What comes afterwards is closed.
func abandonable[T interface{ Close() }](ctx context.Context, work func() T) (T, error) {
	done := make(chan T)
	go func() {
		result := work()
		select {
		case done <- result:
		case <-ctx.Done():
			result.Close()
		}
	}()
	select {
	case result := <-done:
		return result, nil
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
