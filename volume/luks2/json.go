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

	"serpcrypt/volume/luks"
)

// An object lists its members, once for reading and writing.
type object interface{ list(m *members) }

// A value is one of the forms that a member has in JSON.
type value interface {
	read(n node)
	write(out *bytes.Buffer)
}

// A valueOrNone need not be there.
type valueOrNone interface {
	value
	isNone() bool
}

// document is a JSON text that is being read.
type document struct {
	text   []byte
	offset int64            // of the text, in bytes from the start of the header's store
	places map[string]int64 // of the values that have been asked for, in the same way
	fault  *luks.FieldError // the first
}

// node is a value in a document. The text from its first byte to its last is
// known to be JSON.
type node struct {
	in       *document
	path     string // such as "keyslots.3.area.offset"
	from, to int
}

func (n node) text() []byte { return n.in.text[n.from:n.to] }

func (n node) fail(format string, args ...any) {
	if n.in.fault == nil {
		n.in.fault = newFault(n.path, n.in.offset+int64(n.from), format, args...)
	}
}

// is reports whether the value is of a kind, by the byte that those begin with,
// and records a fault if not.
func (n node) is(begin byte) bool {
	got := n.in.text[n.from]
	if got != begin {
		n.fail("%s, must be %s", kind(got), kind(begin))
	}
	return got == begin
}

func kind(begin byte) string {
	switch begin {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f', 'n':
		return "true, false or null"
	default:
		return "a number"
	}
}

func (n node) child(name string, from, to int) node {
	if n.path != "" {
		name = n.path + "." + name
	}
	return node{n.in, name, from, to}
}

// scanner returns one for the value, and leave, which turns what the scanner
// panics with into a fault of the document.
func (n node) scanner() (s *scanner, leave func()) {
	s = &scanner{text: n.in.text[:n.to], at: n.from}
	return s, func() {
		switch e := recover().(type) {
		case nil:
		case syntaxError:
			node{n.in, n.path, e.at, e.at}.fail("%s", e.reason)
		default:
			panic(e)
		}
	}
}

type nameAndPlace struct {
	name     string
	from, to int
}

// members returns those of an object.
func (n node) members() (found []nameAndPlace) {
	if !n.is('{') {
		return nil
	}
	s, leave := n.scanner()
	defer leave()
	s.object(func(name string, from, to int) { found = append(found, nameAndPlace{name, from, to}) })
	return found
}

// strings returns those of an array that has nothing else.
func (n node) strings() []string {
	if !n.is('[') {
		return nil
	}
	found := []string{}
	s, leave := n.scanner()
	defer leave()
	s.array(func(from, to int) { found = append(found, node{n.in, n.path, from, to}.string()) })
	return found
}

func (n node) string() string {
	if !n.is('"') {
		return ""
	}
	s, leave := n.scanner()
	defer leave()
	return s.string()
}

// decimal returns the number that a string of digits says.
func (n node) decimal(bits int) uint64 {
	text := n.string()
	number, err := strconv.ParseUint(text, 10, bits)
	if err != nil || text != strconv.FormatUint(number, 10) {
		n.fail("%s, must be the digits of a number below 2^%d", excerpt(text), bits)
	}
	return number
}

// readJSON reads the text into top, and returns where in the header's store the
// values of its members are, by path. The text begins at offset there.
func readJSON(text []byte, offset int64, top object) (places map[string]int64, fault *luks.FieldError) {
	in := &document{text: text, offset: offset, places: map[string]int64{}}
	if len(text) == 0 || text[0] != '{' {
		return nil, newFault("json", offset, "the text must begin with '{'")
	}
	root := node{in: in, to: len(text)}
	// The text ends with the object, but for white space.
	s, leave := root.scanner()
	func() {
		defer leave()
		s.value()
		if end := s.at; s.peek() != 0 || s.at != len(text) {
			root.to = end
			s.fail("something follows the object")
		}
	}()
	if in.fault == nil {
		readObject(root, top)
	}
	if in.fault != nil {
		if in.fault.Field == "" {
			in.fault.Field = "json"
		}
		return nil, in.fault
	}
	return in.places, nil
}

func writeJSON(top object) []byte {
	var out bytes.Buffer
	writeObject(&out, top)
	return out.Bytes()
}

// members reads or writes the members of one object.
type members struct {
	from node
	left []nameAndPlace // that nobody has asked for yet

	out   *bytes.Buffer // nil: reads
	count int           // written
}

func readObject(n node, o object) {
	m := &members{from: n, left: n.members()}
	if n.in.fault == nil {
		o.list(m)
	}
}

func writeObject(out *bytes.Buffer, o object) {
	out.WriteByte('{')
	o.list(&members{out: out})
	out.WriteByte('}')
}

// required lists a member that has to be there.
func (m *members) required(name string, v value) {
	if m.out != nil {
		m.write(name, v)
	} else if !m.read(name, v) {
		m.from.child(name, m.from.from, m.from.from).fail("missing")
	}
}

// optional lists a member that need not be there.
func (m *members) optional(name string, v valueOrNone) {
	if m.out == nil {
		m.read(name, v)
	} else if !v.isNone() {
		m.write(name, v)
	}
}

// unknown lists all members that are left. It comes last.
func (m *members) unknown(list *[]Member) {
	for _, l := range m.left {
		*list = append(*list, Member{l.name, bytes.Clone(m.from.in.text[l.from:l.to])})
	}
	if m.out != nil {
		for _, member := range *list {
			m.write(member.Name, (*verbatim)(&member.Value))
		}
	}
}

func (m *members) read(name string, v value) (found bool) {
	i := slices.IndexFunc(m.left, func(l nameAndPlace) bool { return l.name == name })
	if i < 0 || m.from.in.fault != nil {
		return i >= 0
	}
	n := m.from.child(name, m.left[i].from, m.left[i].to)
	n.in.places[n.path] = n.in.offset + int64(n.from)
	m.left = slices.Delete(m.left, i, i+1)
	v.read(n)
	return true
}

func (m *members) write(name string, v value) {
	if m.count++; m.count > 1 {
		m.out.WriteByte(',')
	}
	writeString(m.out, name)
	m.out.WriteByte(':')
	v.write(m.out)
}

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
