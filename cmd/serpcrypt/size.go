package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units of a size, as cryptsetup reads them: K, M, G, T and KiB ... are powers of
// 1024, KB ... powers of 1000.
var units = map[string]int64{
	"": 1, "B": 1,
	"K": 1 << 10, "KIB": 1 << 10, "KB": 1e3,
	"M": 1 << 20, "MIB": 1 << 20, "MB": 1e6,
	"G": 1 << 30, "GIB": 1 << 30, "GB": 1e9,
	"T": 1 << 40, "TIB": 1 << 40, "TB": 1e12,
}

// sectorSize is the unit of places in a header and of sector numbers, and what all
// programs take for granted.
const sectorSize = 512 // bytes

// parseSize reads "64M", "1G", "1GiB", "1GB" or a number of bytes.
func parseSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "BKMGTibkmgt")
	unit, known := units[strings.ToUpper(s[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case !isDigits(digits) || !known:
		return 0, fmt.Errorf("%q is not a size: write it like 64M, 1G, 1GiB, 1GB or as a number of bytes", s)
	case err != nil || n > math.MaxInt64/unit:
		return 0, fmt.Errorf("size %s is too large", s)
	}
	return n * unit, nil
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// formatExactly is formatSize with the number of bytes.
func formatExactly(n int64) string { return fmt.Sprintf("%s (%d bytes)", formatSize(n), n) }

// formatSize writes a size for people: exactly where a unit fits, else with
// one decimal.
func formatSize(n int64) string {
	names := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	if n < 1<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	i := 0
	for rest := n; rest >= 1<<10 && i < len(names)-1; rest >>= 10 {
		i++
	}
	unit := int64(1) << (10 * i)
	if n%unit == 0 {
		return fmt.Sprintf("%d %s", n/unit, names[i])
	}
	return fmt.Sprintf("%.1f %s", float64(n)/float64(unit), names[i])
}
