package bench

import (
	"runtime"

	"github.com/klauspost/cpuid/v2"
	"golang.org/x/sys/unix"
)

// Machine is where the figures come from.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`  // that the program may use
	Kernel string `json:"kernel"` // of the operating system, with its release
}

// ThisMachine tells where the program runs.
func ThisMachine() Machine {
	m := Machine{CPU: cpuid.CPU.BrandName, Cores: runtime.NumCPU(), Kernel: runtime.GOOS}
	if m.CPU == "" {
		m.CPU = runtime.GOARCH
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	return m
}
