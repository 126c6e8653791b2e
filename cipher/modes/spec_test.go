package modes

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"serpcrypt/cipher/serpent"
)

// allSpecs returns every specification that there is.
func allSpecs() []string {
	specs := []string{"serpent-ecb", "aes-ecb"}
	for _, mode := range []string{"cbc", "ctr", "lrw", "xts"} {
		for _, iv := range []string{"null", "plain", "plain64", "plain64be", "benbi", "essiv:sha256"} {
			specs = append(specs, "serpent-"+mode+"-"+iv, "aes-"+mode+"-"+iv)
		}
		for _, hash := range []string{"sha1", "rmd160", "sha224"} {
			specs = append(specs, "serpent-"+mode+"-essiv:"+hash)
		}
	}
	return specs
}

func TestParseSpec(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Spec
	}{
		{"serpent-ecb", Spec{Cipher: "serpent", Mode: "ecb"}},
		{"serpent-xts-plain64", Spec{Cipher: "serpent", Mode: "xts", IV: "plain64"}},
		{"Serpent-CBC-ESSIV:SHA256", Spec{Cipher: "serpent", Mode: "cbc", IV: "essiv", IVHash: "sha256"}},
		{"AES-CBC-essiv:SHA256", Spec{Cipher: "aes", Mode: "cbc", IV: "essiv", IVHash: "sha256"}},
		{"serpent-cbc-essiv:RMD160", Spec{Cipher: "serpent", Mode: "cbc", IV: "essiv", IVHash: "rmd160"}},
		{"serpent-lrw-plain64", Spec{Cipher: "serpent", Mode: "lrw", IV: "plain64"}},
	} {
		got, err := ParseSpec(c.in)
		if err != nil || got != c.want {
			t.Errorf("ParseSpec(%q) = %+v, %v; want %+v", c.in, got, err, c.want)
		}
	}
	for _, spec := range allSpecs() {
		for _, in := range []string{spec, strings.ToUpper(spec)} {
			got, err := ParseSpec(in)
			if err != nil || got.String() != spec {
				t.Errorf("ParseSpec(%q) = %q, %v; want %q", in, got, err, spec)
			}
		}
	}
}

func TestParseSpecError(t *testing.T) {
	const (
		modeList = "ecb, cbc, ctr, lrw, xts"
		ivList   = "null, plain, plain64, plain64be, benbi, essiv"
		hashList = "sha1, rmd160, sha224, sha256, sha384, sha512, wp512"
	)
	for _, c := range []struct{ in, reason string }{
		{"", `unknown cipher "" (known: serpent, aes)`},
		{"twofish-xts-plain64", `unknown cipher "twofish" (known: serpent, aes)`},
		{"serpent:64-cbc-lmk", `unknown cipher "serpent:64" (known: serpent, aes)`},
		{"capi:xts(serpent)-plain64", `unknown cipher "capi:xts(serpent)" (known: serpent, aes)`},
		{" serpent-xts-plain64", `unknown cipher " serpent" (known: serpent, aes)`},
		{"serpent", "no mode (one of " + modeList + ")"},
		{"AES", "no mode (one of " + modeList + ")"},
		{"serpent-", `unknown mode "" (known: ` + modeList + ")"},
		{"serpent-plain", `unknown mode "plain" (known: ` + modeList + ")"},
		{"serpent-gcm-plain64", `unknown mode "gcm" (known: ` + modeList + ")"},
		{"serpent-ecb:sha1", `unknown mode "ecb:sha1" (known: ` + modeList + ")"},
		{"serpent-ecb-plain64", "ecb takes no IV"},
		{"serpent-ecb-null", "ecb takes no IV"},
		{"serpent-ecb-", "ecb takes no IV"},
		{"serpent-xts", "xts needs an IV (one of " + ivList + ")"},
		{"serpent-cbc", "cbc needs an IV (one of " + ivList + ")"},
		{"serpent-xts-", `unknown IV "" (known: ` + ivList + ")"},
		{"serpent-cbc-eboiv", `unknown IV "eboiv" (known: ` + ivList + ")"},
		{"serpent-xts-plain64 ", `unknown IV "plain64 " (known: ` + ivList + ")"},
		{"serpent-xts-plain64-", `unknown IV "plain64-" (known: ` + ivList + ")"},
		{"serpent-xts-plain64-plain64", `unknown IV "plain64-plain64" (known: ` + ivList + ")"},
		{"serpent-xts-plain64\x00", `unknown IV "plain64\x00" (known: ` + ivList + ")"},
		{"serpent-xts-plain64:sha256", "plain64 takes no hash"},
		{"serpent-lrw-benbi:sha1", "benbi takes no hash"},
		{"serpent-cbc-null:", "null takes no hash"},
		{"serpent-cbc-essiv", "essiv needs a hash, as in essiv:sha256"},
		{"serpent-cbc-essiv:", "essiv needs a hash, as in essiv:sha256"},
		{"serpent-cbc-essiv:md5", `unknown hash "md5" (known: ` + hashList + ")"},
		{"serpent-cbc-essiv:sha256:", `unknown hash "sha256:" (known: ` + hashList + ")"},
		{"serpent-cbc-essiv:sha256-x", `unknown hash "sha256-x" (known: ` + hashList + ")"},
		{"serpent-cbc-essiv:sha512", "essiv takes the digest as a key, and sha512 gives 64 bytes; serpent has room for 32"},
		{"serpent-xts-essiv:sha384", "essiv takes the digest as a key, and sha384 gives 48 bytes; serpent has room for 32"},
		{"serpent-cbc-essiv:wp512", "essiv takes the digest as a key, and wp512 gives 64 bytes; serpent has room for 32"},
		{"aes-cbc-essiv:sha1", "essiv takes the digest as a key, and sha1 gives 20 bytes; aes has keys of 16, 24 or 32"},
		{"aes-cbc-essiv:sha224", "essiv takes the digest as a key, and sha224 gives 28 bytes; aes has keys of 16, 24 or 32"},
		{"aes-xts-essiv:sha512", "essiv takes the digest as a key, and sha512 gives 64 bytes; aes has keys of 16, 24 or 32"},
		{"serpent-cbc-essiv:ripemd160", `unknown hash "ripemd160" (known: ` + hashList + ")"},
		{"serpent-cbc-essiv:whirlpool", `unknown hash "whirlpool" (known: ` + hashList + ")"},
	} {
		spec, err := ParseSpec(c.in)
		var specError *SpecError
		if !errors.As(err, &specError) {
			t.Errorf("ParseSpec(%q) = %v, %v; want a *SpecError", c.in, spec, err)
			continue
		}
		if specError.Spec != c.in || specError.Reason != c.reason {
			t.Errorf("ParseSpec(%q):\ngot  %q: %s\nwant %q: %s", c.in, specError.Spec, specError.Reason, c.in, c.reason)
		}
		if spec != (Spec{}) {
			t.Errorf("ParseSpec(%q) = %+v with its error, want nothing", c.in, spec)
		}
	}
	_, err := ParseSpec("serpent-ecb-null")
	if want := `modes: "serpent-ecb-null": ecb takes no IV`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, spec := range allSpecs() {
		f.Add(spec)
	}
	f.Add("serpent-cbc-essiv:sha256:-")
	f.Fuzz(func(t *testing.T, in string) {
		spec, err := ParseSpec(in)
		if err != nil {
			if specError := new(SpecError); !errors.As(err, &specError) {
				t.Fatalf("ParseSpec(%q): %T, want a *SpecError", in, err)
			}
			return
		}
		if !slices.Contains(allSpecs(), spec.String()) {
			t.Errorf("ParseSpec(%q) took %q", in, spec)
		}
		if again, err := ParseSpec(spec.String()); err != nil || again != spec {
			t.Errorf("ParseSpec(%q) = %+v, %v; want %+v", spec, again, err, spec)
		}
	})
}

func TestKeySizes(t *testing.T) {
	for _, c := range []struct {
		spec string
		want []int
	}{
		{"serpent-ecb", []int{16, 24, 32}},
		{"serpent-cbc-essiv:sha256", []int{16, 24, 32}},
		{"serpent-ctr-plain64", []int{16, 24, 32}},
		{"serpent-lrw-benbi", []int{32, 40, 48}},
		{"serpent-xts-plain64", []int{32, 48, 64}},
		{"aes-cbc-essiv:sha256", []int{16, 24, 32}},
		{"aes-lrw-benbi", []int{32, 40, 48}},
		{"aes-xts-plain64", []int{32, 48, 64}},
	} {
		spec, err := ParseSpec(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := spec.KeySizes(); !slices.Equal(got, c.want) {
			t.Errorf("%s: KeySizes() = %d, want %d", spec, got, c.want)
		}
		for size := range 130 {
			err := spec.CheckKeySize(size)
			_, newErr := New(c.spec, make([]byte, size), 512, serpent.Generic)
			if slices.Contains(c.want, size) {
				if err != nil || newErr != nil {
					t.Errorf("%s, %d bytes: CheckKeySize %v, New %v", spec, size, err, newErr)
				}
				continue
			}
			for _, err := range []error{err, newErr} {
				if specError := new(SpecError); !errors.As(err, &specError) {
					t.Errorf("%s, %d bytes: %v, want a *SpecError", spec, size, err)
				}
			}
		}
	}
	spec := Spec{Cipher: "serpent", Mode: "xts", IV: "plain64"}
	want := `modes: "serpent-xts-plain64": a key of 264 bits does not fit (one of 256, 384, 512)`
	if err := spec.CheckKeySize(33); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := (Spec{}).CheckKeySize(32); err == nil {
		t.Error("a Spec without a mode takes a key of 32 bytes")
	}
}
