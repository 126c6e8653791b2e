package main

import (
	"embed"
	"errors"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"
)

const manualName = "manual"

// manualCommand is what "make man" runs. It is not for people.
func manualCommand() *cli.Command {
	return &cli.Command{
		Name:      manualName,
		Hidden:    true,
		Usage:     "write man pages and the shells' completions below DIR, as they lie below /usr/share",
		UsageText: "serpcrypt manual DIR",
		Action:    runManual,
	}
}

func runManual(c *cli.Context) error {
	args, err := exactArgs(c, "DIR")
	if err != nil {
		return err
	}
	files, err := sharedFiles(newApp())
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(args[0], name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// completionScripts ask the program what may come next: see completeCommand.
//
//go:embed completion
var completionScripts embed.FS

// completionPlaces says where shells look for a script.
var completionPlaces = map[string]string{
	"serpcrypt.bash": "bash-completion/completions/serpcrypt",
	"serpcrypt.zsh":  "zsh/site-functions/_serpcrypt",
	"serpcrypt.fish": "fish/vendor_completions.d/serpcrypt.fish",
}

// sharedFiles returns the files that belong below /usr/share, by their paths
// there. They depend on nothing but the program.
func sharedFiles(app *cli.App) (map[string][]byte, error) {
	files := map[string][]byte{}
	pages, err := manPages(app)
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		files[page.path()] = page.roff()
	}
	for script, path := range completionPlaces {
		text, err := completionScripts.ReadFile("completion/" + script)
		if err != nil {
			return nil, err
		}
		files[path] = text
	}
	return files, nil
}
