package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/urfave/cli/v2"
)

// lineBreak ends a line within a paragraph.
const lineBreak = "  \n"

var (
	markdownSpecial = regexp.MustCompile("[\\\\`*_<>&\\[\\]]")
	// documentLink is a link from a document to another beside it.
	documentLink = regexp.MustCompile(`\[[^\]]*\]\(([\w-]+\.md)\)`)
)

// escapeMarkdown makes text stand for itself.
func escapeMarkdown(text string) string { return markdownSpecial.ReplaceAllString(text, `\$0`) }

// synopsis is how a command is called, its name in bold.
func synopsis(name, usage string) string {
	return "**" + name + "**" + escapeMarkdown(strings.TrimPrefix(usage, name))
}

func reference(page string, section int) string { return fmt.Sprintf("**%s**(%d)", page, section) }

func pageReference(app *cli.App, command *cli.Command) string {
	return reference(app.Name+"-"+command.Name, 1)
}

// manTerm is an item of a list of definitions. The term is Markdown.
type manTerm struct{ term, text string }

func definitions(terms []manTerm) string {
	var b strings.Builder
	for _, t := range terms {
		fmt.Fprintf(&b, "%s\n: %s\n\n", t.term, escapeMarkdown(t.text))
	}
	return b.String()
}

// options lists flags in the words of the help.
func options(flags []cli.Flag) string {
	var terms []manTerm
	for _, flag := range flags {
		if isHidden(flag) {
			continue
		}
		names, usage, _ := strings.Cut(flag.String(), "\t")
		var bold []string
		for _, name := range strings.Split(names, ", ") {
			name, value, _ := strings.Cut(name, " ")
			if value != "" {
				value = " *" + value + "*"
			}
			bold = append(bold, "**"+name+"**"+value)
		}
		terms = append(terms, manTerm{strings.Join(bold, ", "), usage})
	}
	return definitions(terms)
}

// codeBlock shows the examples of a command.
func codeBlock(lines []string) (block string) {
	for _, line := range lines {
		block += "    " + line + "\n"
	}
	return block
}

// examples returns the lines of a Description.
func examples(description string) (lines []string) {
	for line := range strings.Lines(description) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// roff is what man reads.
func (p *manPage) roff() []byte {
	var page bytes.Buffer
	var code, table bool
	before := ""
	for line := range strings.Lines(string(md2man.Render([]byte(p.String())))) {
		line = strings.TrimSuffix(line, "\n")
		isRequest := strings.HasPrefix(line, ".")
		switch {
		case line == ".nh": // what follows undoes it
			line = ".nr HY 0"
		case strings.HasPrefix(line, ".TH "):
			line += "\n.ad l"
		case line == ".EE":
			code = false
		case line == ".EX":
			code = true
			if !strings.HasPrefix(before, ".S") {
				line = ".PP\n" + line
			}
		case line == ".TS", line == ".TE":
			table = line == ".TS"
		case line == "" && !code, table && line == "allbox;": // requests make the space that is needed
			continue
		case table:
			line = flexibleTable(line)
		}
		if !isRequest && !strings.HasPrefix(line, `'\"`) {
			line = asTyped(line)
		}
		page.WriteString(line + "\n")
		before = line
	}
	return page.Bytes()
}

var unescapedHyphen = regexp.MustCompile(`(\\?)-`)

// asTyped keeps what a person may copy from turning into typographic characters.
func asTyped(line string) string {
	line = unescapedHyphen.ReplaceAllString(line, `\-`)
	return strings.NewReplacer("'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(line)
}

// flexibleTable mends a line of a table, so that its last column is broken into
// lines where the terminal is narrow.
func flexibleTable(line string) string {
	if columns := strings.TrimRight(line, " ."); columns != "" && strings.Trim(columns, "l ") == "" {
		return columns + "x" + strings.TrimPrefix(strings.TrimRight(line, " "), columns)
	}
	cells := strings.Split(line, "\t")
	last := len(cells) - 1
	if last > 0 && cells[last] != "T{" {
		cells[last] = "T{\n" + cells[last] + "\nT}"
	}
	return strings.Join(cells, "\t")
}
