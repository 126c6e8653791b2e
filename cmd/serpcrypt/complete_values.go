package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"serpcrypt/cipher/serpent"
	"serpcrypt/hash/sha1"
	"serpcrypt/internal/bench"
	"serpcrypt/internal/hashes"
	"serpcrypt/volume"
)

// knownValues has the flags that take one of few values, or something that is
// looked for.
var knownValues = map[string]func(*unfinished) []candidate{
	"kernel": func(*unfinished) []candidate { return oneOf(append([]string{"auto"}, namesOf(serpent.Kernels())...)) },
	"sha1-kernel": func(*unfinished) []candidate {
		return oneOf(append(append([]string{"auto"}, namesOf(sha1.Kernels())...), namesOf(sha1.ChainKernels())...))
	},
	"type":        func(*unfinished) []candidate { return oneOf([]string{"luks1", "luks2"}) },
	"hash":        func(*unfinished) []candidate { return oneOf(hashes.Names()) },
	"pbkdf":       func(*unfinished) []candidate { return oneOf([]string{volume.PBKDF2, volume.Argon2id, volume.Argon2i}) },
	"sector-size": func(*unfinished) []candidate { return oneOf([]string{"512", "1024", "2048", "4096"}) },
	"cipher": func(*unfinished) []candidate {
		return oneOf([]string{volume.DefaultCipher, "serpent-cbc-essiv:sha256"})
	},
	"fs":       func(*unfinished) []candidate { return installedMakers() },
	"key-slot": (*unfinished).keySlots,
}

// oneOf makes candidates of words, each of them once.
func oneOf(list []string) (found []candidate) {
	for i, word := range list {
		if !slices.Contains(list[:i], word) {
			found = append(found, candidate{word: word})
		}
	}
	return found
}

// The names that the usage has for what is a path. Others are for the person to
// know.
var placeholders = map[string]func(*unfinished) []candidate{
	"CONTAINER":            anyFile,
	"FILE":                 anyFile,
	"SOURCE":               anyFile,
	"DEST":                 anyFile,
	"MOUNTPOINT":           func(*unfinished) []candidate { return []candidate{{word: completeFolders}} },
	"MOUNTPOINT|CONTAINER": (*unfinished).openPlaces,
}

func anyFile(*unfinished) []candidate { return []candidate{{word: completeFiles}} }

var quotedPlaceholder = regexp.MustCompile("`([^`]+)`")

func (u *unfinished) flagValues() []candidate {
	if find := knownValues[u.flag.Names()[0]]; find != nil {
		return find(u)
	}
	if f, ok := u.flag.(cli.DocGenerationFlag); ok {
		if name := quotedPlaceholder.FindStringSubmatch(f.GetUsage()); name != nil && placeholders[name[1]] != nil {
			return placeholders[name[1]](u)
		}
	}
	return nil
}

var usageOptions = regexp.MustCompile(`\[(?:-[^\]]*|options)\]`)

// argumentNames returns what the usage of the command calls its arguments, and
// whether the last one may be there many times.
func argumentNames(usage string) (names []string, many bool) {
	for _, word := range strings.Fields(usageOptions.ReplaceAllString(usage, "")) {
		many = many || strings.HasPrefix(word, "...")
		word = strings.TrimSuffix(strings.Trim(word, "[]"), "|-")
		if word == strings.ToUpper(word) && strings.Trim(word, ".|-") != "" {
			names = append(names, word)
		}
	}
	return names, many
}

func (u *unfinished) argumentValues() []candidate {
	if u.command.Name == "bench" {
		return oneOf(bench.Suites())
	}
	names, many := argumentNames(u.command.UsageText)
	i := len(u.arguments)
	if many {
		i = min(i, len(names)-1)
	}
	if i < 0 || i >= len(names) || placeholders[names[i]] == nil {
		return nil
	}
	return placeholders[names[i]](u)
}

// openPlaces returns mount points and containers of what is open: with the whole
// path, or as seen from here where the person does not begin with the root.
func (u *unfinished) openPlaces() (found []candidate) {
	open, err := findOpen()
	if err != nil {
		return nil
	}
	here, err := os.Getwd()
	if err != nil || strings.HasPrefix(u.word, "/") {
		here = ""
	}
	for _, f := range open {
		for _, c := range []candidate{
			{f.state.MountPoint, f.state.Container + " is " + f.health()},
			{f.state.Container, "at " + f.state.MountPoint},
		} {
			if inside, ok := strings.CutPrefix(c.word, here+"/"); ok && here != "" {
				c.word = inside
			}
			found = append(found, c)
		}
	}
	return found
}

// keySlots returns the key slots in use of the container that is named already; or
// those that are free, where a new key goes.
func (u *unfinished) keySlots() (found []candidate) {
	path := u.values["header"]
	if path == "" && len(u.arguments) > 0 {
		path = u.arguments[0]
	}
	file, err := volume.PeekFile(expandHome(path))
	if err != nil {
		return nil
	}
	defer file.Close()
	header, err := volume.ReadHeader(volume.Stores{Header: file})
	if header == nil || err != nil {
		return nil
	}
	wantFree := slices.Equal(u.path, []string{"key", "add"})
	for i, s := range header.Slots {
		switch {
		case wantFree && s.State == volume.SlotDisabled:
			found = append(found, candidate{strconv.Itoa(i), "free"})
		case !wantFree && s.State == volume.SlotEnabled:
			found = append(found, candidate{strconv.Itoa(i), describeSlot(s)})
		}
	}
	return found
}

// expandHome does what the shell has not done yet to a word that is not run.
func expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(os.Getenv("HOME"), rest)
	}
	return path
}

// installedMakers returns the file systems that create --fs can make here.
func installedMakers() (found []candidate) {
	for name := range makers {
		if path, err := findProgram("mkfs." + name); err == nil {
			found = append(found, candidate{name, fmt.Sprintf("by %s", path)})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return strings.Compare(a.word, b.word) })
	return found
}
