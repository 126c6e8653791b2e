package luks2

import (
	"bytes"
	"slices"
	"strconv"

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
