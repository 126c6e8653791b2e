package kdf

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestArgon2KnownAnswers: the vectors of RFC 9106, section 5, have a secret and
// associated data, which key slots have not. These are those of the reference
// implementation, src/test.c, and some that its command line has made.
func TestArgon2KnownAnswers(t *testing.T) {
	for _, v := range []struct {
		cost           Argon2
		password, salt string
		key            string
	}{
		{Argon2{Argon2i, 2, 1 << 16, 1}, "password", "somesalt", "c1628832147d9720c5bd1cfd61367078729f6dfb6f8fea9ff98158e0d7816ed0"},
		{Argon2{Argon2i, 2, 1 << 8, 1}, "password", "somesalt", "89e9029f4637b295beb027056a7336c414fadd43f6b208645281cb214a56452f"},
		{Argon2{Argon2i, 2, 1 << 8, 2}, "password", "somesalt", "4ff5ce2769a1d7f4c8a491df09d41a9fbe90e5eb02155a13e4c01e20cd4eab61"},
		{Argon2{Argon2id, 2, 1 << 16, 1}, "password", "somesalt", "09316115d5cf24ed5a15a31a3ba326e5cf32edc24702987c02b6566f61913cf7"},
		{Argon2{Argon2id, 2, 1 << 8, 1}, "password", "somesalt", "9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe"},
		{Argon2{Argon2id, 2, 1 << 8, 2}, "password", "somesalt", "6d093c501fd5999645e0ea3bf620d7b8be7fd2db59c20d9fff9539da2bf57037"},
		{Argon2{Argon2i, 4, 1024, 8}, "password", "somesalt", "0cdd3956aa35e6b475a7b0c63488822f774f15b43f6e6e17"},
		{Argon2{Argon2id, 1, 64, 1}, "password", "somesalt", "655ad15eac652dc59f7170a7332bf49b8469be1fdb9c28bb"},
		{Argon2{Argon2id, 2, 64, 3}, "password", "somesalt", "4a15b31aec7c2590b87d1f520be7d96f56658172deaa3079"},
	} {
		t.Run(fmt.Sprintf("%+v,%s,%s", v.cost, v.password, v.salt), func(t *testing.T) {
			key, err := v.cost.Key(background, []byte(v.password), []byte(v.salt), len(v.key)/2)
			if err != nil {
				t.Fatal(err)
			}
			defer key.Close()
			if got := hex.EncodeToString(key.Bytes()); got != v.key {
				t.Errorf("got %s, want %s", got, v.key)
			}
		})
	}
}

func TestArgon2Refuses(t *testing.T) {
	tooOften := MaxArgon2Time
	tooOften++ // below zero where int has 32 bits
	good := Argon2{Argon2id, 4, 1024, 4}
	for _, c := range []struct {
		param string
		edit  func(*Argon2)
	}{
		{"variant", func(a *Argon2) { a.Variant = "argon2d" }},
		{"variant", func(a *Argon2) { a.Variant = "" }},
		{"time", func(a *Argon2) { a.Time = 0 }},
		{"time", func(a *Argon2) { a.Time = -1 }},
		{"time", func(a *Argon2) { a.Time = tooOften }},
		{"cpus", func(a *Argon2) { a.CPUs = 0 }},
		{"cpus", func(a *Argon2) { a.CPUs = -4 }},
		{"cpus", func(a *Argon2) { a.CPUs = 256 }},
		{"memory in KiB", func(a *Argon2) { a.Memory = 31 }},
		{"memory in KiB", func(a *Argon2) { a.Memory = -1 }},
		{"memory in KiB", func(a *Argon2) { a.Memory = MaxArgon2Memory + 1 }},
	} {
		a := good
		c.edit(&a)
		key, err := a.Key(background, nil, nil, 32)
		if refused := new(Argon2Error); key != nil || !errors.As(err, &refused) || refused.Param != c.param {
			t.Errorf("%+v: got %v, want an error about the %s", a, err, c.param)
		}
	}
	for _, keyLen := range []int{0, -1} {
		if _, err := good.Key(background, nil, nil, keyLen); err == nil {
			t.Errorf("key of %d bytes: no error", keyLen)
		}
	}
	if err := (Argon2{Argon2i, 1, 8, 1}).Check(); err != nil {
		t.Errorf("the least that there is: %v", err)
	}
	if err := (Argon2{Argon2i, MaxArgon2Time, MaxArgon2Memory, MaxArgon2CPUs}).Check(); err != nil {
		t.Errorf("the most that there is: %v", err)
	}
}

func TestArgon2CheckNew(t *testing.T) {
	for _, c := range []struct {
		cost Argon2
		ok   bool
	}{
		{Argon2{Argon2id, 4, 32, 4}, true},
		{Argon2{Argon2i, MaxArgon2Time, MaxArgon2Memory, 1}, true},
		{Argon2{Argon2id, 3, 32, 4}, false},
		{Argon2{Argon2id, 4, 31, 1}, false},
		{Argon2{Argon2id, 4, 64, 5}, false},
		{Argon2{"pbkdf2", 4, 32, 4}, false},
	} {
		if err := c.cost.CheckNew(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.cost, err)
		}
	}
}

func TestArgon2WithoutMemory(t *testing.T) {
	err := checkMemory(1 << 60)
	if short := new(MemoryError); !errors.As(err, &short) || short.Need != 1<<60 || short.Available >= 1<<60 {
		t.Errorf("got %#v", err)
	}
	text := (&MemoryError{4 << 30, 3 << 19}).Error()
	if !strings.Contains(text, "4096.0 MiB") || !strings.Contains(text, "1.5 MiB") {
		t.Errorf("%q lacks a figure", text)
	}
	if err := checkMemory(1 << 10); err != nil {
		t.Errorf("1 KiB: %v", err)
	}
}

// closable tells when it is closed.
type closable chan bool

func (c closable) Close() { close(c) }

// TestArgon2IsAbandoned: while the work is under way, and would be for ever.
func TestArgon2IsAbandoned(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	begun, goOn, closed := make(chan bool), make(chan bool), make(closable)
	go func() {
		<-begun
		cancel()
	}()
	got, err := abandonable(ctx, func() closable {
		close(begun)
		<-goOn
		return closed
	})
	if got != nil || err != context.Canceled {
		t.Errorf("got %v, %v", got, err)
	}
	close(goOn)
	<-closed
	if _, err := (Argon2{Argon2id, 1, 8, 1}).Key(ctx, nil, nil, 16); err != context.Canceled {
		t.Errorf("cancelled before: %v", err)
	}
	ctx, cancel = context.WithCancel(background)
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := (Argon2{Argon2id, 1 << 18, 8, 1}).Key(ctx, nil, nil, 16); err != context.Canceled {
		t.Errorf("cancelled meanwhile: %v", err)
	}
}

// TestArgon2LeavesItsInputs: which the caller wipes in its own time.
func TestArgon2LeavesItsInputs(t *testing.T) {
	password, salt := []byte("password"), []byte("somesalt")
	key, err := Argon2{Argon2id, 1, 64, 1}.Key(background, password, salt, 24)
	if err != nil {
		t.Fatal(err)
	}
	key.Close()
	if !bytes.Equal(password, []byte("password")) || !bytes.Equal(salt, []byte("somesalt")) {
		t.Errorf("password %q, salt %q", password, salt)
	}
}

// blockMachine takes a time for each block, more for those beyond the cache, and
// another time for each KiB of memory, however often that is passed over.
type blockMachine struct {
	perBlock, beyond time.Duration
	perKiB           time.Duration
	measured         []Argon2
}

func (m *blockMachine) measure(a Argon2) (time.Duration, error) {
	m.measured = append(m.measured, a)
	per := m.perBlock
	if a.Memory > firstMemory {
		per += m.beyond
	}
	return time.Duration(a.Blocks())*per + time.Duration(a.Memory)*m.perKiB, nil
}

func TestCalibrateArgon2OnFakeMachine(t *testing.T) {
	const us = time.Microsecond
	most := Argon2{Argon2id, MaxArgon2Time, 1 << 20, 4}
	for _, c := range []struct {
		name             string
		perBlock, beyond time.Duration
		d                time.Duration
		time, memory     int
	}{
		{"all passes that are needed", 1 * us, 0, 2 * time.Second, 4, 500_000},
		{"large memory is slower", 1 * us, 1 * us, 2 * time.Second, 4, 250_000},
		{"fast: more passes", 0, 200, 10 * time.Second, 47, 1 << 20},
		{"no time", 1 * us, 0, 1, 4, 32},
		{"slow", time.Hour, 0, time.Second, 4, 32},
	} {
		m := &blockMachine{perBlock: c.perBlock, beyond: c.beyond}
		got, err := calibrate(most, c.d, m.measure)
		if want := (Argon2{Argon2id, c.time, c.memory, 4}); err != nil || got != want {
			t.Errorf("%s: got %+v, want %+v (%v)", c.name, got, want, err)
		}
		if len(m.measured) != 2 || m.measured[0].Memory != firstMemory {
			t.Errorf("%s: measured %+v", c.name, m.measured)
		}
		if err := got.CheckNew(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	failed := errors.New("failed")
	if _, err := calibrate(most, time.Second, func(Argon2) (time.Duration, error) { return 0, failed }); err != failed {
		t.Errorf("got %v", err)
	}
}

func TestEstimateArgon2OnFakeMachine(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		name             string
		cost             Argon2
		perBlock, perKiB time.Duration
		want             time.Duration
		runs             int
	}{
		{"few passes", Argon2{Argon2id, 4, 1 << 20, 4}, 1 * us, 0, 4 << 20 * us, 1},
		{"memory costs too", Argon2{Argon2id, 4, 1 << 20, 4}, 1 * us, 3 * us, 7 << 20 * us, 1},
		{"memory costs once", Argon2{Argon2id, 100, 1 << 20, 4}, 1 * us, 3 * us, 103 << 20 * us, 2},
		{"little memory", Argon2{Argon2i, 1_000_000_000, 32, 1}, 1 * us, 0, 32_000 * time.Second, 10},
		{"fast", Argon2{Argon2i, 5, 32, 1}, 1, 0, 160, 2},
		{"one pass", Argon2{Argon2i, 1, 32, 1}, 1, 0, 32, 1},
	} {
		m := &blockMachine{perBlock: c.perBlock, perKiB: c.perKiB}
		got, err := c.cost.estimate(m.measure)
		if err != nil || got != c.want || len(m.measured) != c.runs {
			t.Errorf("%s: got %v after %d runs, want %v after %d (%v)", c.name, got, len(m.measured), c.want, c.runs, err)
		}
	}
	forever := &blockMachine{perBlock: time.Hour}
	if got, err := (Argon2{Argon2i, MaxArgon2Time, MaxArgon2Memory, 1}).estimate(forever.measure); err != nil || got < 1<<61 {
		t.Errorf("for ever: got %v (%v)", got, err)
	}
}

func TestArgon2SpeedHere(t *testing.T) {
	cost, err := CalibrateArgon2(background, Argon2id, DefaultArgon2CPUs(), 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := cost.CheckNew(); err != nil {
		t.Errorf("%+v: %v", cost, err)
	}
	estimate, err := cost.Estimate(background)
	if err != nil || estimate <= 0 {
		t.Errorf("%v, %v", estimate, err)
	}
	t.Logf("%+v: %v", cost, estimate)
	ctx, cancel := context.WithCancel(background)
	cancel()
	if _, err := CalibrateArgon2(ctx, Argon2id, 1, time.Second); err != context.Canceled {
		t.Errorf("CalibrateArgon2, cancelled: %v", err)
	}
	if _, err := cost.Estimate(ctx); err != context.Canceled {
		t.Errorf("Estimate, cancelled: %v", err)
	}
	if refused := new(Argon2Error); !errors.As(func() error { _, err := Argon2{}.Estimate(background); return err }(), &refused) {
		t.Error("no variant: no Argon2Error")
	}
}
