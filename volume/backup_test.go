package volume

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
	"serpcrypt/volume/luks2"
)

func TestBackupHeader(t *testing.T) {
	forEachFormat(t, func(t *testing.T, c *subject, s *faultstore.Store) {
		if err := RemoveKey(background, s, 0, false); err != nil {
			t.Fatal(err)
		}
		removed := headerOf(t, s).Slots[0]
		before := s.Bytes()
		var backup bytes.Buffer
		if err := BackupHeader(background, s, &backup); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(s.Bytes(), before) {
			t.Error("something was written to the container")
		}
		if got, want := int64(backup.Len()), map[string]int64{TypeLUKS1: 1032 * 512, TypeLUKS2: headerOf(t, s).PayloadOffset}[c.format]; got != want {
			t.Errorf("it has %d bytes, want %d", got, want)
		}
		if c.format == TypeLUKS1 {
			place := backup.Bytes()[removed.MaterialOffset:][:removed.MaterialSize]
			if !bytes.Equal(place, make([]byte, len(place))) {
				t.Error("it has what is left of a removed key")
			}
		}
		b := Stores{Header: faultstore.New(backup.Bytes())}
		if _, err := ReadHeader(b); err != nil {
			t.Errorf("it is no header: %v", err)
		}
		key, err := Unlock(background, b, otherPassphrase, AnySlot, nil)
		if err != nil {
			t.Fatal(err)
		}
		key.Close()
		full := errors.New("no space")
		if err := BackupHeader(background, s, brokenWriter{full}); !errors.Is(err, full) {
			t.Errorf("got %v", err)
		}
		if err := BackupHeader(background, newStore(1<<20), io.Discard); !isFormatError(err) {
			t.Errorf("no header: got %v, want a FormatError", err)
		}
	})
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

// TestBackupOfWhatIsLeft: a store that ends early has a header still as long as
// the primary copy is whole.
func TestBackupOfWhatIsLeft(t *testing.T) {
	c := subjects(t)[1]
	for _, size := range []int64{luks2.MinSize, 2*luks2.MinSize - 1, 2 * luks2.MinSize, 100_000} {
		left := c.whole.Bytes()[:size]
		var backup bytes.Buffer
		if err := BackupHeader(background, faultstore.New(left), &backup); err != nil {
			t.Errorf("%d bytes are left: %v", size, err)
		}
		n := min(size, 2*luks2.MinSize)
		if int64(backup.Len()) != size || !bytes.Equal(backup.Bytes()[:n], left[:n]) {
			t.Errorf("%d bytes are left: the backup has %d, or another header", size, backup.Len())
		}
	}
	if err := BackupHeader(background, faultstore.New(c.whole.Bytes()[:luks2.MinSize-1]), io.Discard); !isFormatError(err) {
		t.Errorf("got %v, want a FormatError", err)
	}
}

func TestRestoreRefuses(t *testing.T) {
	forEachFormat(t, func(t *testing.T, c *subject, s *faultstore.Store) {
		other := newSubject(t, c.params)
		longer := c.params
		longer.PayloadOffset = 4 << 20
		farther := newSubject(t, longer)
		bigger := c.params
		bigger.KeyBits, bigger.PayloadOffset = 256, 2<<20
		bigKey := newSubject(t, bigger)
		for _, refused := range []struct {
			name   string
			backup *faultstore.Store
			want   []string
		}{
			{"other volume", other.backup(), []string{"UUID", "volume key"}},
			{"other payload offset", farther.backup(), []string{"UUID", "payload offset", "volume key"}},
			{"other key size", bigKey.backup(), []string{"UUID", "payload offset", "key size", "volume key"}},
		} {
			var foreign *ForeignBackupError
			err := RestoreHeader(background, Attached(s), refused.backup, false)
			if !errors.As(err, &foreign) || !slices.Equal(foreign.Differs, refused.want) {
				t.Errorf("%s: got %v, want that it differs in %q", refused.name, err, refused.want)
			}
			unchanged(t, c, s)
		}
		for name, backup := range map[string]*faultstore.Store{
			"no header": newStore(1 << 20), "nothing": faultstore.New(nil), "half of it": faultstore.New(c.backup().Bytes()[:200<<10]),
		} {
			if err := RestoreHeader(background, Attached(s), backup, true); !isFormatError(err) {
				t.Errorf("%s: got %v, want a FormatError", name, err)
			}
			unchanged(t, c, s)
		}
		short := faultstore.New(c.whole.Bytes()[:headerOf(t, s).PayloadOffset+511])
		if err := RestoreHeader(background, Attached(short), c.backup(), true); !isFormatError(err) {
			t.Errorf("no payload: got %v, want a FormatError", err)
		}
	})
}

// TestRestoreByForce: the other volume's header takes the place, and what it
// says of the payload.
func TestRestoreByForce(t *testing.T) {
	forEachFormat(t, func(t *testing.T, c *subject, s *faultstore.Store) {
		other := newSubject(t, c.params)
		if err := RestoreHeader(background, Attached(s), other.backup(), true); err != nil {
			t.Fatal(err)
		}
		opensWith(oldPassphrase, otherPassphrase)(t, other, s)
		if got, want := headerOf(t, s).UUID, headerOf(t, other.whole).UUID; got != want {
			t.Errorf("UUID %s, want %s", got, want)
		}
		c.samePayload(t, s, "at the end")
	})
}

// TestRestoreOfTheOtherFormat undoes a conversion by the backup from before.
func TestRestoreOfTheOtherFormat(t *testing.T) {
	forEachFormat(t, func(t *testing.T, c *subject, s *faultstore.Store) {
		if err := convertToOther(s, c); err != nil {
			t.Fatal(err)
		}
		var foreign *ForeignBackupError
		if err := restoreWhole(s, c); !errors.As(err, &foreign) || !slices.Equal(foreign.Differs, []string{"format"}) {
			t.Errorf("without force: %v", err)
		}
		if err := RestoreHeader(background, Attached(s), c.backup(), true); err != nil {
			t.Fatal(err)
		}
		isWhole(t, c, s)
		c.samePayload(t, s, "at the end")
		if err := verifyHeaderOf(t, s); err != nil {
			t.Error(err)
		}
	})
}

// TestRestoreOfUnreadableSectors: they can be written, and read afterwards. As
// nobody knows what was there, this needs force.
func TestRestoreOfUnreadableSectors(t *testing.T) {
	forEachFormat(t, func(t *testing.T, c *subject, s *faultstore.Store) {
		unreadable := map[int64]bool{0: true, luks2.MinSize: true}
		s.Fault = func(op faultstore.Op) error {
			for at := range unreadable {
				switch {
				case at < op.Off || at >= op.Off+int64(op.Len):
				case op.Kind == faultstore.Read:
					return syscall.EIO
				case op.Kind == faultstore.Write:
					delete(unreadable, at)
				}
			}
			return nil
		}
		if err := RestoreHeader(background, Attached(s), c.backup(), false); !errors.Is(err, syscall.EIO) || len(unreadable) != 2 {
			t.Errorf("without force: %v", err)
		}
		if err := RestoreHeader(background, Attached(s), c.backup(), true); err != nil {
			t.Fatal(err)
		}
		isWhole(t, c, s)
	})
}
