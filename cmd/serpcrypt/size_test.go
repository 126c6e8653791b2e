package main

import "testing"

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "512": 512, "7B": 7, "64M": 64 << 20, "1G": 1 << 30, "1GiB": 1 << 30, "1GB": 1e9, "1gb": 1e9,
		"3k": 3 << 10, "3KiB": 3 << 10, "3KB": 3000, "2T": 2 << 40, "9223372036854775807": 1<<63 - 1,
	} {
		if got, err := parseSize(in); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "M", "-1", "-1M", "+1", "1.5G", "1X", "1 M", "0x10", "1MM", "1iB", "1_0", "9223372036854775808", "9007199254740992K"} {
		if got, err := parseSize(in); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", in, got)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for in, want := range map[int64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1 KiB", 64 << 20: "64 MiB", 1536: "1.5 KiB", 1e9: "953.7 MiB", 5 << 40: "5 TiB",
	} {
		if got := formatSize(in); got != want {
			t.Errorf("formatSize(%d) = %q, want %q", in, got, want)
		}
	}
}
