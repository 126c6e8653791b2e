package luks2

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

const (
	maxDepth   = 32   // of objects and arrays in one another; cryptsetup reads no more
	maxMembers = 1024 // of one object or array
)

// syntaxError is where a text stops being JSON, and why.
type syntaxError struct {
	at     int
	reason string
}

// scanner walks over a JSON text as RFC 8259 has it, UTF-8 and without a name
// twice in one object. It keeps nothing of the text, whatever its size. Methods
// begin at the place they have come to and panic with a syntaxError.
type scanner struct {
	text  []byte
	at    int
	depth int
}

func (s *scanner) fail(format string, args ...any) {
	panic(syntaxError{s.at, fmt.Sprintf(format, args...)})
}

// peek returns the next byte that is no white space, or 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) expect(c byte) {
	switch got := s.peek(); {
	case s.at == len(s.text):
		s.fail("the text ends where %q belongs", c)
	case got != c:
		s.fail("%q where %q belongs", got, c)
	}
	s.at++
}

// value passes over a value and returns where it was.
func (s *scanner) value() (from, to int) {
	c := s.peek()
	from = s.at
	switch {
	case s.at == len(s.text):
		s.fail("the text ends where a value belongs")
	case c == '{':
		s.object(func(string, int, int) {})
	case c == '[':
		s.array(func(int, int) {})
	case c == '"':
		s.string()
	case c == '-' || c >= '0' && c <= '9':
		s.number()
	case c == 't':
		s.word("true")
	case c == 'f':
		s.word("false")
	case c == 'n':
		s.word("null")
	default:
		s.fail("%q where a value belongs", c)
	}
	return from, s.at
}

// object passes over an object and visits its members.
func (s *scanner) object(visit func(name string, from, to int)) {
	names := map[string]struct{}{}
	s.list('{', '}', func() {
		s.peek()
		at := s.at
		name := s.string()
		if _, twice := names[name]; twice {
			s.at = at
			s.fail("the name %s stands here twice", excerpt(name))
		}
		names[name] = struct{}{}
		s.expect(':')
		from, to := s.value()
		visit(name, from, to)
	})
}

// array passes over an array and visits its elements.
func (s *scanner) array(visit func(from, to int)) {
	s.list('[', ']', func() { visit(s.value()) })
}

func (s *scanner) list(open, end byte, next func()) {
	s.expect(open)
	if s.depth++; s.depth > maxDepth {
		s.fail("nested more than %d deep", maxDepth)
	}
	if s.peek() != end {
		next()
		for n := 1; s.peek() != end; n++ {
			if n == maxMembers {
				s.fail("more than %d members", maxMembers)
			}
			s.expect(',')
			next()
		}
	}
	s.at++
	s.depth--
}

// string passes over a string and returns what it says.
func (s *scanner) string() string {
	s.expect('"')
	from, plain := s.at, true
	for {
		if s.at == len(s.text) {
			s.fail("the text ends in a string")
		}
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			if plain {
				return string(s.text[from : s.at-1])
			}
			var says string
			if err := json.Unmarshal(s.text[from-1:s.at], &says); err != nil {
				s.fail("no string: %v", err)
			}
			return says
		case c < ' ':
			s.fail("%q in a string", c)
		case c == '\\':
			plain = false
			s.escape()
		case c < utf8.RuneSelf:
			s.at++
		default:
			r, size := utf8.DecodeRune(s.text[s.at:])
			if r == utf8.RuneError && size == 1 {
				s.fail("no UTF-8")
			}
			s.at += size
		}
	}
}

// escape passes over a backslash and what belongs to it. Half of a surrogate
// pair is refused, as it says nothing that could be written again.
func (s *scanner) escape() {
	if s.at+1 == len(s.text) {
		s.fail("the text ends in a string")
	}
	switch s.text[s.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
	case 'u':
		switch unit := s.unit(); {
		case unit >= 0xDC00 && unit < 0xE000:
			s.fail("half of a surrogate pair")
		case unit >= 0xD800 && unit < 0xDC00:
			if low := s.unit(); low < 0xDC00 || low >= 0xE000 {
				s.fail("half of a surrogate pair")
			}
		}
	default:
		s.fail("unknown escape")
	}
}

// unit passes over \uXXXX and returns the code unit.
func (s *scanner) unit() int {
	if len(s.text)-s.at < 6 || s.text[s.at] != '\\' || s.text[s.at+1] != 'u' {
		s.fail("no escape of the form \\uXXXX")
	}
	unit := 0
	for _, c := range s.text[s.at+2 : s.at+6] {
		switch {
		case c >= '0' && c <= '9':
			unit = unit<<4 | int(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			unit = unit<<4 | int(c|0x20-'a'+10)
		default:
			s.fail("no escape of the form \\uXXXX")
		}
	}
	s.at += 6
	return unit
}

func (s *scanner) number() {
	if s.text[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == '0' {
		s.at++
	} else {
		s.digits()
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		s.digits()
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		s.digits()
	}
}

func (s *scanner) digits() {
	from := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	if s.at == from {
		s.fail("a digit is missing")
	}
}

func (s *scanner) word(word string) {
	if len(s.text)-s.at < len(word) || string(s.text[s.at:s.at+len(word)]) != word {
		s.fail("no value")
	}
	s.at += len(word)
}
