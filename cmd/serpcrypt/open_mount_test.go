package main

import "testing"

// TestMounterMissing: whoever lacks a program is told what to install.
func TestMounterMissing(t *testing.T) {
	err := new(opening).runMounter(t.Context(), runEntry{}, "mount.none")
	code, hint := explain(err)
	if want := "install it (Debian, Ubuntu: apt-get install mount.none)"; code != exitBad || hint != want {
		t.Errorf("%v: code %d, hint %q, want %q", err, code, hint, want)
	}
}
