package main

// The help of the program and of each command. A command's Description holds
// its examples.
const (
	exitCodes = `0 done; 1 wrong parameters; 2 wrong passphrase or no permission; 3 out of memory;
   4 wrong or damaged device or file; 5 exists or busy; 130 after Ctrl-C`

	appHelp = `{{.Name}} - {{.Usage}}

Usage:
   {{.UsageText}}

Commands:{{range .VisibleCommands}}
   {{join .Names ", "}}{{"\t"}}{{.Usage}}{{end}}

Options of every command:{{range .VisibleFlags}}
   {{.}}{{end}}

Exit codes:
   ` + exitCodes + `

Example:
   {{.Description}}

"serpcrypt help COMMAND" has the options of a command and examples.
`

	commandHelp = `{{.HelpName}} - {{.Usage}}

Usage:
   {{.UsageText}}
{{if .VisibleFlags}}
Options:{{range .VisibleFlags}}
   {{.}}{{end}}
{{end}}{{if .Description}}
Example:
   {{.Description}}
{{end}}
"serpcrypt --help" lists the options of every command. Flags may stand before or after the arguments.
`

	groupHelp = `{{.HelpName}} - {{.Usage}}

Usage:
   {{.UsageText}}

Commands:{{range .VisibleCommands}}
   {{.Name}}{{"\t"}}{{.Usage}}{{end}}

"{{.HelpName}} COMMAND --help" says more.
`
)
