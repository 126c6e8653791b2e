package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"serpcrypt/internal/skip"
)

// testShell is how a shell is started so that it says it is ready, completes as
// what is installed in SHARE makes it, and by a key writes its command line, and a
// dot, to the file OUT.
type testShell struct {
	name    string
	args    []string
	rcFile  string
	rc      string
	pressed string // the key
}

const shellReady = "ready> "

var testShells = []testShell{
	{
		name:   "bash",
		args:   []string{"--noprofile", "--rcfile", "rc", "-i"},
		rcFile: "rc",
		rc: "PS1='" + shellReady + "'\nbind 'set enable-bracketed-paste off'\n. SHARE/bash-completion/completions/serpcrypt\n" +
			`bind -x '"\C-xd": printf "%s." "$READLINE_LINE" >OUT'` + "\n",
		pressed: "\x18d",
	},
	{
		name:   "zsh",
		args:   []string{"-d", "-i"},
		rcFile: ".zshrc",
		rc: "PS1='" + shellReady + "'\nunsetopt prompt_cr prompt_sp\nunset zle_bracketed_paste\nfpath=(SHARE/zsh/site-functions $fpath)\nautoload -U compinit && compinit -u -D\n" +
			"written() { print -rn -- \"$BUFFER.\" >OUT }\nzle -N written\nbindkey -e\nbindkey '^Xd' written\n",
		pressed: "\x18d",
	},
	{
		name:   "fish",
		args:   []string{"-i"},
		rcFile: "fish/config.fish",
		rc: "function fish_prompt; printf '" + shellReady + "'; end\nfunction fish_greeting; end\n" +
			`bind \cxd 'printf %s. (commandline | string collect) >OUT'` + "\n",
		pressed: "\x18d",
	},
}

// shell is one that runs on a terminal.
type shell struct {
	testShell
	person *os.File
	out    string
}

// startShell starts a shell in a folder; the test is skipped if there is none.
func startShell(t *testing.T, s testShell, folder string, env ...string) *shell {
	t.Helper()
	path, err := exec.LookPath(s.name)
	if err != nil {
		skip.Skip(t, err.Error())
	}
	home := t.TempDir()
	share, out := filepath.Join(home, "share"), filepath.Join(home, "out")
	serpcrypt(t, "", "manual", share).must(t, exitOK)
	rc := filepath.Join(home, s.rcFile)
	if err := os.MkdirAll(filepath.Dir(rc), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rc, []byte(strings.NewReplacer("SHARE", share, "OUT", out).Replace(s.rc)), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, s.args...)
	for i, arg := range cmd.Args {
		if arg == s.rcFile {
			cmd.Args[i] = rc
		}
	}
	cmd.Dir = folder
	cmd.Env = append(append(os.Environ(), "HOME="+home, "TMPDIR="+home, "ZDOTDIR="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home,
		"XDG_DATA_DIRS="+share+":/usr/local/share:/usr/share", "TERM=xterm", "LC_ALL=C.UTF-8"), env...)
	person, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		person.Close()
	})
	ready := make(chan string, 1)
	go func() {
		shown, told := "", false
		for buf := make([]byte, 4096); ; {
			n, err := person.Read(buf)
			shown += string(buf[:n])
			if !told && (err != nil || strings.Contains(shown, shellReady)) {
				ready <- shown
				told = true
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case shown := <-ready:
		if !strings.Contains(shown, shellReady) {
			t.Fatalf("%s ended: %s", s.name, shown)
		}
	case <-time.After(time.Minute):
		t.Fatalf("%s says nothing", s.name)
	}
	return &shell{s, person, out}
}

// complete types a line and a tab, and returns what the line is then, without a
// space at its end.
func (s *shell) complete(t *testing.T, line string) string {
	t.Helper()
	const clear = "\x05\x15"
	if _, err := s.person.WriteString(clear + line + "\t" + s.pressed); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(s.out)
		if completed, whole := strings.CutSuffix(string(text), "."); err == nil && whole {
			if err := os.Remove(s.out); err != nil {
				t.Fatal(err)
			}
			return strings.TrimRight(completed, " ")
		}
	}
	t.Fatalf("%s does not answer after %q", s.name, line)
	return ""
}

// words lets the shell divide a command line.
func (s *shell) words(t *testing.T, line string) []string {
	t.Helper()
	cmd := exec.Command(s.name, "-c", "printf '%s\\n' "+line)
	text, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// completion is what a person types, and the words that the command line has after
// a tab: that the shell has quoted them is not seen here.
type completion struct {
	typed string
	want  []string
}

// inShells completes in each shell. A slash behind a folder does not count.
func inShells(t *testing.T, folder string, env []string, lines []completion) {
	for _, s := range testShells {
		t.Run(s.name, func(t *testing.T) {
			sh := startShell(t, s, folder, env...)
			for _, line := range lines {
				completed := sh.complete(t, "serpcrypt "+line.typed)
				got := sh.words(t, completed)[1:]
				got[len(got)-1] = strings.TrimSuffix(got[len(got)-1], "/")
				if !slices.Equal(got, line.want) {
					t.Errorf("%s<Tab>: got %s: %q, want %q", line.typed, completed, got, line.want)
				}
			}
		})
	}
}

// TestCompletionInShells types command lines in real shells, in a folder of names
// with spaces and other things that shells take for something else.
func TestCompletionInShells(t *testing.T) {
	folder := t.TempDir()
	box := newBox(t, "--key-slot", "3")
	for _, name := range []string{"my box.luks", "$odd; name.luks", "a:b.luks", "mount.txt"} {
		if err := os.Link(box, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"mount here", "mything"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	inShells(t, folder, nil, []completion{
		{"cre", []string{"create"}},
		{"key rem", []string{"key", "remove"}},
		{"help verif", []string{"help", "verify"}},
		{"--batch", []string{"--batch-mode"}},
		{"create --spa", []string{"create", "--sparse"}},
		{"create --hash whirl", []string{"create", "--hash", "whirlpool"}},
		{"create --hash=whirl", []string{"create", "--hash=whirlpool"}},
		{"serve", []string{"serve"}},
		{"dump my\\ b", []string{"dump", "my box.luks"}},
		{"dump \"my b", []string{"dump", "my box.luks"}},
		{"dump 'my b", []string{"dump", "my box.luks"}},
		{"dump \\$od", []string{"dump", "$odd; name.luks"}},
		{"dump a", []string{"dump", "a:b.luks"}},
		{"dump --header my\\ b", []string{"dump", "--header", "my box.luks"}},
		{"dump --header=my\\ b", []string{"dump", "--header=my box.luks"}},
		{"open my\\ box.luks mou", []string{"open", "my box.luks", "mount here"}},
		{"open x mount\\ h", []string{"open", "x", "mount here"}},
		{"key remove my\\ box.luks --key-slot ", []string{"key", "remove", "my box.luks", "--key-slot", "3"}},
		{"key remove 'my box.luks' --key-slot=", []string{"key", "remove", "my box.luks", "--key-slot=3"}},
		{"key remove a:b.luks -S ", []string{"key", "remove", "a:b.luks", "-S", "3"}},
		{"key remove ./\\$odd\\;\\ name.luks -S ", []string{"key", "remove", "./$odd; name.luks", "-S", "3"}},
	})
}

// TestCompletionOfWhatIsOpen: by the mount point, also from within its folder.
func TestCompletionOfWhatIsOpen(t *testing.T) {
	needMounts(t)
	folder := openFolder(t)
	env := runtimeDirEnv + "=" + filepath.Join(folder, "run")
	t.Setenv(runtimeDirEnv, filepath.Join(folder, "run"))
	box := newBox(t)
	mount := filepath.Join(folder, "open here: $HOME")
	for _, dir := range []string{mount, filepath.Join(folder, "other")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	serpcrypt(t, testPassphrase, "open", "--raw", box, mount).must(t, exitOK)
	inShells(t, folder, []string{env}, []completion{
		{"close o", []string{"close", "open here: $HOME"}},
		{"status o", []string{"status", "open here: $HOME"}},
		{"close x o", []string{"close", "x", "open here: $HOME"}},
		{"close open\\ here", []string{"close", "open here: $HOME"}},
		{"close " + folder + "/o", []string{"close", mount}},
		{"close " + filepath.Dir(box) + "/", []string{"close", box}},
		{"close nothing", []string{"close", "nothing"}},
	})
	serpcrypt(t, "", "close", mount).must(t, exitOK)
}
