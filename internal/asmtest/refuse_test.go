package asmtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// good is a function that keeps the rules, up to its last instructions. Its
// arguments are two pointers and a length.
const good = `
	mov 8(%rsp), %rax
	mov 16(%rsp), %rcx
	mov 24(%rsp), %rdx
	cmp $2, %rdx
	je 2f
	lea (%rax,%rdx,2), %rbx
1:	movdqu 16(%rcx), %xmm0
	pxor constants(%rip), %xmm0
	movdqu %xmm0, (%rax,%rbx,1)
	add $16, %rax
	dec %rdx
	movdqa %xmm0, %xmm1
	jne 1b
2:	mov %rdx, 24(%rsp)
`

var refused = []struct {
	name, code string
	also       string // a line more of allowed instructions
	want       string // in what is reported; nothing: the code is good
}{
	{"good", "ret", "", ""},
	{"good, wide", "vmovdqu (%rax), %ymm0; vzeroupper; ret", "", ""},
	{"good, mask", "mov $3, %edx; kmovw %edx, %k1; vpxord (%rax){1to16}, %zmm0, %zmm0{%k1}; vzeroupper; ret", "", ""},

	// Instructions.
	{"division", "div %rcx; ret", "", "not on the list"},
	{"load of a byte", "movzbl (%rcx), %edx; ret", "", "not on the list"},
	{"data to a general register", "pextrq $1, %xmm0, %rdx; ret", "", "not on the list"},
	{"signs to a general register", "pmovmskb %xmm0, %edx; ret", "", "not on the list"},
	{"string", "rep movsb; ret", "", "not on the list"},
	{"locked", "lock incq (%rcx); ret", "", "not on the list"},
	{"system call", "syscall; ret", "", "not on the list"},
	{"nonsense", ".byte 0x06; ret", "", "not on the list"},

	// General registers.
	{"data by movq", "movq %xmm0, %rdx; ret", "vector movq", "%rdx is no vector"},
	{"data by movd", "movd %xmm0, %edx; ret", "vector movd", "%edx is no vector"},
	{"data by pextrq, allowed", "pextrq $1, %xmm0, %rdx; ret", "vector pextrq", "%rdx is no vector"},
	{"data by pextrq, as a broadcast", "pextrq $1, %xmm0, %rdx; ret", "broadcast pextrq", "%xmm0 is no general"},
	{"mask to a general register", "kmovw %k1, %edx; ret", "", "%k1 is no general"},
	{"load", "mov (%rcx), %rdx; ret", "", "(%rcx) is no general register, constant or argument"},
	{"load below the stack", "mov -8(%rsp), %rdx; ret", "", "-0x8(%rsp) is no general"},
	{"load above the arguments", "mov 32(%rsp), %rdx; ret", "", "0x20(%rsp) is no general"},
	{"load of the return address", "mov (%rsp), %rdx; ret", "", "(%rsp) is no general"},
	{"load of an argument by an index", "mov 8(%rsp,%rax,8), %rdx; ret", "", "0x8(%rsp,%rax,8) is no general"},
	{"sum with data", "add (%rcx), %rdx; ret", "", "(%rcx) is no general"},

	// The stack.
	{"push", "push %rax; pop %rax; ret", "", "not on the list"},
	{"vector on the stack", "movdqu %xmm0, -16(%rsp); ret", "", "the base is no general register"},
	{"vector over the arguments", "movdqu %xmm0, 8(%rsp); mov 8(%rsp), %rax; ret", "", "the base is no general register"},
	{"address of the stack", "lea -16(%rsp), %rdx; ret", "", "the base is no general register"},
	{"copy of the stack pointer", "mov %rsp, %rdx; ret", "", "%rsp is no general"},

	// Addresses.
	{"look-up in a table", "movd %xmm0, %edx; movdqu (%rcx,%rdx,1), %xmm0; ret", "vector movd", "%edx is no vector"},
	{"gather", "vpgatherdd %xmm2, (%rcx,%xmm1,4), %xmm0; ret", "", "not on the list"},
	{"gather, allowed", "vpgatherdd %xmm2, (%rcx,%xmm1,4), %xmm0; ret", "vector vpgatherdd", "the index is no general register"},
	{"scatter, allowed", "vpscatterdd %zmm0, (%rcx,%zmm1,4){%k1}; vzeroupper; ret", "vector vpscatterdd", "the index is no general register"},
	{"no base", "movdqu (,%rcx,8), %xmm0; ret", "", "the base is no general register"},
	{"absolute", "movdqu 0x1000, %xmm0; ret", "", "is no vector"},
	{"segment", "movdqu %fs:(%rcx), %xmm0; ret", "", "has a segment"},

	// Branches.
	{"branch on data, ptest", "ptest %xmm0, %xmm0; je 1b; ret", "", "not on the list"},
	{"branch on data, ptest, its flags", "ptest %xmm0, %xmm0; je 1b; ret", "", "the flags are not made"},
	{"branch on data, kortest", "kortestw %k1, %k1; je 1b; ret", "", "not on the list"},
	{"branch on data, compared", "cmp (%rcx), %rax; je 1b; ret", "", "(%rcx) is no general"},
	{"branch on data, by a register", "movq %xmm0, %rdx; cmp $0, %rdx; je 1b; ret", "vector movq", "%rdx is no vector"},
	{"flags from somewhere else", "jmp 3f; 4: je 1b; ret; 3: cmp $1, %rdx; jmp 4b", "", "the flags are not made"},
	{"flags by nobody", "jmp 3f; 3: je 1b; ret", "", "the flags are not made"},
	{"branch by a register", "jmp *%rdx", "", "leads out of the function"},
	{"branch to data", "jmp *(%rcx)", "", "leads out of the function"},
	{"branch out", "jmp outside", "", "leads out of the function"},
	{"branch into an instruction", "cmp $1, %rdx; je 1b+1; ret", "", "leads out of the function"},
	{"call", "call outside; ret", "", "not on the list"},
	{"no end", "add $1, %rax", "", "does not end here"},

	// Wide registers.
	{"no vzeroupper", "vmovdqu (%rax), %ymm0; ret", "", "no vzeroupper"},
	{"vzeroupper on one way only", "vmovdqu (%rax), %ymm0; cmp $1, %rdx; je 3f; vzeroupper; ret; 3: ret", "", "no vzeroupper"},
}

func TestRefused(t *testing.T) {
	needBinutils(t)
	var source strings.Builder
	source.WriteString(".data\nconstants: .skip 16\n.text\noutside: ret\n")
	for n, r := range refused {
		fmt.Fprintf(&source, ".type case%d, @function\ncase%d:\n%s\t%s\n.size case%d, .-case%d\n\tret\n", n, n, good, r.code, n, n)
	}
	object := assemble(t, source.String())
	for n, r := range refused {
		t.Run(r.name, func(t *testing.T) {
			list, err := parseAllowed(allowedText + "\n" + r.also + "\n")
			if err != nil {
				t.Fatal(err)
			}
			f := &function{
				name:          r.name,
				argumentBytes: 24,
				instructions:  disassemble(t, object, fmt.Sprintf("case%d", n)),
			}
			got := strings.Join(check(f, list, map[string]bool{}), "\n")
			if r.want == "" && got != "" || !strings.Contains(got, r.want) {
				t.Errorf("got %q, want %q", got, r.want)
			}
			if r.want != "" && strings.Contains(got, "good") {
				t.Errorf("the part that is good was refused: %s", got)
			}
		})
	}
}

// assemble returns the name of an ELF file.
func assemble(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "refused.s"), filepath.Join(dir, "refused.o")
	if err := os.WriteFile(in, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("as", "--64", "-o", out, in).CombinedOutput(); err != nil {
		t.Fatalf("as: %v\n%s", err, said)
	}
	return out
}

func TestParseAllowedRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"bits pxor", "no group"},
		{"vector pxor por pxor", "twice"},
		{"vector vptest", "flags of data"},
		{"vector kortestw", "flags of data"},
		{"other comisd", "flags of data"},
	} {
		if _, err := parseAllowed(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.text, err, c.want)
		}
	}
}
