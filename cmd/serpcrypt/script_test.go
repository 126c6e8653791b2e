package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"serpcrypt/internal/faultfs"
)

// coverageDir is set by the linker where coverage is measured: the folder for
// what each process has run. Servers inherit no environment that could name it.
var coverageDir string

// TestMain makes the test binary stand in for the program: while tests run,
// "serpcrypt" is found on the PATH, as is a disk that fails.
func TestMain(m *testing.M) {
	if coverageDir != "" {
		os.Setenv("GOCOVERDIR", coverageDir)
	}
	stopIgnoringSignals()
	testscript.Main(m, map[string]func(){
		"serpcrypt":     func() { os.Exit(start(os.Args)) },
		mountHelperName: func() { os.Exit(start(os.Args)) },
		faultfs.Program: func() { os.Exit(faultfs.Main()) },
	})
}

// stopIgnoringSignals: the tests send signals to the program, which leaves
// alone those that nohup, or a shell in the background, made it ignore.
func stopIgnoringSignals() {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// TestScripts runs testdata/*.txtar, each in an empty folder.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		RequireUniqueNames: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   exits,
			"jsondoc": jsondoc,
			"poke":    pokeHex,
		},
	})
}

// exits CODE COMMAND [ARGUMENTS ...] runs a command that is to end with CODE.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGUMENTS ...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code is %d, want %d", got, want)
	}
}

// jsondoc FILE checks that the file, which may be stdout, is exactly one JSON
// document.
func jsondoc(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: jsondoc FILE")
	}
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	var first, more any
	if err := d.Decode(&first); err != nil {
		ts.Fatalf("%s is no JSON document: %v", args[0], err)
	}
	if err := d.Decode(&more); err != io.EOF {
		ts.Fatalf("%s goes on after its JSON document (%v)", args[0], err)
	}
}

// poke FILE OFFSET HEX changes bytes of a file.
func pokeHex(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: poke FILE OFFSET HEX")
	}
	offset, err := strconv.ParseInt(args[1], 0, 64)
	ts.Check(err)
	b, err := hex.DecodeString(args[2])
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_RDWR, 0)
	ts.Check(err)
	defer f.Close()
	_, err = f.WriteAt(b, offset)
	ts.Check(err)
}
