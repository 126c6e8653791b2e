package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"serpcrypt/docs"
)

// manualTexts has what a page tells beside the usage, the flags and the examples
// that the code has: key-add.md for "serpcrypt key add". What stands before the
// first heading is the description; other sections follow the options.
//
//go:embed manual/*.md
var manualTexts embed.FS

// manPage is a page of the manual in the Markdown that go-md2man takes.
type manPage struct {
	name    string
	section int
	strings.Builder
}

func (p *manPage) path() string { return fmt.Sprintf("man/man%d/%s.%d", p.section, p.name, p.section) }

// manPages returns the pages of the program, of its commands, of the mount helper,
// and of what they have to do with.
func manPages(app *cli.App) ([]*manPage, error) {
	page, err := programPage(app)
	pages := []*manPage{page}
	for _, command := range app.Commands {
		if err == nil && !command.Hidden {
			page, err = commandPage(app, command)
			pages = append(pages, page)
		}
	}
	if err != nil {
		return nil, err
	}
	page, err = mountPage(app)
	return append(pages, page,
		documentPage(app, "format", 5, "the format of a container on disk", docs.Format, "**cryptsetup**(8)"),
		documentPage(app, "boot", 7, "containers opened at boot and at login", docs.Boot, "**mount.serpcrypt**(8), **systemd.exec**(5), **systemd-creds**(1)"),
	), err
}

func newManPage(app *cli.App, name string, section int, about string) *manPage {
	p := &manPage{name: name, section: section}
	fmt.Fprintf(p, "%% %s %d \"\" \"%s %s\" \"User manual\"\n", strings.ToUpper(name), section, app.Name, app.Version)
	p.add("NAME", name+" - "+escapeMarkdown(about))
	return p
}

// add adds a section, unless it is empty.
func (p *manPage) add(title, text string) {
	if text = strings.Trim(text, "\n"); text != "" {
		fmt.Fprintf(p, "\n# %s\n\n%s\n", title, text)
	}
}

func programPage(app *cli.App) (*manPage, error) {
	text, err := readManualText("serpcrypt")
	if err != nil {
		return nil, err
	}
	p := newManPage(app, app.Name, 1, app.Usage)
	p.add("SYNOPSIS", synopsis(app.Name, app.UsageText))
	p.add("DESCRIPTION", text.description)
	var commands []manTerm
	for _, c := range app.Commands {
		if !c.Hidden {
			commands = append(commands, manTerm{pageReference(app, c), c.Usage})
		}
	}
	p.add("COMMANDS", definitions(commands))
	flags := append(append([]cli.Flag{}, app.Flags...), cli.HelpFlag, cli.VersionFlag)
	p.add("OPTIONS", "They are those of every command.\n\n"+options(flags))
	p.addEnd(text, "", app.Description)
	return p, nil
}

func commandPage(app *cli.App, command *cli.Command) (*manPage, error) {
	text, err := readManualText(command.Name)
	if err != nil {
		return nil, err
	}
	p := newManPage(app, app.Name+"-"+command.Name, 1, command.Usage)
	name := app.Name + " " + command.Name
	if len(command.Subcommands) == 0 {
		p.add("SYNOPSIS", synopsis(name, command.UsageText))
	} else {
		var lines []string
		for _, c := range command.Subcommands {
			lines = append(lines, synopsis(name+" "+c.Name, c.UsageText))
		}
		p.add("SYNOPSIS", strings.Join(lines, lineBreak))
	}
	p.add("DESCRIPTION", text.description)
	if err := p.addSubcommands(command); err != nil {
		return nil, err
	}
	p.add("OPTIONS", options(command.Flags)+"\nThe options of every command, such as **--json**, are in "+reference(app.Name, 1)+".")
	p.addEnd(text, reference(app.Name, 1), command.Description)
	return p, nil
}

// addSubcommands tells of each all that a page would.
func (p *manPage) addSubcommands(command *cli.Command) error {
	var all strings.Builder
	for _, c := range command.Subcommands {
		text, err := readManualText(command.Name + "-" + c.Name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "### %s %s\n\n%s\n\n%s\nFor example:\n\n%s\n", command.Name, c.Name, text.description, options(c.Flags), codeBlock(examples(c.Description)))
	}
	p.add("COMMANDS", all.String())
	return nil
}

// addEnd adds what stands behind the options.
func (p *manPage) addEnd(text *manualText, seeAlso, description string) {
	p.add("EXIT STATUS", strings.Join(strings.Fields(exitCodes), " ")+".\n\n"+text.sections["EXIT STATUS"])
	for _, title := range text.titles {
		if title != "EXIT STATUS" && title != "SEE ALSO" {
			p.add(title, text.sections[title])
		}
	}
	p.add("EXAMPLES", codeBlock(examples(description)))
	if more := text.sections["SEE ALSO"]; more != "" && seeAlso != "" {
		seeAlso += ", "
	}
	p.add("SEE ALSO", seeAlso+text.sections["SEE ALSO"])
}

// mountPage is about the program as a mount helper.
func mountPage(app *cli.App) (*manPage, error) {
	text, err := readManualText(mountHelperName)
	if err != nil {
		return nil, err
	}
	p := newManPage(app, mountHelperName, 8, "mount a container, started by mount")
	p.add("SYNOPSIS", "**mount** -t serpcrypt [-o *OPTIONS*] *CONTAINER* *MOUNTPOINT*"+lineBreak+synopsis(mountHelperName, mountHelperUsage))
	p.add("DESCRIPTION", text.description)
	var terms []manTerm
	for _, flag := range mountFlags() {
		names, usage, _ := strings.Cut(flag.String(), "\t")
		name, _, _ := strings.Cut(strings.TrimPrefix(names, "--"), ", ")
		name, value, hasValue := strings.Cut(name, " ")
		term := "**" + name + "**"
		if hasValue {
			term += "=*" + value + "*"
		}
		terms = append(terms, manTerm{term, usage})
	}
	terms = append(terms, manTerm{"**ro**", "allow no changes"})
	p.add("OPTIONS", definitions(terms)+"\nThese are the flags of "+reference("serpcrypt-open", 1)+
		". **keyfile** is another name for **key-file**, and **allow_other** for **allow-other**. Other options are for the file system inside.")
	p.add("EXIT STATUS", text.sections["EXIT STATUS"])
	p.add("SEE ALSO", text.sections["SEE ALSO"])
	return p, nil
}

// documentPage is a document as a page, named after the program.
func documentPage(app *cli.App, name string, section int, about, text, seeAlso string) *manPage {
	p := newManPage(app, app.Name+"-"+name, section, about)
	_, text, _ = strings.Cut(text, "\n")
	p.add("DESCRIPTION", documentLink.ReplaceAllString(text, "docs/$1"))
	p.add("SEE ALSO", reference(app.Name, 1)+", "+seeAlso)
	return p
}

// manualText is a file of manualTexts.
type manualText struct {
	description string
	titles      []string // of the other sections, in their order
	sections    map[string]string
}

func readManualText(name string) (*manualText, error) {
	file, err := manualTexts.ReadFile("manual/" + name + ".md")
	if err != nil {
		return nil, err
	}
	parts := strings.Split("\n"+string(file), "\n# ")
	t := &manualText{description: parts[0], sections: map[string]string{}}
	for _, part := range parts[1:] {
		title, text, _ := strings.Cut(part, "\n")
		t.titles = append(t.titles, title)
		t.sections[title] = strings.TrimSpace(text)
	}
	return t, nil
}
