package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"serpcrypt/internal/secret"
)

// How "open" and the server that it starts talk, over two pipes.
//
// To the server: the length of the settings (4 bytes, little endian), the
// settings as JSON, the volume key as it is, then orders as JSON. The end of
// the pipe before the order to commit means that the container shall not stay
// open.
//
// From the server: answers as JSON.

// The descriptors that the server inherits.
const (
	ordersFd = 3 + iota
	answersFd
	containerFd // opened and locked
	headerFd    // the same unless the header is detached
	lockFd      // of the entry in the runtime folder
)

// serverSettings are what the server needs to know, beside the key.
type serverSettings struct {
	Entry      string // path of the entry in the runtime folder
	KeyBytes   int
	State      openState
	AllowOther bool
	Discards   bool // from the start
	Foreground bool // log to standard error; end when the pipe ends
	Quiet      bool // log only what goes wrong
}

// maxSettings is more than settings with the longest paths take.
const maxSettings = 64 << 10

// order tells the server to do one thing.
type order struct {
	AllowDiscards bool       `json:",omitempty"`
	Commit        *openState `json:",omitempty"` // stay open; this is the final state
}

// answer is that the volume can be used, or why it can't.
type answer struct {
	Ready bool   `json:",omitempty"`
	Error string `json:",omitempty"`
	Code  int    `json:",omitempty"`
	Hint  string `json:",omitempty"`
}

func (a answer) failure() error { return failf(a.Code, a.Hint, "%s", a.Error) }

func failedAnswer(err error) answer {
	code, hint := explain(err)
	return answer{Error: errorText(err), Code: code, Hint: hint}
}

// sendSettings sends the settings and the key.
func sendSettings(w io.Writer, s serverSettings, key *secret.Buffer) error {
	s.KeyBytes = key.Len()
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	for _, part := range [][]byte{head, text, key.Bytes()} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("send to the server: %w", err)
		}
	}
	return nil
}

// receiveSettings reads the settings and, without a copy on its way, the key.
func receiveSettings(r *os.File) (serverSettings, *secret.Buffer, error) {
	var s serverSettings
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return s, nil, fmt.Errorf("settings: %w", err)
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length > maxSettings {
		return s, nil, errors.New("settings: too long")
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return s, nil, fmt.Errorf("settings: %w", err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, nil, fmt.Errorf("settings: %w", err)
	}
	const maxKeyBytes = 512
	if s.KeyBytes < 0 || s.KeyBytes > maxKeyBytes {
		return s, nil, errors.New("settings: length of the key")
	}
	key, err := secret.New(s.KeyBytes)
	if err != nil {
		return s, nil, err
	}
	if _, err := io.ReadFull(r, key.Bytes()); err != nil {
		key.Close()
		return s, nil, fmt.Errorf("settings: key: %w", err)
	}
	return s, key, nil
}

// receiveOrders passes on the orders that come in. The channel is closed when
// the other side closes the pipe, or dies.
func receiveOrders(r io.Reader) <-chan order {
	orders := make(chan order)
	go func() {
		defer close(orders)
		d := json.NewDecoder(r)
		for {
			var o order
			if d.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	return orders
}
