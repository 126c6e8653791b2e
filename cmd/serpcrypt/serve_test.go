package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"

	"serpcrypt/internal/secret"
)

func TestSettings(t *testing.T) {
	key, err := secret.New(64)
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	for i := range key.Bytes() {
		key.Bytes()[i] = byte(i)
	}
	sent := serverSettings{Entry: "/run/x", State: openState{Container: "/a\nb", Size: 1 << 40}}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := sendSettings(w, sent, key); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(w).Encode(order{AllowDiscards: true}); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(w).Encode(order{Commit: &openState{PID: 7}}); err != nil {
		t.Fatal(err)
	}
	w.Close()

	got, gotKey, err := receiveSettings(r)
	if err != nil {
		t.Fatal(err)
	}
	defer gotKey.Close()
	sent.KeyBytes = 64
	if got != sent {
		t.Errorf("got %+v, want %+v", got, sent)
	}
	if !bytes.Equal(gotKey.Bytes(), key.Bytes()) {
		t.Error("the key has changed")
	}
	orders := receiveOrders(r)
	if o := <-orders; !o.AllowDiscards || o.Commit != nil {
		t.Errorf("the first order is %+v", o)
	}
	if o := <-orders; o.AllowDiscards || o.Commit == nil || o.Commit.PID != 7 {
		t.Errorf("the second order is %+v", o)
	}
	if o, ok := <-orders; ok {
		t.Errorf("a third order: %+v", o)
	}
}

func TestSettingsDamaged(t *testing.T) {
	whole := func(keyBytes int, rest []byte) []byte {
		text, err := json.Marshal(serverSettings{KeyBytes: keyBytes})
		if err != nil {
			t.Fatal(err)
		}
		return append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...), rest...)
	}
	for name, input := range map[string][]byte{
		"nothing":      nil,
		"cut length":   {1, 0},
		"huge":         {0xFF, 0xFF, 0xFF, 0xFF},
		"cut settings": whole(0, nil)[:20],
		"no JSON":      {2, 0, 0, 0, 'x', 'y'},
		"cut key":      whole(64, make([]byte, 63)),
		"huge key":     whole(1<<30, make([]byte, 64)),
		"negative key": whole(-1, make([]byte, 64)),
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := w.Write(input); err != nil {
				t.Fatal(err)
			}
			w.Close()
			if _, key, err := receiveSettings(r); err == nil || key != nil {
				t.Errorf("accepted: %v", err)
			}
		})
	}
}

// TestAnswer checks that an error is the same on both sides of the pipe.
func TestAnswer(t *testing.T) {
	for _, err := range []error{
		failf(exitBusy, "do this", "it is so"),
		fs.ErrPermission,
		errors.New("fusefs: what else"),
	} {
		var pipe bytes.Buffer
		tell(&pipe, failedAnswer(err))
		var a answer
		if err := json.NewDecoder(&pipe).Decode(&a); err != nil || a.Ready {
			t.Fatalf("%+v: %v", a, err)
		}
		wantCode, wantHint := explain(err)
		code, hint := explain(a.failure())
		if code != wantCode || hint != wantHint || a.failure().Error() != errorText(err) {
			t.Errorf("%v: %v with code %d and hint %q, want %d and %q", err, a.failure(), code, hint, wantCode, wantHint)
		}
	}
	var pipe bytes.Buffer
	tell(&pipe, answer{Ready: true})
	if text, _ := io.ReadAll(&pipe); string(text) != `{"Ready":true}`+"\n" {
		t.Errorf("ready is %s", text)
	}
}

func TestMountOptions(t *testing.T) {
	var m mountOptions
	for _, given := range []string{"noatime", "", "ro,,uid=7"} {
		if err := m.Set(given); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.String(); got != "noatime,ro,uid=7" {
		t.Errorf("%q", got)
	}
}
