package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// markdown is what the tests look at of a document.
type markdown struct {
	commands []docCommand
	spans    []docCommand // code in the text
}

// docCommand is one command of a document, as a shell takes it.
type docCommand struct {
	doc  string
	line int
	text string
}

func (c docCommand) String() string { return fmt.Sprintf("%s:%d: %s", c.doc, c.line, c.text) }

// words is the command without the comment behind it, and what makes it root's.
func (c docCommand) words() string {
	text, _, _ := strings.Cut(c.text, " #")
	return strings.TrimPrefix(strings.TrimSpace(text), "sudo ")
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	// Columns, and what begins where a command would not.
	figureLine = regexp.MustCompile(`^\s|^[-+|{]|\S  +[^\s#]`)
)

// parseMarkdown finds the code of a document. A block, fenced or indented, holds
// commands, one a line; or, if lines begin with "$ ", these are commands and the
// others what they print. A block whose first line looks like a table or a
// drawing, or whose fence names another language, holds none.
func parseMarkdown(doc, text string) markdown {
	var m markdown
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		begin, end, next := blockAt(lines, i)
		if next > i {
			m.commands = append(m.commands, commandsOf(doc, begin+1, lines[begin:end])...)
			i = next
			continue
		}
		for _, found := range codeSpan.FindAllStringSubmatch(lines[i], -1) {
			m.spans = append(m.spans, docCommand{doc, i + 1, strings.ReplaceAll(found[1], `\|`, "|")})
		}
		i++
	}
	return m
}

const blockIndent = "    "

// blockAt returns the lines of the code block that begins at line i, and the line
// behind it, which is i if none begins there.
func blockAt(lines []string, i int) (begin, end, next int) {
	if language, isFence := strings.CutPrefix(lines[i], "```"); isFence {
		end = i + 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "```") {
			end++
		}
		begin, next = i+1, min(end+1, len(lines))
		if language != "" && language != "sh" && language != "console" {
			begin = end
		}
		return begin, end, next
	}
	if !strings.HasPrefix(lines[i], blockIndent) || i > 0 && strings.TrimSpace(lines[i-1]) != "" {
		return i, i, i
	}
	for next = i; next < len(lines) && (strings.HasPrefix(lines[next], blockIndent) || strings.TrimSpace(lines[next]) == ""); next++ {
	}
	return i, next, next
}

// commandsOf returns the commands of a block that begins at a line of a document.
func commandsOf(doc string, line int, block []string) (commands []docCommand) {
	var text []string
	session := false
	for _, l := range block {
		l = strings.TrimPrefix(l, blockIndent)
		text = append(text, l)
		session = session || strings.HasPrefix(l, "$ ")
	}
	if len(text) == 0 || !session && figureLine.MatchString(text[0]) {
		return nil
	}
	for i := 0; i < len(text); i++ {
		command, typed := strings.CutPrefix(text[i], "$ ")
		if session && !typed || strings.TrimSpace(command) == "" || strings.HasPrefix(command, "#") {
			continue
		}
		c := docCommand{doc, line + i, command}
		for strings.HasSuffix(c.text, `\`) && i+1 < len(text) {
			i++
			c.text = strings.TrimSpace(strings.TrimSuffix(c.text, `\`)) + " " + strings.TrimSpace(text[i])
		}
		commands = append(commands, c)
	}
	return commands
}

func TestParseMarkdown(t *testing.T) {
	const text = "A `span one`, `span\\|two`.\n" +
		"\n" +
		"    make it    # as root\n" +
		"    # a comment\n" +
		"\n" +
		"    long \\\n" +
		"        command\n" +
		"\n" +
		"    $ typed one\n" + // the same block: now a session
		"Text with\n" +
		"    a line that goes on\n" +
		"\n" +
		"    $ typed two\n" +
		"    printed\n" +
		"    $ typed \\\n" +
		"      three\n" +
		"\n" +
		"```\n" +
		"fenced $HOME | cat\n" +
		"```\n" +
		"```sh\n" +
		"fenced sh\n" +
		"```\n" +
		"```go\n" +
		"func f()\n" +
		"```\n" +
		"\n" +
		"    size  a table\n" +
		"    1     2\n" +
		"\n" +
		"    +----+\n" +
		"    drawing\n" +
		"\n" +
		"- item\n" +
		"\n" +
		"    sudo in an item"
	m := parseMarkdown("D", text)
	got := fmt.Sprintf("%v %v %s", m.spans, m.commands, m.commands[len(m.commands)-1].words())
	const want = "[D:1: span one D:1: span|two] " +
		"[D:9: typed one D:13: typed two D:15: typed three D:19: fenced $HOME | cat D:22: fenced sh D:36: sudo in an item] in an item"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	m = parseMarkdown("D", "\n    make it    # as root\n    # a comment\n\n    long \\\n        command\n")
	got = fmt.Sprintf("%v %s", m.commands, m.commands[0].words())
	if want := "[D:2: make it    # as root D:5: long command] make it"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
