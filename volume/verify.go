package volume

import (
	"context"
	"errors"

	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/fsprobe"
	"serpcrypt/volume/luks"
)

// Verify looks at all of a container: the header; the material of every key slot
// in use, which must look random; every sector of the payload, which the chosen
// kernel and the portable one must decrypt to the same; and whether the file
// system inside fits. That the key is there shows that its key
// slot and the digest are right. It writes nothing.
//
// key may be nil, as nobody gets one if the header is of no use. Then nothing
// but the header and its key slots is looked at.
//
// A changed byte of the payload it cannot see: it decrypts to something else,
// and nothing says what it was.
//
// The faults are in the report. The error is that of ctx, or one of the stores
// that leaves nothing to verify.
func Verify(ctx context.Context, at Stores, key *Key, o Options, progress Progress) (*Report, error) {
	v := verifier{at: at, options: o, progress: progress, newCipher: newCipher}
	return v.verify(ctx, key)
}

type verifier struct {
	at        Stores
	options   Options
	progress  Progress
	newCipher makeCipher
	report    Report
}

func (v *verifier) verify(ctx context.Context, key *Key) (*Report, error) {
	r := &v.report
	r.Slot = luks.NoSlot
	extents, err := v.verifyHeader(ctx)
	if err != nil {
		return nil, err
	}
	if key == nil || extents == nil {
		r.skip(CheckKeySlot, CheckDigest, CheckPayload, CheckFileSystem)
		return r, nil
	}
	if key.Slot == AnySlot {
		r.skip(CheckKeySlot)
	} else {
		r.Slot = key.Slot
		r.judge(CheckKeySlot)
	}
	r.judge(CheckDigest)
	if err := v.verifyPayload(ctx, extents, key.Bytes.Bytes()); err != nil {
		return nil, err
	}
	return r, v.verifyFileSystem(extents, key.Bytes.Bytes())
}

// verifyHeader returns no extents if the header is of no use.
func (v *verifier) verifyHeader(ctx context.Context) ([]extent, error) {
	c, err := readContainer(ctx, v.at)
	var fault *FormatError
	if errors.As(err, &fault) {
		v.report.judge(CheckHeader, fault)
		v.report.skip(CheckMaterial)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v.report.Header = c.header()
	faults := c.faults()
	var extents []extent
	err = c.validate()
	if err != nil && !isFormatError(err) {
		return nil, err
	}
	if err == nil {
		extents, err = c.extents()
		if errors.As(err, &fault) {
			faults = append(faults, fault)
		}
	}
	v.report.judge(CheckHeader, faults...)
	if c.validate() != nil {
		v.report.skip(CheckMaterial)
		return nil, nil
	}
	v.verifyMaterial(c)
	return extents, nil
}

// verifyFileSystem names what is inside and compares its size.
func (v *verifier) verifyFileSystem(extents []extent, key []byte) error {
	inside, err := newVolume(v.at.Data, extents, key, Options{Kernel: serpent.Generic, ReadOnly: true})
	if err != nil {
		return err
	}
	defer inside.Close()
	found, err := fsprobe.Probe(inside)
	if err != nil || found == nil {
		// An unreadable sector has been reported with the payload.
		v.report.skip(CheckFileSystem)
		return nil
	}
	v.report.FileSystem = found
	if found.Name == fsprobe.UnfinishedImport {
		v.report.judge(CheckFileSystem, luks.BadField(CheckFileSystem, luks.NoSlot, v.report.Header.PayloadOffset, "an import into it was not finished"))
		return nil
	}
	if found.Size <= inside.size {
		v.report.judge(CheckFileSystem)
		return nil
	}
	v.report.judge(CheckFileSystem, luks.BadField(CheckFileSystem, luks.NoSlot, v.report.Header.PayloadOffset+inside.size,
		"the container ends here, but the %s in it has %d bytes and the payload only %d", found.Name, found.Size, inside.size))
	return nil
}
