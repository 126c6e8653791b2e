package asmtest

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The rules, beside those of allowed.txt:
//
// General registers hold arguments, constants, and what is computed of these.
// Nothing comes into them from a vector, from a mask, or from memory other than
// the arguments. So none of them, and no flag, ever depends on a key or on data,
// and neither does an address or a branch made of them.
//
// The stack holds arguments and results and nothing else: no copy of a secret
// stays there.

//go:embed allowed.txt
var allowedText string

// allowed maps an instruction to the groups that it is in.
type allowed map[string][]string

func parseAllowed(text string) (allowed, error) {
	list := allowed{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		group := words[0]
		if groupRules[group] == nil {
			return nil, fmt.Errorf("allowed instructions: no group is called %q", group)
		}
		for _, name := range words[1:] {
			if setsFlagsFromData.MatchString(name) {
				return nil, fmt.Errorf("allowed instructions: %s makes flags of data", name)
			}
			if slices.Contains(list[name], group) {
				return nil, fmt.Errorf("allowed instructions: %s is listed twice", name)
			}
			list[name] = append(list[name], group)
		}
	}
	return list, nil
}

// setsFlagsFromData matches what may be in no group: the rule about branches
// relies on flags that are made by counters alone.
var setsFlagsFromData = regexp.MustCompile(`^(v?ptest|vtestp[sd]|v?u?comis[sdh]|k(or)?test[bwdq]|v?pcmp[ei]str[im])$`)

// groupRules say of each group what is wrong with an instruction of function f,
// or nothing.
var groupRules = map[string]func(f *function, i *instruction) string{
	"vector": func(f *function, i *instruction) string {
		for _, o := range i.operands {
			switch o.kind {
			case vector, mask, constant:
			case memory:
				if wrong := o.checkAddress(); wrong != "" {
					return wrong
				}
			default:
				return o.text + " is no vector, constant or memory"
			}
		}
		return ""
	},
	"broadcast": func(f *function, i *instruction) string {
		last := len(i.operands) - 1
		for n, o := range i.operands {
			if n == last && o.kind != vector && o.kind != mask {
				return o.text + " is no vector or mask"
			}
			if n < last && o.kind != general && o.kind != constant {
				return o.text + " is no general register or constant"
			}
		}
		return ""
	},
	"counter": func(f *function, i *instruction) string {
		for _, o := range i.operands {
			if o.kind != general && o.kind != constant {
				return o.text + " is no general register or constant"
			}
		}
		return ""
	},
	"address": func(f *function, i *instruction) string {
		from, to := i.operands[0], i.operands[len(i.operands)-1]
		if to.kind != general {
			return to.text + " is no general register"
		}
		return from.checkAddress()
	},
	"move": func(f *function, i *instruction) string {
		arguments := 0
		for _, o := range i.operands {
			switch {
			case o.kind == general || o.kind == constant:
			case o.kind == memory && f.isArgument(o):
				arguments++
			default:
				return o.text + " is no general register, constant or argument"
			}
		}
		if arguments > 1 {
			return "two arguments"
		}
		return ""
	},
	"branch": func(f *function, i *instruction) string {
		if _, ok := f.target(i); !ok {
			return "leads out of the function"
		}
		return ""
	},
	"other": func(f *function, i *instruction) string {
		if len(i.operands) > 0 {
			return "has operands"
		}
		return ""
	},
}

// checkAddress says what is wrong with the address of memory, or nothing.
func (o *operand) checkAddress() string {
	switch {
	case o.kind != memory:
		return o.text + " is no address"
	case o.segment != "":
		return o.text + ": the address has a segment"
	case o.base == "%rip" && o.index == "":
		return ""
	case !isGeneral(o.base):
		return o.text + ": the base is no general register"
	case o.index != "" && !isGeneral(o.index):
		return o.text + ": the index is no general register"
	}
	return ""
}

// isArgument tells whether memory is an argument or a result of f.
func (f *function) isArgument(o operand) bool {
	const returnAddress = 8
	return o.base == "%rsp" && o.index == "" && o.segment == "" &&
		o.displacement >= returnAddress && o.displacement < returnAddress+f.argumentBytes
}

// target returns which instruction of f a branch leads to.
func (f *function) target(i *instruction) (n int, ok bool) {
	if len(i.operands) != 1 {
		return 0, false
	}
	word, _, _ := strings.Cut(i.operands[0].text, " ")
	address, err := strconv.ParseUint(word, 16, 64)
	if err != nil {
		return 0, false
	}
	return slices.BinarySearchFunc(f.instructions, address, func(i instruction, address uint64) int {
		return int(int64(i.address - address))
	})
}

// check returns what is wrong with f, and notes in used which entries of the
// list it needs, as "group instruction".
func check(f *function, list allowed, used map[string]bool) (problems []string) {
	report := func(i *instruction, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s+%#x: %s: %s",
			f.name, i.address-f.instructions[0].address, i.text, fmt.Sprintf(format, args...)))
	}
	if len(f.instructions) == 0 {
		return []string{f.name + ": no instructions"}
	}
	groups := make([]string, len(f.instructions)) // of each instruction
	targets := map[int]bool{}
	wide := false
	for n := range f.instructions {
		i := &f.instructions[n]
		group, wrong := list.groupOf(f, i)
		if wrong != "" {
			report(i, "%s", wrong)
			continue
		}
		groups[n] = group
		used[group+" "+i.mnemonic] = true
		if group == "branch" {
			to, _ := f.target(i)
			targets[to] = true
		}
		wide = wide || wideRegister.MatchString(i.text)
	}
	for n := range f.instructions {
		i := &f.instructions[n]
		if groups[n] == "branch" && i.mnemonic != "jmp" && !f.countsBefore(n, groups, targets) {
			report(i, "the flags are not made by a counter just before")
		}
		if i.mnemonic == "ret" && wide && (n == 0 || f.instructions[n-1].mnemonic != "vzeroupper") {
			report(i, "wide registers are in use, and there is no vzeroupper just before")
		}
	}
	if last := &f.instructions[len(f.instructions)-1]; last.mnemonic != "ret" && last.mnemonic != "jmp" {
		report(last, "the function does not end here, and has no more instructions")
	}
	return problems
}

var wideRegister = regexp.MustCompile(`%[yz]mm`)

// groupOf returns a group of the list whose rule i keeps, or what is wrong.
func (list allowed) groupOf(f *function, i *instruction) (group, wrong string) {
	wrong = "not on the list of allowed instructions"
	for _, group := range list[i.mnemonic] {
		if wrong = groupRules[group](f, i); wrong == "" {
			return group, ""
		}
	}
	return "", wrong
}

// countsBefore tells whether the flags at instruction n come from a counter,
// on every way that leads there.
func (f *function) countsBefore(n int, groups []string, targets map[int]bool) bool {
	for ; n > 0 && !targets[n]; n-- {
		switch groups[n-1] {
		case "counter":
			return true
		case "branch", "other", "":
			return false
		}
	}
	return false
}
