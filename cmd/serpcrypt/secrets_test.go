package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/skip"
)

// secretPatterns is what to look for, by what it is: 16 bytes each, which stand
// nowhere by chance.
type secretPatterns map[[16]byte]string

// add adds each run of 16 bytes that begins at a multiple of step, unless it has
// many zeros or is one word again and again.
func (p secretPatterns) add(what string, secret []byte, step int) {
	for i := 0; i+16 <= len(secret); i += step {
		run := [16]byte(secret[i:])
		if bytes.Count(run[:], []byte{0}) < 4 && !bytes.Equal(run[:12], run[4:]) {
			p[run] = what
		}
	}
}

// addRoundKeys adds what a kernel keeps of a key.
func (p secretPatterns) addRoundKeys(t *testing.T, key []byte, kernel serpent.Kernel) {
	t.Helper()
	var c serpent.Cipher
	if err := c.Init(key, kernel); err != nil {
		t.Fatal(err)
	}
	p.add("round keys", unsafe.Slice((*byte)(unsafe.Pointer(&c)), unsafe.Sizeof(c)), 4)
}

// search is patterns ready to be looked for.
type search struct {
	patterns secretPatterns
	starts   [1 << 16]bool // the first two bytes of each
}

func (p secretPatterns) search() *search {
	s := &search{patterns: p}
	for run := range p {
		s.starts[binary.LittleEndian.Uint16(run[:])] = true
	}
	return s
}

// findIn calls found for each pattern in memory, at whatever byte it begins.
func (s *search) findIn(memory []byte, found func(what string)) {
	const page = 4096
	zeros := make([]byte, page)
	for i := 0; i+16 <= len(memory); i++ {
		if i%page == 0 && i+page <= len(memory) && bytes.Equal(memory[i:i+page], zeros) {
			i += page - 16 // a pattern may begin at its end
			continue
		}
		if s.starts[binary.LittleEndian.Uint16(memory[i:])] {
			if what, ok := s.patterns[[16]byte(memory[i:])]; ok {
				found(what)
			}
		}
	}
}

// mapping is a part of a process's memory.
type mapping struct {
	name     string
	from, to int64
	resident bool
	flags    string // as in /proc/PID/smaps, with a blank at either end
}

func (m mapping) isSecret() bool {
	return strings.Contains(m.flags, " lo ") && strings.Contains(m.flags, " dd ") // locked, not dumped
}

func mappingsOf(t *testing.T, pid int) []mapping {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		t.Fatal(err)
	}
	head := regexp.MustCompile(`^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \S+\s*(.*)$`)
	var all []mapping
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if found := head.FindStringSubmatch(line); found != nil {
			from, _ := strconv.ParseUint(found[1], 16, 64)
			to, _ := strconv.ParseUint(found[2], 16, 64)
			all = append(all, mapping{name: found[3], from: int64(from), to: int64(to)})
		} else if size, ok := strings.CutPrefix(line, "Rss:"); ok {
			all[len(all)-1].resident = strings.TrimSpace(size) != "0 kB"
		} else if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok {
			all[len(all)-1].flags = flags + " "
		}
	}
	return all
}

// searchMemory returns how often each secret is in the process's locked memory,
// and an error for each that is elsewhere.
func (s *search) searchMemory(t *testing.T, pid int) map[string]int {
	t.Helper()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	count, pages := make(map[string]int), make([]byte, 256<<10)
	searched := int64(0)
	for _, m := range mappingsOf(t, pid) {
		if !m.resident || m.name == "[vvar]" || m.name == "[vsyscall]" {
			continue
		}
		const overlap = 15 // a secret may lie across the end of a part
		for at := m.from; at < m.to; at += int64(len(pages)) - overlap {
			part := pages[:min(int64(len(pages)), m.to-at)]
			n, err := memory.ReadAt(part, at)
			if err != nil && !errors.Is(err, io.EOF) && n == 0 {
				continue // a guard page
			}
			searched += int64(n)
			s.findIn(part[:n], func(what string) {
				count[what]++
				if !m.isSecret() {
					t.Errorf("%s in %x-%x %s, which has the flags%s", what, m.from, m.to, m.name, m.flags)
				}
			})
			if int64(len(part)) == m.to-at {
				break
			}
		}
	}
	t.Logf("%d KiB searched: %v", searched>>10, count)
	return count
}

// TestServerMemory looks through the memory of a server that works, and through
// what a debugger takes for a core dump: of the passphrase there is nothing, and
// the volume key and what the cipher makes of it are in locked memory alone.
func TestServerMemory(t *testing.T) {
	if os.Geteuid() != 0 {
		skip.Skip(t, "only root can read the memory of a server")
	}
	kernels := []serpent.Kernel{serpent.Auto.Resolve()}
	if kernels[0] != serpent.Generic {
		kernels = append(kernels, serpent.Generic)
	}
	for _, kernel := range kernels {
		t.Run(kernel.String(), func(t *testing.T) { testServerMemory(t, kernel) })
	}
}

func testServerMemory(t *testing.T, kernel serpent.Kernel) {
	s := newOpenSession(t)
	passphrase, key := []byte(randomFile(t, s.path("key"), 64)), []byte(randomFile(t, s.path("volume-key"), 64))
	s.run("serpcrypt", "create", "--size", "20M", "--pbkdf-force-iterations", "1000", "-d", "key", "--volume-key-file", "volume-key", "box.luks")
	s.run("serpcrypt", "--kernel", kernel.String(), "open", "--raw", "-d", "key", "box.luks", "box")
	defer s.run("serpcrypt", "close", "box")
	for range 2 {
		s.run("dd", "if=/dev/urandom", "of=box/volume", "bs=1M", "count=16", "conv=notrunc,fsync", "status=none")
		s.run("dd", "if=box/volume", "of=/dev/null", "bs=64K", "status=none")
	}
	pid := s.server()
	patterns := make(secretPatterns)
	patterns.add("the passphrase", passphrase, 1)
	patterns.add("the volume key", key, 1)
	patterns.addRoundKeys(t, key[:32], kernel)
	patterns.addRoundKeys(t, key[32:], kernel)

	secrets := patterns.search()
	count := secrets.searchMemory(t, pid)
	if count["the passphrase"] > 0 {
		t.Error("the server knows the passphrase")
	}
	if count["round keys"] < 100 {
		t.Errorf("only %d parts of the round keys were found: is this how to find them?", count["round keys"])
	}

	// A debugger's dump of it has some GB, nearly all zeros.
	if os.Getenv("SERPCRYPT_LONG") != "1" {
		t.Log("SERPCRYPT_LONG=1 searches a dump by gcore as well")
		return
	}
	if _, err := exec.LookPath("gcore"); err != nil {
		skip.Skip(t, "gcore is not installed")
	}
	s.run("gcore", "-o", "core", strconv.Itoa(pid))
	secrets.searchCore(t, s.path("core."+strconv.Itoa(pid)))
}

// searchCore reports each secret in a core dump.
func (s *search) searchCore(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var size uint64 // bytes of memory
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		size += p.Filesz
		part := make([]byte, 256<<10)
		for at := int64(0); at < int64(p.Filesz); at += int64(len(part)) - 15 {
			n, err := p.ReadAt(part, at)
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			s.findIn(part[:n], func(what string) { t.Errorf("%s in a core dump", what) })
		}
	}
	if size < 1<<20 {
		t.Errorf("a core dump of %d bytes is none", size)
	}
}
