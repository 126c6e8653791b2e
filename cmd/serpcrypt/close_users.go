package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// user is a process that uses files.
type user struct {
	pid  int
	name string
}

// findUsers returns the other processes that use the file at path, or files
// below it, as far as this user can see. It only reads what /proc says and
// does not look at path itself.
func findUsers(path string) []user {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var users []user
	for _, dir := range processes {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || !uses(dir, path) {
			continue
		}
		name, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil {
			continue // ended in between
		}
		users = append(users, user{pid, strings.TrimSpace(string(name))})
	}
	return users
}

func uses(process, path string) bool {
	within := func(file string) bool { return file == path || strings.HasPrefix(file, path+"/") }
	links := []string{"cwd", "root", "exe"}
	if files, err := os.ReadDir(filepath.Join(process, "fd")); err == nil {
		for _, f := range files {
			links = append(links, filepath.Join("fd", f.Name()))
		}
	}
	for _, link := range links {
		if target, err := os.Readlink(filepath.Join(process, link)); err == nil && within(target) {
			return true
		}
	}
	maps, err := os.ReadFile(filepath.Join(process, "maps"))
	if err != nil {
		return false
	}
	for line := range bytes.Lines(maps) {
		if i := bytes.IndexByte(line, '/'); i >= 0 && within(strings.TrimSuffix(string(line[i:]), "\n")) {
			return true
		}
	}
	return false
}
