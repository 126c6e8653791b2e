package luks

import (
	"errors"
	"fmt"
	"testing"

	"serpcrypt/cipher/modes"
	"serpcrypt/kdf"
)

func TestNewUUID(t *testing.T) {
	const usual = "6ba7b811-9dad-11d1-80b4-00c04fd430c8"
	for _, wanted := range []string{usual, "6BA7B811-9DAD-11D1-80B4-00C04FD430C8", "{" + usual + "}", "urn:uuid:" + usual} {
		if got, err := NewUUID(wanted); got != usual || err != nil {
			t.Errorf("%s: got %s, %v; want %s", wanted, got, err, usual)
		}
	}
	first, err1 := NewUUID("")
	second, err2 := NewUUID("")
	if len(first) != len(usual) || first == second || err1 != nil || err2 != nil {
		t.Errorf("random ones: %s (%v), %s (%v)", first, err1, second, err2)
	}
	for _, wanted := range []string{"x", usual + "0", usual[1:], " "} {
		if got, err := NewUUID(wanted); got != "" || !errors.As(err, new(*ParamError)) {
			t.Errorf("%q: got %s, %v; want a *ParamError", wanted, got, err)
		}
	}
}

func TestCheckIterations(t *testing.T) {
	for n, want := range map[int]bool{
		-1: false, 0: false, kdf.MinIterations - 1: false, kdf.MinIterations: true, kdf.MaxIterations: true,
	} {
		var param *ParamError
		if err := CheckIterations("of a test", n); (err == nil) != want || err != nil && (!errors.As(err, &param) || param.Param != "of a test") {
			t.Errorf("%d: %v, want allowed: %v", n, err, want)
		}
	}
}

func TestIsUUID(t *testing.T) {
	const usual = "6ba7b811-9dad-11d1-80b4-00c04fd430c8"
	for text, want := range map[string]bool{
		usual: true, "6BA7B811-9DAD-11D1-80B4-00C04FD430C8": true,
		"": false, "{" + usual + "}": false, "urn:uuid:" + usual: false, usual[1:] + "x": false, usual[1:]: false,
	} {
		if got := IsUUID(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestCheckSlotNumber(t *testing.T) {
	for slot, want := range map[int]bool{-1: false, 0: true, 7: true, 8: false} {
		if err := CheckSlotNumber(slot, 8); (err == nil) != want || err != nil && !errors.As(err, new(*ParamError)) {
			t.Errorf("%d: %v, want allowed: %v", slot, err, want)
		}
	}
}

func TestReason(t *testing.T) {
	_, err := modes.ParseSpec("serpent-ecb-plain")
	if got := Reason(fmt.Errorf("x: %w", err)); got != "ecb takes no IV" {
		t.Errorf("got %s", got)
	}
	if got := Reason(errors.New("something else")); got != "something else" {
		t.Errorf("got %s", got)
	}
}
