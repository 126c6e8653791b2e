package asmtest

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

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
		if operandRules[group] == nil {
			return nil, fmt.Errorf("internal/asmtest/allowed.txt: no group is called %q", group)
		}
		for _, name := range words[1:] {
			if setsFlagsFromData.MatchString(name) {
				return nil, fmt.Errorf("internal/asmtest/allowed.txt: %s makes flags of vectors", name)
			}
			if slices.Contains(list[name], group) {
				return nil, fmt.Errorf("internal/asmtest/allowed.txt: %s is listed twice", name)
			}
			list[name] = append(list[name], group)
		}
	}
	return list, nil
}

// setsFlagsFromData matches what can be in no group, as those of vectors set no
// flags.
var setsFlagsFromData = regexp.MustCompile(`^(v?ptest|vtestp[sd]|v?u?comis[sdh]|k(or)?test[bwdq]|v?pcmp[ei]str[im])$`)

// operandRules say of each group which operands an instruction of function f
// cannot have: they return what is wrong, or nothing.
var operandRules = map[string]func(f *function, i *instruction) string{
	"vector":    vectorOperands,
	"broadcast": broadcastOperands,
	"move":      generalOperands,
	"change":    generalOperands,
	"sum":       generalOperands,
	"step":      generalOperands,
	"turn":      generalOperands,
	"address":   addressOperands,
	"branch":    branchOperands,
	"other":     noOperands,
}

func vectorOperands(f *function, i *instruction) string {
	for _, o := range i.operands {
		switch o.kind {
		case vector, mask, constant:
		case memory:
			if wrong := o.checkAddress(); wrong != "" {
				return wrong
			}
		default:
			return o.text + " is no vector, mask, constant or memory"
		}
	}
	return ""
}

func broadcastOperands(f *function, i *instruction) string {
	if len(i.operands) != 2 || i.operands[0].kind != general {
		return "does not come from a general register"
	}
	if to := i.operands[1].kind; to != vector && to != mask {
		return "does not go to a vector or a mask"
	}
	return ""
}

func generalOperands(f *function, i *instruction) string {
	for _, o := range i.operands {
		switch {
		case o.kind == general, o.kind == constant, f.isArgument(o):
		case o.kind == memory:
			if wrong := o.checkAddress(); wrong != "" {
				return wrong
			}
		default:
			return o.text + " is no general register, constant or memory"
		}
	}
	return ""
}

func addressOperands(f *function, i *instruction) string {
	if len(i.operands) != 2 || i.operands[1].kind != general {
		return "does not go to a general register"
	}
	return i.operands[0].checkAddress()
}

func branchOperands(f *function, i *instruction) string {
	if _, ok := f.target(i); !ok {
		return "leads out of the function"
	}
	return ""
}

func noOperands(f *function, i *instruction) string {
	if len(i.operands) > 0 {
		return "has operands"
	}
	return ""
}

// checkAddress says what is wrong with the address of memory, or nothing. The
// stack is not for copies of secrets: nothing but arguments and results is there.
func (o *operand) checkAddress() string {
	switch {
	case o.kind != memory:
		return o.text + " is no memory"
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

// check returns what is wrong with f, and notes in used which entries of the
// list it needs, as "group instruction".
func check(f *function, list allowed, used map[string]bool) (problems []string) {
	if len(f.instructions) == 0 {
		return []string{f.name + ": no instructions"}
	}
	report := func(i *instruction, what string) {
		problems = append(problems, fmt.Sprintf("%s+%#x: %s: %s", f.name, i.address-f.instructions[0].address, i.text, what))
	}
	wide := false
	said := map[string]bool{} // of each instruction, what is wrong is said once
	for n := range f.instructions {
		i := &f.instructions[n]
		group, wrong := list.groupOf(f, i)
		if wrong != "" {
			if key := i.mnemonic + " " + wrong; !said[key] {
				said[key] = true
				report(i, wrong)
			}
			continue
		}
		i.group = group
		used[group+" "+i.mnemonic] = true
		wide = wide || wideRegister.MatchString(i.text)
	}
	if len(problems) > 0 {
		return problems // the ways of secrets cannot be known
	}
	if last := &f.instructions[len(f.instructions)-1]; last.mnemonic != "ret" && last.mnemonic != "jmp" {
		report(last, "the function does not end here, and has no more instructions")
		return problems
	}
	for n, before := range f.secrets() {
		i := &f.instructions[n]
		if wrong := f.leak(i, before); wrong != "" {
			report(i, wrong)
		}
		if i.mnemonic == "ret" && wide && (n == 0 || f.instructions[n-1].mnemonic != "vzeroupper") {
			report(i, "wide registers are in use, and there is no vzeroupper just before")
		}
	}
	return problems
}

var wideRegister = regexp.MustCompile(`%[yz]mm`)

// groupOf returns the group of the list whose rule i keeps, or what is wrong.
func (list allowed) groupOf(f *function, i *instruction) (group, wrong string) {
	wrong = "not in internal/asmtest/allowed.txt"
	for _, group := range list[i.mnemonic] {
		if wrong = operandRules[group](f, i); wrong == "" {
			return group, ""
		}
	}
	return "", wrong
}
