package asmtest

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// architecture is a processor whose assembly can be checked.
type architecture struct {
	name         string // as in GOARCH
	stackPointer string
	wordBytes    int64
	symbolSuffix string // of functions of assembly, with arguments on the stack
}

var architectures = []*architecture{
	{name: "amd64", stackPointer: "%rsp", wordBytes: 8, symbolSuffix: ".abi0"},
	{name: "386", stackPointer: "%esp", wordBytes: 4},
}

// function is a function of assembly as the processor gets it.
type function struct {
	arch          *architecture
	name          string
	argumentBytes int64 // arguments and results, on the stack
	instructions  []instruction
}

type instruction struct {
	address  uint64
	text     string
	mnemonic string
	operands []operand // the destination is the last
	group    string    // of the allowed instructions
}

type kind int

const (
	unknown kind = iota
	constant
	general
	vector
	mask
	memory
)

type operand struct {
	text string
	kind kind
	// memory
	segment, base, index string
	displacement         int64
}

// disassemble returns the instructions of a function in an ELF file, as GNU
// objdump reads them; the one that comes with Go misreads EVEX.
func disassemble(t *testing.T, file, symbol string) []instruction {
	t.Helper()
	start, end := bounds(t, file, symbol)
	cmd := exec.Command("objdump", "--disassemble", "--no-show-raw-insn", "--wide",
		fmt.Sprintf("--start-address=%#x", start), fmt.Sprintf("--stop-address=%#x", end), file)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	var list []instruction
	for line := range strings.Lines(string(out)) {
		m := listingLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		address, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, parseInstruction(address, m[2]))
	}
	return list
}

// bounds returns the addresses of a function in an ELF file.
func bounds(t *testing.T, file, symbol string) (start, end uint64) {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name == symbol {
			return s.Value, s.Value + s.Size
		}
	}
	t.Fatalf("%s has no %s: nothing calls it", file, symbol)
	return
}

var (
	listingLine = regexp.MustCompile(`^\s*([0-9a-f]+):\s+(.*\S)`)
	spaces      = regexp.MustCompile(`\s+`)
)

func parseInstruction(address uint64, text string) instruction {
	text, _, _ = strings.Cut(text, " # ") // where %rip leads to
	text = spaces.ReplaceAllString(strings.TrimSpace(text), " ")
	i := instruction{address: address, text: text}
	var rest string
	i.mnemonic, rest, _ = strings.Cut(text, " ")
	for _, s := range splitOperands(rest) {
		i.operands = append(i.operands, parseOperand(s))
	}
	return i
}

// splitOperands splits at commas outside of parentheses.
func splitOperands(s string) (operands []string) {
	depth, start := 0, 0
	for n, c := range s {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			operands = append(operands, s[start:n])
			start = n + 1
		}
	}
	if s != "" {
		operands = append(operands, s[start:])
	}
	return operands
}

var (
	// With {%k1} only the lanes of a mask count, with {z} the others become zero.
	vectorOperand = regexp.MustCompile(`^%[xyz]mm\d+(\{%k[1-7]\})?(\{z\})?$`)
	memoryOperand = regexp.MustCompile(`^(%[a-z]s:)?(-?0x[0-9a-f]+)?` + // segment, displacement
		`\((%[a-z0-9]+)?(?:,(%[a-z0-9]+)(?:,[1248])?)?\)` + // base, index, scale
		`(?:\{1to\d+\})?(?:\{%k[1-7]\})?(?:\{z\})?$`)
)

// generalRegisters are the names of general registers, by number, and the stack
// pointer is none.
var generalRegisters = func() (names [15][]string) {
	for n, letter := range []string{"a", "b", "c", "d"} {
		names[n] = []string{"%r" + letter + "x", "%e" + letter + "x", "%" + letter + "x", "%" + letter + "l", "%" + letter + "h"}
	}
	for n, word := range []string{"si", "di", "bp"} {
		names[4+n] = []string{"%r" + word, "%e" + word, "%" + word, "%" + word + "l"}
	}
	for n := 8; n <= 15; n++ {
		name := "%r" + strconv.Itoa(n)
		names[n-1] = []string{name, name + "d", name + "w", name + "b"}
	}
	return names
}()

// registerNumber returns the number of a general register, or -1.
func registerNumber(name string) int {
	return slices.IndexFunc(generalRegisters[:], func(names []string) bool { return slices.Contains(names, name) })
}

func isGeneral(register string) bool { return registerNumber(register) >= 0 }

// isPart tells whether a general register is the lower part of one, the rest of
// which is left when it is written.
func isPart(register string) bool {
	n := registerNumber(register)
	return n >= 0 && slices.Index(generalRegisters[n], register) >= 2
}

func parseOperand(s string) operand {
	o := operand{text: s}
	switch {
	case strings.HasPrefix(s, "$"):
		o.kind = constant
	case isGeneral(s):
		o.kind = general
	case vectorOperand.MatchString(s):
		o.kind = vector
	case strings.HasPrefix(s, "%k"):
		o.kind = mask
	case memoryOperand.MatchString(s):
		m := memoryOperand.FindStringSubmatch(s)
		o.kind, o.segment, o.base, o.index = memory, m[1], m[3], m[4]
		if m[2] != "" {
			n, err := strconv.ParseInt(m[2], 0, 64)
			if err != nil {
				o.kind = unknown
			}
			o.displacement = n
		}
	}
	return o
}
