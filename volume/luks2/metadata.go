package luks2

import (
	"bytes"
	"encoding/json"
)

// Types of objects (sections 3.2 to 3.6).
const (
	KeyslotLUKS2 = "luks2"
	AFLUKS1      = "luks1"
	AreaRaw      = "raw"
	KDFPBKDF2    = "pbkdf2"
	KDFArgon2i   = "argon2i"
	KDFArgon2id  = "argon2id"
	SegmentCrypt = "crypt"
	DigestPBKDF2 = "pbkdf2"
	TokenKeyring = "luks2-keyring"
)

// Priorities of a key slot (section 3.2). Without one it is normal.
const (
	PriorityIgnore = 0 // only tried if it is named
	PriorityNormal = 1
	PriorityPrefer = 2
)

// DynamicSize is the Size of a segment that reaches to the end of its store.
const DynamicSize = -1

// Metadata is what the JSON text says. Objects are found by their number.
//
// Each kind of object has Unknown, the members that this package knows nothing
// of; they are written again as they were read. So are whole parts whose type is
// another than those above: only what all types have in common is known then.
type Metadata struct {
	Keyslots map[int]*Keyslot
	Tokens   map[int]*Token
	Segments map[int]*Segment
	Digests  map[int]*Digest
	Config   Config
	Unknown  []Member
}

// Member is a member of a JSON object. The value is kept letter by letter.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Keyslot is where and how the volume key is kept under a passphrase.
type Keyslot struct {
	Type     string
	KeySize  int  // of the volume key, in bytes
	Priority *int // nil: PriorityNormal
	AF       AF   // AF and KDF are empty unless the type is KeyslotLUKS2
	Area     Area
	KDF      KDF
	Unknown  []Member
}

// AF is how the key is split into stripes before it is encrypted.
type AF struct {
	Type    string
	Stripes int
	Hash    string
	Unknown []Member
}

// Area is a place in the keyslots area. Offset and Size are in bytes, Offset
// from the start of the header's store.
type Area struct {
	Type         string
	Offset, Size int64
	Encryption   string // as modes.ParseSpec reads it
	KeySize      int    // of the area's encryption, in bytes
	Unknown      []Member
}

// KDF is how the passphrase becomes the key of the area.
type KDF struct {
	Type string
	Salt []byte

	Hash       string // of PBKDF2
	Iterations int

	Time, Memory, CPUs int // of Argon2: passes, KiB, lanes

	Unknown []Member
}

// Token says where else a passphrase may come from; only its kind's program
// knows more.
type Token struct {
	Type     string
	Keyslots []int
	Unknown  []Member
}

// Segment is a part of the volume. Offset and Size are in bytes, Offset from
// the start of the data's store.
type Segment struct {
	Type         string
	Offset, Size int64  // Size may be DynamicSize
	IVTweak      uint64 // number of the first sector, in units of 512 bytes
	Encryption   string // as modes.ParseSpec reads it
	SectorSize   int    // bytes
	Integrity    json.RawMessage
	Flags        []string
	Unknown      []Member
}

// Digest tells the right volume key from a wrong one, for the key slots and
// segments that it names.
type Digest struct {
	Type       string
	Keyslots   []int
	Segments   []int
	Hash       string
	Iterations int
	Salt       []byte
	Digest     []byte
	Unknown    []Member
}

// Config is what concerns the whole header.
type Config struct {
	JSONSize     int64 // bytes, of one copy's JSON text with its NULs
	KeyslotsSize int64 // bytes
	Flags        []string
	Requirements Requirements
	Unknown      []Member
}

// Requirements name what a program must know to use the container.
type Requirements struct {
	Mandatory []string
	Unknown   []Member
}

func (m *Metadata) list(l *members) {
	l.required("keyslots", numbered[Keyslot, *Keyslot]{&m.Keyslots, MaxSlots})
	l.required("tokens", numbered[Token, *Token]{&m.Tokens, MaxTokens})
	l.required("segments", numbered[Segment, *Segment]{&m.Segments, MaxSegments})
	l.required("digests", numbered[Digest, *Digest]{&m.Digests, MaxDigests})
	l.required("config", nested{&m.Config})
	l.unknown(&m.Unknown)
}

func (k *Keyslot) list(l *members) {
	l.required("type", (*text)(&k.Type))
	l.required("key_size", (*number)(&k.KeySize))
	l.optional("priority", optionalNumber{&k.Priority})
	if k.Type == KeyslotLUKS2 {
		l.required("af", nested{&k.AF})
	}
	l.required("area", nested{&k.Area})
	if k.Type == KeyslotLUKS2 {
		l.required("kdf", nested{&k.KDF})
	}
	l.unknown(&k.Unknown)
}

func (a *AF) list(l *members) {
	l.required("type", (*text)(&a.Type))
	if a.Type == AFLUKS1 {
		l.required("stripes", (*number)(&a.Stripes))
		l.required("hash", (*text)(&a.Hash))
	}
	l.unknown(&a.Unknown)
}

func (a *Area) list(l *members) {
	l.required("type", (*text)(&a.Type))
	l.required("offset", (*decimal)(&a.Offset))
	l.required("size", (*decimal)(&a.Size))
	if a.Type == AreaRaw {
		l.required("encryption", (*text)(&a.Encryption))
		l.required("key_size", (*number)(&a.KeySize))
	}
	l.unknown(&a.Unknown)
}

func (k *KDF) list(l *members) {
	l.required("type", (*text)(&k.Type))
	l.required("salt", (*base64Bytes)(&k.Salt))
	switch k.Type {
	case KDFPBKDF2:
		l.required("hash", (*text)(&k.Hash))
		l.required("iterations", (*number)(&k.Iterations))
	case KDFArgon2i, KDFArgon2id:
		l.required("time", (*number)(&k.Time))
		l.required("memory", (*number)(&k.Memory))
		l.required("cpus", (*number)(&k.CPUs))
	}
	l.unknown(&k.Unknown)
}

func (t *Token) list(l *members) {
	l.required("type", (*text)(&t.Type))
	l.required("keyslots", (*numbers)(&t.Keyslots))
	l.unknown(&t.Unknown)
}

func (s *Segment) list(l *members) {
	l.required("type", (*text)(&s.Type))
	l.required("offset", (*decimal)(&s.Offset))
	l.required("size", (*segmentSize)(&s.Size))
	if s.Type == SegmentCrypt {
		l.required("iv_tweak", (*decimal64)(&s.IVTweak))
		l.required("encryption", (*text)(&s.Encryption))
		l.required("sector_size", (*number)(&s.SectorSize))
		l.optional("integrity", (*verbatim)(&s.Integrity))
	}
	l.optional("flags", (*texts)(&s.Flags))
	l.unknown(&s.Unknown)
}

func (d *Digest) list(l *members) {
	l.required("type", (*text)(&d.Type))
	l.required("keyslots", (*numbers)(&d.Keyslots))
	l.required("segments", (*numbers)(&d.Segments))
	if d.Type == DigestPBKDF2 {
		l.required("hash", (*text)(&d.Hash))
		l.required("iterations", (*number)(&d.Iterations))
		l.required("salt", (*base64Bytes)(&d.Salt))
		l.required("digest", (*base64Bytes)(&d.Digest))
	}
	l.unknown(&d.Unknown)
}

func (c *Config) list(l *members) {
	l.required("json_size", (*decimal)(&c.JSONSize))
	l.required("keyslots_size", (*decimal)(&c.KeyslotsSize))
	l.optional("flags", (*texts)(&c.Flags))
	l.optional("requirements", &c.Requirements)
	l.unknown(&c.Unknown)
}

func (r *Requirements) list(l *members) {
	l.optional("mandatory", (*texts)(&r.Mandatory))
	l.unknown(&r.Unknown)
}

func (r *Requirements) read(n node)             { readObject(n, r) }
func (r *Requirements) write(out *bytes.Buffer) { writeObject(out, r) }
func (r *Requirements) isNone() bool            { return r.Mandatory == nil && r.Unknown == nil }
