package luks

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"serpcrypt/internal/faultstore"
)

// forgetful is a disk that says it has written, and has not.
type forgetful struct{ *faultstore.Store }

func (forgetful) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

func TestWriteChecked(t *testing.T) {
	p := []byte("material")
	s := faultstore.New(make([]byte, 4096))
	if err := WriteMaterial(s, 3, p, 1024); err != nil {
		t.Fatal(err)
	}
	if after := s.AfterPowerCut(faultstore.Oldest).Bytes(); !bytes.Equal(after[1024:1024+len(p)], p) {
		t.Error("it was not synced")
	}

	var fault *FieldError
	err := WriteMaterial(forgetful{s}, 3, p, 2048)
	if !errors.As(err, &fault) || fault.Field != "key material" || fault.Slot != 3 || fault.Offset != 2048 {
		t.Errorf("a disk that forgets: got %v, want a FieldError", err)
	}
	for kind, name := range map[faultstore.Kind]string{faultstore.Write: "write", faultstore.Sync: "sync", faultstore.Read: "read"} {
		s.Fault = func(op faultstore.Op) error {
			if op.Kind == kind {
				return syscall.EIO
			}
			return nil
		}
		err := WriteChecked(s, p, 512, "header", NoSlot)
		if !errors.Is(err, syscall.EIO) || errors.As(err, &fault) || !strings.Contains(err.Error(), "header at byte 512") {
			t.Errorf("a disk that cannot %s: got %v", name, err)
		}
	}
}
