package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// usage is how much an open container is used, for status to show. The server
// keeps it in its entry.
type usage struct {
	ReadBytes    int64   `json:"read_bytes"` // since it was opened
	WrittenBytes int64   `json:"written_bytes"`
	ReadRate     float64 `json:"read_bytes_per_second"` // over the last lateSeconds
	WriteRate    float64 `json:"written_bytes_per_second"`
	FailedWrites int64   `json:"failed_writes,omitempty"`
}

// lateSeconds is over how many seconds the rates go. A server looks once in a
// second.
const lateSeconds = 5

// usageMeter makes rates of counts.
type usageMeter struct {
	past    [lateSeconds]usageSample // a ring
	samples int
}

type usageSample struct {
	at            time.Time
	read, written int64
}

// add takes the counts of now, and returns all that is to be shown.
func (m *usageMeter) add(read, written int64, at time.Time) usage {
	u := usage{ReadBytes: read, WrittenBytes: written}
	oldest := m.past[0]
	if m.samples >= len(m.past) {
		oldest = m.past[m.samples%len(m.past)]
	}
	m.past[m.samples%len(m.past)] = usageSample{at, read, written}
	m.samples++
	if span := at.Sub(oldest.at).Seconds(); m.samples > 1 && span > 0 {
		u.ReadRate = float64(read-oldest.read) / span
		u.WriteRate = float64(written-oldest.written) / span
	}
	return u
}

// writeUsage is called once in a second, and writes what has changed.
func (s *server) writeUsage() error {
	counts := s.mount.Counts()
	u := s.meter.add(counts.ReadBytes, counts.WrittenBytes, time.Now())
	u.FailedWrites = s.mount.WriteErrors()
	if u == s.written {
		return nil
	}
	if err := s.entry.writeUsage(u); err != nil {
		return err
	}
	s.written = u
	return nil
}

func (e runEntry) writeUsage(u usage) error {
	text, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("runtime folder: %w", err)
	}
	return replaceFile(e.usagePath(), text)
}

// readUsage returns zeros for a container that has not been used yet.
func (e runEntry) readUsage() (usage, error) {
	var u usage
	text, err := os.ReadFile(e.usagePath())
	if errors.Is(err, fs.ErrNotExist) {
		return u, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &u)
	}
	if err != nil {
		return u, fmt.Errorf("runtime folder: %w", err)
	}
	return u, nil
}

// usage returns how much the container is used, as far as that is known.
func (f openContainer) usage() usage {
	u, err := f.entry.readUsage()
	if err != nil {
		debugf("%v", err)
	}
	if !f.alive {
		u.ReadRate, u.WriteRate = 0, 0
	}
	return u
}
