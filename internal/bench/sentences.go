package bench

import (
	"fmt"

	"serpcrypt/hash/sha1"
)

// spoken are the kernels' names in sentences.
var spoken = map[string]string{
	"generic": "the portable code", "looped": "the portable code", "scalar": "scalar code",
	"sse2": "SSE2", "avx2": "AVX2", "avx512": "AVX-512", "shani": "SHA-NI",
}

func speak(kernel string) string {
	if name, ok := spoken[kernel]; ok {
		return name
	}
	return kernel
}

// beside compares speeds.
func beside(ratio float64, other string) string {
	switch {
	case ratio >= 9.95:
		return fmt.Sprintf(", %.0f times as fast as %s", ratio, other)
	case ratio >= 1.15:
		return fmt.Sprintf(", %.1f times as fast as %s", ratio, other)
	case ratio > 0.85:
		return ", as fast as " + other
	}
	return fmt.Sprintf(", at %s of the speed of %s", asPercent(ratio), other)
}

// besideGeneric says nothing of the portable code beside itself.
func besideGeneric(kernel string, ratio float64) string {
	if kernel == "generic" {
		return ""
	}
	return beside(ratio, spoken["generic"])
}

func asPercent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

func inSpeed(bytesPerSecond float64) string {
	if bytesPerSecond < 999.5e6 {
		return fmt.Sprintf("%.0f MB/s", bytesPerSecond/1e6)
	}
	return fmt.Sprintf("%.1f GB/s", bytesPerSecond/1e9)
}

// fastest returns the result with the greatest speed of those that are wanted.
// ok is false if there is none.
func fastest[T any](results []T, speed func(T) float64, wanted func(T) bool) (best T, ok bool) {
	for _, x := range results {
		if wanted(x) && (!ok || speed(x) > speed(best)) {
			best, ok = x, true
		}
	}
	return best, ok
}

func serpentSentence(results []SerpentResult) string {
	longest := requestSizes[len(requestSizes)-1]
	x, ok := fastest(results, func(x SerpentResult) float64 { return x.BytesPerSecond }, func(x SerpentResult) bool {
		return x.Mode == "xts" && x.Op == "dec" && x.Bytes == longest
	})
	if !ok {
		return ""
	}
	return fmt.Sprintf("Serpent-XTS decrypts %s on one core with %s%s.",
		inSpeed(x.BytesPerSecond), speak(x.Kernel), besideGeneric(x.Kernel, x.RatioToGeneric))
}

// sectorsSentence is about sectors as create makes them.
func sectorsSentence(results []SectorsResult) string {
	speed := func(x SectorsResult) float64 { return x.BytesPerSecond }
	wanted := func(x SectorsResult) bool {
		return x.Mode == "xts" && x.Op == "dec" && x.SectorSize == volumeSectorSize && x.Bytes == longRun
	}
	x, ok := fastest(results, speed, func(x SectorsResult) bool { return wanted(x) && x.Threads == 1 })
	if !ok {
		return ""
	}
	onMore := ""
	if y, ok := fastest(results, speed, func(y SectorsResult) bool { return wanted(y) && y.Threads > 1 && y.Kernel == x.Kernel }); ok {
		onMore = fmt.Sprintf("; %d cores do %s", y.Threads, inSpeed(y.BytesPerSecond))
	}
	return fmt.Sprintf("Sectors of %d bytes are decrypted at %s on one core with %s%s%s.", volumeSectorSize,
		inSpeed(x.BytesPerSecond), speak(x.Kernel), besideGeneric(x.Kernel, x.RatioToGeneric), onMore)
}

func sha1Sentence(results []SHA1Result, chosen string) string {
	longest := updates[len(updates)-1]
	x, ok := fastest(results, func(x SHA1Result) float64 { return x.BytesPerSecond }, func(x SHA1Result) bool {
		return x.Kernel == chosen && x.Bytes == longest.message && x.UpdateBytes == longest.update
	})
	if !ok {
		return ""
	}
	return fmt.Sprintf("SHA-1 hashes %s with %s%s.",
		inSpeed(x.BytesPerSecond), speak(x.Kernel), beside(x.RatioToStdlib, "Go's standard library"))
}

func kdfSentence(results []KDFResult) string {
	x, ok := fastest(results, func(x KDFResult) float64 { return x.IterationsPerSecond }, func(x KDFResult) bool {
		return x.Hash == "sha1" && x.Kernel == sha1.AutoChains.String() && x.Bytes == slotKeySize
	})
	if !ok {
		return ""
	}
	return fmt.Sprintf("PBKDF2 with SHA-1 does %.1f million iterations a second for a key of %d bytes%s.",
		x.IterationsPerSecond/1e6, slotKeySize, beside(x.RatioToStdlib, "Go's standard library"))
}

// unlockSentence is about key slots as create makes them, for a second.
func unlockSentence(results []UnlockResult) string {
	of := func(slots int) (UnlockResult, bool) {
		return fastest(results, func(x UnlockResult) float64 { return x.IterationsPerSecond }, func(x UnlockResult) bool {
			return x.Kernel == sha1.AutoChains.String() && x.Slots == slots
		})
	}
	one, ok := of(1)
	if !ok {
		return ""
	}
	all := ""
	if x, ok := of(maxSlots); ok {
		all = fmt.Sprintf("; to try %d takes %.1f s", maxSlots, x.TimeRatioToOneSlot)
	}
	return fmt.Sprintf("Unlocking one slot takes 1.0 s if create may choose its iterations, %.1f million on one core here%s.",
		one.IterationsPerSecond/1e6, all)
}

func volumeSentence(results []VolumeResult) string {
	longest := volumeSizes[len(volumeSizes)-1]
	of := func(op string, also func(kernel string) bool) (VolumeResult, bool) {
		return fastest(results, func(x VolumeResult) float64 { return x.BytesPerSecond }, func(x VolumeResult) bool {
			return x.Path == pathFuse && x.Pattern == "sequential" && x.Bytes == longest && x.Depth == 1 && x.Op == op && also(x.Kernel)
		})
	}
	read, readOK := of("read", func(kernel string) bool { return kernel != kernelNull })
	write, writeOK := of("write", func(kernel string) bool { return kernel == read.Kernel })
	if !readOK || !writeOK {
		return ""
	}
	return fmt.Sprintf("An open container reads %s and writes %s with %s, %s and %s of what it would without a cipher.",
		inSpeed(read.BytesPerSecond), inSpeed(write.BytesPerSecond), speak(read.Kernel),
		asPercent(read.RatioToNull), asPercent(write.RatioToNull))
}
