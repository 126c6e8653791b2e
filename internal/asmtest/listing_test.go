package asmtest

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// function is a function of assembly as the processor gets it.
type function struct {
	name          string
	argumentBytes int64 // arguments and results, on the stack
	instructions  []instruction
}

type instruction struct {
	address  uint64
	text     string
	mnemonic string
	operands []operand // the destination is the last
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
	generalRegister = regexp.MustCompile(`^%([re]?[abcd]x|[re]?[sd]i|[re]?bp|[abcd][lh]|r(8|9|1[0-5])[dwb]?)$`)
)

func isGeneral(register string) bool { return generalRegister.MatchString(register) }

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
