package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"serpcrypt/internal/skip"
)

// manual returns the files that the program writes, by path.
func manual(t *testing.T) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	serpcrypt(t, "", "manual", dir).must(t, 0)
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestManualFiles: a page for each command and nothing else, and each of the texts
// beside the code is used.
func TestManualFiles(t *testing.T) {
	want := []string{"man/man1/serpcrypt.1", "man/man5/serpcrypt-format.5", "man/man7/serpcrypt-boot.7", "man/man8/mount.serpcrypt.8"}
	texts := []string{"serpcrypt.md", "mount.serpcrypt.md"}
	for _, c := range visible(newApp().Commands) {
		want = append(want, "man/man1/serpcrypt-"+c.Name+".1")
		texts = append(texts, c.Name+".md")
		for _, s := range c.Subcommands {
			texts = append(texts, c.Name+"-"+s.Name+".md")
		}
	}
	for _, path := range completionPlaces {
		want = append(want, path)
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(manual(t))); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	entries, err := manualTexts.ReadDir("manual")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(texts)
	slices.Sort(got)
	if !slices.Equal(got, texts) {
		t.Errorf("texts: got %q\nwant %q", got, texts)
	}
}

var font = regexp.MustCompile(`\\f[A-Z]`)

// plainRoff returns the lines of a page without fonts and escaped characters.
func plainRoff(page []byte) []string {
	text := font.ReplaceAllString(string(page), "")
	text = strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(ga`, "`", `\(ha`, "^", `\(ti`, "~", `\&`, "", `\\`, `\`).Replace(text)
	return strings.Split(text, "\n")
}

// part returns the lines of a page behind a heading, up to the next one like it or
// above it.
func part(t *testing.T, page []byte, heading string) []string {
	t.Helper()
	lines := plainRoff(page)
	start := slices.Index(lines, heading)
	if start < 0 {
		t.Fatalf("there is no %s", heading)
	}
	lines = lines[start+1:]
	end := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, ".SH ") || strings.HasPrefix(l, ".SS ") && strings.HasPrefix(heading, ".SS ")
	})
	if end < 0 {
		end = len(lines)
	}
	return lines[:end]
}

// listed returns the definitions in lines: of each a term, a tab and what it means.
func listed(lines []string) (found []string) {
	for i, line := range lines {
		if line == ".TP" && i+2 < len(lines) {
			found = append(found, lines[i+1]+"\t"+lines[i+2])
		}
	}
	return found
}

func helpOf(flags []cli.Flag) (lines []string) {
	for _, f := range flags {
		lines = append(lines, f.String())
	}
	return lines
}

// TestManualHasEveryFlag: a page lists the flags that its command has, in the words
// of the help, and no others; that of the program lists the commands.
func TestManualHasEveryFlag(t *testing.T) {
	files := manual(t)
	app := newApp()
	check := func(where string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", where, got, want)
		}
	}
	program := files["man/man1/serpcrypt.1"]
	check("serpcrypt.1", listed(part(t, program, ".SH OPTIONS")), helpOf(append(slices.Clone(app.Flags), cli.HelpFlag, cli.VersionFlag)))
	var commands []string
	flags := 0
	for _, c := range visible(app.Commands) {
		commands = append(commands, "serpcrypt-"+c.Name+"(1)\t"+c.Usage)
		page := files["man/man1/serpcrypt-"+c.Name+".1"]
		check(c.Name, listed(part(t, page, ".SH OPTIONS")), helpOf(c.Flags))
		flags += len(c.Flags)
		for _, s := range c.Subcommands {
			name := c.Name + " " + s.Name
			check(name, listed(part(t, page, ".SS "+name)), helpOf(s.Flags))
			flags += len(s.Flags)
		}
	}
	check("the commands", listed(part(t, program, ".SH COMMANDS")), commands)
	var options []string
	for _, f := range mountFlags() {
		name, usage, _ := strings.Cut(f.String(), "\t")
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "--"), ", ")
		options = append(options, strings.Replace(name, " ", "=", 1)+"\t"+usage)
	}
	check("mount.serpcrypt", listed(part(t, files["man/man8/mount.serpcrypt.8"], ".SH OPTIONS")), append(options, "ro\tallow no changes"))
	if flags < 100 {
		t.Errorf("only %d flags have been looked at", flags)
	}
}

// TestManualHasUsageAndExamples, as the help has them.
func TestManualHasUsageAndExamples(t *testing.T) {
	files := manual(t)
	contains := func(where string, lines []string, text string) {
		t.Helper()
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
				t.Errorf("%s has no line %q:\n%s", where, line, strings.Join(lines, "\n"))
			}
		}
	}
	for _, c := range visible(newApp().Commands) {
		page := files["man/man1/serpcrypt-"+c.Name+".1"]
		if len(c.Subcommands) == 0 {
			contains(c.Name, part(t, page, ".SH SYNOPSIS"), c.UsageText)
			contains(c.Name, part(t, page, ".SH EXAMPLES"), c.Description)
		}
		for _, s := range c.Subcommands {
			name := c.Name + " " + s.Name
			contains(name, part(t, page, ".SH SYNOPSIS"), s.UsageText)
			contains(name, part(t, page, ".SS "+name), s.Description)
		}
	}
}

var pageName = regexp.MustCompile(`((?:mount\.)?serpcrypt[a-z-]*)\((\d)\)`)

// TestManualLeadsToPages: our pages that a page names exist, and all end in the
// same way.
func TestManualLeadsToPages(t *testing.T) {
	files := manual(t)
	named := 0
	for path, text := range files {
		if !strings.HasPrefix(path, "man/") {
			continue
		}
		for _, m := range pageName.FindAllStringSubmatch(strings.Join(plainRoff(text), "\n"), -1) {
			if _, ok := files["man/man"+m[2]+"/"+m[1]+"."+m[2]]; !ok {
				t.Errorf("%s names %s", path, m[0])
			}
			named++
		}
		part(t, text, ".SH SEE ALSO")
		if !strings.HasSuffix(path, ".5") && !strings.HasSuffix(path, ".7") {
			part(t, text, ".SH EXIT STATUS")
		}
	}
	if named < 2*len(files) {
		t.Errorf("only %d pages are named", named)
	}
}

// TestManualRenders: man shows every page, and finds nothing to warn of.
func TestManualRenders(t *testing.T) {
	if _, err := exec.LookPath("man"); err != nil {
		skip.Skip(t, err.Error())
	}
	dir := t.TempDir()
	shown := 0
	for path, text := range manual(t) {
		if !strings.HasPrefix(path, "man/") {
			continue
		}
		file := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("man", "--warnings", "-E", "UTF-8", "-P", "cat", "-l", "-Tutf8", file)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=80", "MAN_KEEP_FORMATTING=", "GROFF_NO_SGR=1")
		o := runCommand(t, cmd)
		if o.code != 0 || o.stderr != "" {
			t.Errorf("%s: exit code %d\n%s", path, o.code, o.stderr)
		}
		plain := overstrike.ReplaceAllString(o.stdout, "")
		for _, want := range []string{"NAME", "SEE ALSO", strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + " - "} {
			if !strings.Contains(plain, want) {
				t.Errorf("%s: nothing is shown of %q", path, want)
			}
		}
		for line := range strings.Lines(plain) {
			if n := len([]rune(line)); n > 95 { // figures have some more than 80
				t.Errorf("%s: a line of %d characters: %s", path, n, line)
			}
		}
		shown++
	}
	if shown < 10 {
		t.Errorf("only %d pages were shown", shown)
	}
}

var overstrike = regexp.MustCompile(`.\x08`)

// TestManualIsReproducible: the same program writes the same bytes, which name no
// day.
func TestManualIsReproducible(t *testing.T) {
	one, two := manual(t), manual(t)
	if !maps.EqualFunc(one, two, bytes.Equal) {
		t.Error("two runs wrote different files")
	}
	title := regexp.MustCompile(`(?m)^\.TH (?:MOUNT\.)?SERPCRYPT\S* \d "" "serpcrypt [^"]+" "User manual"$`)
	for path, text := range one {
		if strings.HasPrefix(path, "man/") && !title.Match(text) {
			t.Errorf("%s has another title", path)
		}
	}
}

// TestRoff: what is typed stays as it is, and what looks like roff is none.
func TestRoff(t *testing.T) {
	p := &manPage{}
	p.WriteString("% X 1 \"\" \"x\" \"y\"\n\n# A\n\n" + escapeMarkdown("a-b 'c' `d` ^~ *e* _f_ [g] <h> \\n &lt;") + "\n.x\n\n    --i 'j'\n    .k \\-\n\n| l | m |\n|---|---|\n| n | o |\n")
	const want = "'\\\" t\n.nr HY 0\n.TH X 1 \"\" \"x\" \"y\"\n.ad l\n.SH A\n" +
		"a\\-b \\(aqc\\(aq \\(gad\\(ga \\(ha\\(ti *e* _f_ [g] <h> \\\\n &lt;\n\\&.x\n" +
		".PP\n.EX\n\\-\\-i \\(aqj\\(aq\n\\&.k \\\\\\&\\-\n.EE\n" +
		".TS\nl lx\nl lx .\n\\fBl\\fP\tT{\n\\fBm\\fP\nT}\nn\tT{\no\nT}\n.TE\n"
	if got := string(p.roff()); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestInstall: make install puts the manual beside the program, into a folder with
// a space, and make uninstall leaves no file.
func TestInstall(t *testing.T) {
	for _, program := range []string{"make", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			skip.Skip(t, err.Error())
		}
	}
	source, root := t.TempDir(), filepath.Join(t.TempDir(), "the root")
	copyRepository(t, source)
	run := func(target string) {
		t.Helper()
		cmd := exec.Command("make", target, "DESTDIR="+root, "PREFIX=/usr")
		cmd.Dir = source
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", target, err, out)
		}
	}
	installed := func() (files []string) {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, strings.TrimPrefix(path, root))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	run("install")
	want := []string{"/usr/bin/serpcrypt", "/usr/sbin/mount.serpcrypt", "/usr/lib/systemd/system/serpcrypt@.service", "/usr/lib/systemd/user/serpcrypt@.service"}
	for path := range manual(t) {
		want = append(want, "/usr/share/"+path)
	}
	slices.Sort(want)
	if got := installed(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(root, "usr/sbin/mount.serpcrypt")); err != nil {
		t.Error(err) // a link to nothing
	}
	run("uninstall")
	if left := installed(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
