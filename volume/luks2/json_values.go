package luks2

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

func writeString(out *bytes.Buffer, s string) {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("luks2: " + err.Error()) // strings have a form
	}
	out.Truncate(out.Len() - 1) // the newline
}

func writeStrings(out *bytes.Buffer, list []string) {
	out.WriteByte('[')
	for i, s := range list {
		if i > 0 {
			out.WriteByte(',')
		}
		writeString(out, s)
	}
	out.WriteByte(']')
}

// The forms of values.
type (
	text           string
	texts          []string           // strings; nil: none
	number         int                // a number, 0 to 2^31-1 as cryptsetup has it
	optionalNumber struct{ at **int } // nil: none
	decimal        int64              // a string of digits
	decimal64      uint64             // a string of digits
	segmentSize    int64              // a string of digits or "dynamic"
	base64Bytes    []byte             // a string
	numbers        []int              // strings of digits, the numbers of objects
	verbatim       json.RawMessage    // anything; nil: none
	nested         struct{ object }
)

func (t *text) read(n node)              { *t = text(n.string()) }
func (t *text) write(out *bytes.Buffer)  { writeString(out, string(*t)) }
func (t *texts) read(n node)             { *t = n.strings() }
func (t *texts) write(out *bytes.Buffer) { writeStrings(out, *t) }
func (t *texts) isNone() bool            { return *t == nil }

func (v *number) read(n node) {
	text := string(n.text())
	i, err := strconv.ParseInt(text, 10, 32)
	switch begin := text[0]; {
	case begin != '-' && (begin < '0' || begin > '9'):
		n.fail("%s, must be a number", kind(begin))
	case err != nil || i < 0:
		n.fail("%s, must be a whole number from 0 to %d", excerpt(text), math.MaxInt32)
	}
	*v = number(i)
}

func (v *number) write(out *bytes.Buffer) { out.WriteString(strconv.Itoa(int(*v))) }

func (o optionalNumber) read(n node)             { *o.at = new(int); (*number)(*o.at).read(n) }
func (o optionalNumber) write(out *bytes.Buffer) { (*number)(*o.at).write(out) }
func (o optionalNumber) isNone() bool            { return *o.at == nil }

func (d *decimal) read(n node)               { *d = decimal(n.decimal(63)) }
func (d *decimal) write(out *bytes.Buffer)   { fmt.Fprintf(out, `"%d"`, int64(*d)) }
func (d *decimal64) read(n node)             { *d = decimal64(n.decimal(64)) }
func (d *decimal64) write(out *bytes.Buffer) { fmt.Fprintf(out, `"%d"`, uint64(*d)) }

const dynamic = "dynamic"

func (s *segmentSize) read(n node) {
	if string(n.text()) == `"`+dynamic+`"` {
		*s = DynamicSize
	} else {
		(*decimal)(s).read(n)
	}
}

func (s *segmentSize) write(out *bytes.Buffer) {
	if *s == DynamicSize {
		writeString(out, dynamic)
	} else {
		(*decimal)(s).write(out)
	}
}

func (b *base64Bytes) read(n node) {
	text := n.string()
	decoded, err := base64.StdEncoding.Strict().DecodeString(text)
	// The decoder passes over newlines.
	if err != nil || strings.ContainsAny(text, "\r\n") {
		n.fail("%s is no base64", excerpt(text))
	}
	*b = decoded
}

func (b *base64Bytes) write(out *bytes.Buffer) {
	writeString(out, base64.StdEncoding.EncodeToString(*b))
}

// objectNumber reads what names an object: "0", "1" and so on.
func objectNumber(name string) (i int, ok bool) {
	i, err := strconv.Atoi(name[:min(len(name), 4)])
	return i, err == nil && name == strconv.Itoa(i) && i >= 0
}

func (l *numbers) read(n node) {
	list := []int{}
	for _, name := range n.strings() {
		i, ok := objectNumber(name)
		if !ok {
			n.fail("%s is no number of an object", excerpt(name))
			return
		}
		list = append(list, i)
	}
	*l = list
}

func (l *numbers) write(out *bytes.Buffer) {
	list := make([]string, len(*l))
	for i, number := range *l {
		list[i] = strconv.Itoa(number)
	}
	writeStrings(out, list)
}

func (v *verbatim) read(n node)             { *v = bytes.Clone(n.text()) }
func (v *verbatim) write(out *bytes.Buffer) { out.Write(*v) }
func (v *verbatim) isNone() bool            { return *v == nil }

func (o nested) read(n node)             { readObject(n, o.object) }
func (o nested) write(out *bytes.Buffer) { writeObject(out, o.object) }

// numbered is an object whose members are objects of one kind, named by numbers
// below limit.
type numbered[T any, P interface {
	*T
	object
}] struct {
	at    *map[int]*T
	limit int
}

func (o numbered[T, P]) read(n node) {
	objects := map[int]*T{}
	for _, found := range n.members() {
		i, ok := objectNumber(found.name)
		if !ok || i >= o.limit {
			node{n.in, n.path, found.from, found.to}.fail("%s is no number from 0 to %d", excerpt(found.name), o.limit-1)
			return
		}
		child := n.child(found.name, found.from, found.to)
		n.in.places[child.path] = n.in.offset + int64(child.from)
		objects[i] = new(T)
		if readObject(child, P(objects[i])); n.in.fault != nil {
			return
		}
	}
	*o.at = objects
}

func (o numbered[T, P]) write(out *bytes.Buffer) { writeObject(out, o) }

func (o numbered[T, P]) list(m *members) {
	for _, i := range slices.Sorted(maps.Keys(*o.at)) {
		m.write(strconv.Itoa(i), nested{P((*o.at)[i])})
	}
}
