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
// arguments are two pointers and a length. In the end %rax, %rcx, %rbx and %rdx
// are public, %xmm0 and %xmm1 hold data, and the flags are public.
const good = `
	mov 8(%rsp), %rax
	mov 16(%rsp), %rcx
	mov 24(%rsp), %rdx
	cmp $2, %rdx
	je 2f
1:	lea (%rax,%rdx,2), %rbx
	movdqu 16(%rcx), %xmm0
	pxor constants(%rip), %xmm0
	movdqu %xmm0, (%rax,%rbx,1)
	add $16, %rax
	dec %rdx
	movdqa %xmm0, %xmm1
	jne 1b
2:	lea 3(%rdx), %rbx
	mov %rdx, 24(%rsp)
	cmp $5, %rdx
`

// known are the instructions that the functions tried may have.
const known = `
vector movdqa movdqu pxor vmovdqu vpxord
broadcast kmovw
sum add cmp xor
step dec
turn rol
address lea
move mov movzbl
branch je jne jb jmp
other ret vzeroupper
`

// tried are ends of that function.
var tried = []struct {
	name, code string
	also       string // a line more of known instructions
	want       string // in what is reported; nothing: the code is good
}{
	{"good", "ret", "", ""},
	{"good: wide", "vmovdqu (%rax), %ymm0; vzeroupper; ret", "", ""},
	{"good: mask", "mov $3, %edx; kmovw %edx, %k1; vpxord (%rax){1to16}, %zmm0, %zmm0{%k1}; vzeroupper; ret", "", ""},
	{"good: data in general registers", "mov (%rcx), %edx; add 4(%rcx), %edx; lea 1(%rdx), %edx; mov %edx, (%rcx); ret", "", ""},
	{"good: pointer after data", "mov (%rcx), %rdx; mov %rcx, %rdx; movdqu (%rdx), %xmm0; ret", "", ""},
	{"good: zero after data", "mov (%rcx), %rdx; xor %edx, %edx; movdqu (%rcx,%rdx,1), %xmm0; ret", "", ""},
	{"good: branch after data", "add (%rcx), %rdx; cmp $1, %rax; je 3f; 3: ret", "", ""},
	{"good: branch after a rotation", "mov (%rcx), %edx; cmp $1, %rax; rol $3, %edx; je 3f; 3: ret", "", ""},

	// Instructions.
	{"division", "div %rcx; ret", "", "not in internal"},
	{"part of a vector", "pextrq $1, %xmm0, %rdx; ret", "", "not in internal"},
	{"signs of a vector", "pmovmskb %xmm0, %edx; ret", "", "not in internal"},
	{"string", "rep movsb; ret", "", "not in internal"},
	{"locked", "lock incq (%rcx); ret", "", "not in internal"},
	{"system call", "syscall; ret", "", "not in internal"},
	{"nonsense", ".byte 0x06; ret", "", "not in internal"},
	{"no end", "add $1, %rax", "", "does not end here"},
	{"never reached", "ret; ret", "", "no way leads here"},

	// From vectors and masks to general registers.
	{"movq", "movq %xmm0, %rdx; ret", "vector movq", "%rdx is no vector"},
	{"movd", "movd %xmm0, %edx; ret", "vector movd", "%edx is no vector"},
	{"movd, of general registers", "movd %xmm0, %edx; ret", "move movd", "%xmm0 is no general"},
	{"movd, as a broadcast", "movd %xmm0, %edx; ret", "broadcast movd", "does not come from a general"},
	{"part of a vector, allowed", "pextrq $1, %xmm0, %rdx; ret", "vector pextrq", "%rdx is no vector"},
	{"mask", "kmovw %k1, %edx; ret", "", "does not come from a general"},

	// The stack.
	{"push", "push %rax; ret", "", "not in internal"},
	{"vector below the stack", "movdqu %xmm0, -16(%rsp); ret", "", "the base is no general register"},
	{"vector over the arguments", "movdqu %xmm0, 8(%rsp); ret", "", "the base is no general register"},
	{"below the stack", "mov %rdx, -8(%rsp); ret", "", "the base is no general register"},
	{"above the arguments", "mov 32(%rsp), %rdx; ret", "", "the base is no general register"},
	{"return address", "mov (%rsp), %rdx; ret", "", "the base is no general register"},
	{"argument by an index", "mov 8(%rsp,%rax,8), %rdx; ret", "", "the base is no general register"},
	{"address of the stack", "lea -16(%rsp), %rdx; ret", "", "the base is no general register"},
	{"stack pointer", "mov %rsp, %rdx; ret", "", "%rsp is no general"},
	{"data as a result", "mov (%rcx), %rdx; mov %rdx, 24(%rsp); ret", "", "stays on the stack"},
	{"data added to a result", "mov (%rcx), %rdx; add %rdx, 24(%rsp); ret", "", "stays on the stack"},

	// Addresses.
	{"look-up", "mov (%rcx), %rdx; movdqu (%rax,%rdx,1), %xmm0; ret", "", "the address depends on a secret"},
	{"look-up, scaled", "mov (%rcx), %rdx; mov constants(,%rdx,8), %rdx; ret", "", "the base is no general register"},
	{"look-up by a byte", "movzbl (%rcx), %edx; mov (%rax,%rdx,8), %rdx; ret", "", "the address depends on a secret"},
	{"look-up by a low byte", "mov (%rcx), %dl; mov (%rax,%rdx,8), %rdx; ret", "", "the address depends on a secret"},
	{"look-up by a part", "mov (%rcx), %rdx; mov $1, %dl; mov (%rax,%rdx,8), %rdx; ret", "", "the address depends on a secret"},
	{"look-up after a sum", "mov (%rcx), %rdx; add %rdx, %rbx; mov (%rax,%rbx,8), %rdx; ret", "", "the address depends on a secret"},
	{"look-up after lea", "mov (%rcx), %rdx; lea (%rax,%rdx,8), %rbx; mov (%rbx), %rdx; ret", "", "the address depends on a secret"},
	{"look-up in one case", "jne 3f; mov (%rcx), %rdx; 3: mov (%rax,%rdx,8), %rdx; ret", "", "the address depends on a secret"},
	{"look-up in the next round", "3: movdqu (%rax,%rdx,8), %xmm0; mov (%rcx), %rdx; cmp $1, %rcx; jne 3b; ret", "", "the address depends on a secret"},
	{"place of a store", "mov (%rcx), %rdx; mov %rax, (%rax,%rdx,8); ret", "", "the address depends on a secret"},
	{"place of a sum", "mov (%rcx), %rdx; add %rax, (%rdx); ret", "", "the address depends on a secret"},
	{"what the caller left", "movdqu (%r8), %xmm0; ret", "", "the address depends on a secret"},
	{"gather", "vpgatherdd %xmm2, (%rcx,%xmm1,4), %xmm0; ret", "", "not in internal"},
	{"gather, allowed", "vpgatherdd %xmm2, (%rcx,%xmm1,4), %xmm0; ret", "vector vpgatherdd", "the index is no general register"},
	{"scatter, allowed", "vpscatterdd %zmm0, (%rcx,%zmm1,4){%k1}; vzeroupper; ret", "vector vpscatterdd", "the index is no general register"},
	{"absolute", "movdqu 0x1000, %xmm0; ret", "", "0x1000 is no vector"},
	{"segment", "movdqu %fs:(%rcx), %xmm0; ret", "", "has a segment"},

	// Branches.
	{"data compared", "cmp (%rcx), %rax; je 3f; 3: ret", "", "the branch depends on a secret"},
	{"data counted", "mov (%rcx), %rdx; dec %rdx; jne 3f; 3: ret", "", "the branch depends on a secret"},
	{"data added", "add (%rcx), %rdx; je 3f; 3: ret", "", "the branch depends on a secret"},
	{"carry before a step", "add (%rcx), %rdx; dec %rax; jb 3f; 3: ret", "", "the branch depends on a secret"},
	{"carry of a rotation", "mov (%rcx), %edx; cmp $1, %rax; rol $3, %edx; jb 3f; 3: ret", "", "the branch depends on a secret"},
	{"data compared in one case", "jne 3f; cmp (%rcx), %rax; 3: je 4f; 4: ret", "", "the branch depends on a secret"},
	{"vector", "ptest %xmm0, %xmm0; je 1b; ret", "", "not in internal"},
	{"mask of a comparison", "kortestw %k1, %k1; je 1b; ret", "", "not in internal"},
	{"by a register", "jmp *%rdx", "", "leads out of the function"},
	{"by a pointer", "jmp *(%rcx)", "", "leads out of the function"},
	{"out", "jmp outside", "", "leads out of the function"},
	{"into an instruction", "cmp $1, %rdx; je 1b+1; ret", "", "leads out of the function"},
	{"call", "call outside; ret", "", "not in internal"},

	// Wide registers.
	{"no vzeroupper", "vmovdqu (%rax), %ymm0; ret", "", "no vzeroupper"},
	{"no vzeroupper in one case", "vmovdqu (%rax), %ymm0; cmp $1, %rdx; je 3f; vzeroupper; ret; 3: ret", "", "no vzeroupper"},
}

func TestCheck(t *testing.T) {
	needBinutils(t)
	var source strings.Builder
	source.WriteString(".data\nconstants: .skip 16\n.text\noutside: ret\n")
	for n, c := range tried {
		fmt.Fprintf(&source, ".type case%d, @function\ncase%d:\n%s\t%s\n.size case%d, .-case%d\n\tret\n", n, n, good, c.code, n, n)
	}
	object := assemble(t, source.String())
	for n, c := range tried {
		t.Run(c.name, func(t *testing.T) {
			list, err := parseAllowed(known + c.also)
			if err != nil {
				t.Fatal(err)
			}
			f := &function{
				arch:          architectures[0],
				name:          "f",
				argumentBytes: 24,
				instructions:  disassemble(t, object, fmt.Sprintf("case%d", n)),
			}
			got := check(f, list, map[string]bool{})
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("got %q, want nothing", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Errorf("got %q, want one with %q", got, c.want)
			}
		})
	}
}

// assemble returns the name of an ELF file.
func assemble(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "tried.s"), filepath.Join(dir, "tried.o")
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
		{"vector vptest", "flags of vectors"},
		{"vector kortestw", "flags of vectors"},
		{"other comisd", "flags of vectors"},
	} {
		if _, err := parseAllowed(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.text, err, c.want)
		}
	}
}
