// Package asmtest checks the assembly of the module, as the processor gets it:
// no branch and no address depends on a secret.
package asmtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"serpcrypt/internal/skip"
)

const module = "serpcrypt"

// needBinutils skips the test without the assembler and the disassembler of
// GNU for these architectures.
func needBinutils(t *testing.T) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		skip.Skip(t, "the disassembler of this system may not know other processors")
	}
	for _, program := range []string{"as", "objdump"} {
		if _, err := exec.LookPath(program); err != nil {
			skip.Skip(t, program+" is not installed; it is in the package binutils")
		}
	}
}

// assemblyPackage is a package that has assembly for an architecture.
type assemblyPackage struct {
	Dir, ImportPath string
	GoFiles, SFiles []string

	arch *architecture
}

// goCommand is a go command for an architecture.
func goCommand(arch *architecture, arguments ...string) *exec.Cmd {
	cmd := exec.Command("go", arguments...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch.name, "CGO_ENABLED=0")
	return cmd
}

// assemblyPackages returns those of the module.
func assemblyPackages(t *testing.T) (packages []assemblyPackage) {
	t.Helper()
	for _, arch := range architectures {
		cmd := goCommand(arch, "list", "-json=Dir,ImportPath,GoFiles,SFiles", module+"/...")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for d := json.NewDecoder(strings.NewReader(string(out))); ; {
			p := assemblyPackage{arch: arch}
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if len(p.SFiles) > 0 {
				packages = append(packages, p)
			}
		}
	}
	if len(packages) == 0 {
		t.Fatal("there is no assembly")
	}
	return packages
}

// textLine is the start of a function: its name, flags, size of its frame and
// of its arguments.
var textLine = regexp.MustCompile(`^TEXT ·(\w+)\(SB\), (?:[A-Z|]+, )?\$(\d+)-(\d+)$`)

// functions disassembles those of a package in its test program, so that all
// that its tests call is there.
func functions(t *testing.T, p assemblyPackage) (list []*function) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "test")
	build := goCommand(p.arch, "test", "-c", "-o", program, p.ImportPath)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	for _, file := range p.SFiles {
		source, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(source)) {
			line, _, _ = strings.Cut(line, "//")
			if !strings.Contains(line, "TEXT") {
				continue
			}
			m := textLine.FindStringSubmatch(strings.TrimSpace(line))
			if m == nil {
				t.Errorf("%s: cannot read %q", file, line)
				continue
			}
			if m[2] != "0" {
				t.Errorf("%s: %s has a frame on the stack, where copies of secrets could stay", file, m[1])
			}
			arguments, err := strconv.ParseInt(m[3], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, &function{
				arch:          p.arch,
				name:          m[1],
				argumentBytes: arguments,
				instructions:  disassemble(t, program, p.ImportPath+"."+m[1]+p.arch.symbolSuffix),
			})
		}
	}
	return list
}

func TestAssembly(t *testing.T) {
	needBinutils(t)
	list, err := parseAllowed(allowedText)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, p := range assemblyPackages(t) {
		for _, f := range functions(t, p) {
			t.Logf("%s, %s: %s has %d instructions", p.ImportPath, p.arch.name, f.name, len(f.instructions))
			for _, problem := range check(f, list, used) {
				t.Errorf("%s, %s: %s", p.ImportPath, p.arch.name, problem)
			}
		}
	}
	for name, groups := range list {
		for _, group := range groups {
			if !used[group+" "+name] {
				t.Errorf("internal/asmtest/allowed.txt: no function needs %s in group %s", name, group)
			}
		}
	}
}

// TestArguments holds that assembly gets what is secret by pointers only, as
// arguments come into general registers.
func TestArguments(t *testing.T) {
	for _, p := range assemblyPackages(t) {
		for _, file := range p.GoFiles {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range parsed.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Body != nil {
					continue
				}
				for _, argument := range f.Type.Params.List {
					if !mayBeArgument(argument.Type) {
						t.Errorf("%s: %s: argument %v is no pointer, slice or int", file, f.Name, argument.Names)
					}
				}
			}
		}
	}
}

func mayBeArgument(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return true
	case *ast.ArrayType:
		return e.Len == nil
	case *ast.Ident:
		return e.Name == "int"
	}
	return false
}

// TestAllAssemblyIsChecked looks for files that the other tests do not see.
func TestAllAssemblyIsChecked(t *testing.T) {
	var known []string
	for _, p := range assemblyPackages(t) {
		for _, file := range p.SFiles {
			known = append(known, filepath.Join(p.Dir, file))
		}
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.EqualFold(filepath.Ext(path), ".s") && !slices.Contains(known, path) {
			t.Errorf("%s is for no processor that is checked", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
