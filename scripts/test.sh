#!/bin/bash
# Runs every test of the repository and prints a line for each step, the
# failures in full, and a summary. Other processors are emulated.
#
# SERPCRYPT_NO_SKIP=1    a test that would skip fails instead, but for want of a CPU
# SERPCRYPT_GOLDEN=DIR   a folder of container images to export and compare
. "$(dirname "$0")/common.sh"
. scripts/leftovers.sh

STATICCHECK=honnef.co/go/tools/cmd/staticcheck@v0.8.2

need_go
need_packages gcc=gcc objdump=binutils /usr/include/stdlib.h=libc6-dev diff=diffutils fusermount3=fuse3 fuse2fs=fuse2fs \
	losetup=mount mkfs.ext4=e2fsprogs mkfs.vfat=dosfstools mkfs.xfs=xfsprogs mkfs.ntfs=ntfs-3g mkfs.btrfs=btrfs-progs mkfs.exfat=exfatprogs \
	mkfs.f2fs=f2fs-tools mkfs.nilfs2=nilfs-tools mkfs.udf=udftools mksquashfs=squashfs-tools mkfs.erofs=erofs-utils squashfuse=squashfuse \
	mount.exfat-fuse=exfat-fuse fusefat=fusefat setpriv=util-linux qemu-img=qemu-utils cryptsetup=cryptsetup-bin qemu-s390x=qemu-user \
	man=man-db zsh=zsh fish=fish '<gcrypt.h>=libgcrypt20-dev' '<openssl/evp.h>=libssl-dev' '<nettle/sha1.h>=nettle-dev' gocryptfs=gocryptfs fio=fio

# Without FUSE the tests that need it say so; with it they need this.
[ ! -w /dev/fuse ] || need_fuse

# A disk that fails at each operation of each change of a header: thousands of
# disks are looked at.
failing_disks='TestPowerCutsInUpdates|TestFaultsInUpdates|TestPowerCutWhileMaking|TestFaultsWhileMaking'
# The packages that work with several goroutines, and tests that take minutes
# under the race detector and have no more goroutines than others.
concurrent='./cipher/modes ./kdf ./volume ./internal/...'
not_raced="^(TestPBKDF2ManyIterations|TestEverySuiteIsComplete|$failing_disks)\$"
# What reads headers that anybody may have made.
fuzzed='./volume/luks1 ./volume/luks2 ./volume/af'
# What has assembly, or depends on the width of int or the order of bytes; and
# what stands on it.
portable='./cipher/... ./hash/... ./internal/hashes ./internal/secret ./internal/whirlpool ./kdf ./volume/...'
# What an emulator is no good for: it hides the flags of memory, knows no limit of
# it, cannot start the test program a second time, nor what go run builds for its
# processor; and what takes minutes there.
not_emulated="^(TestTooLittleMemory|TestNewGivesZeroedLockedUndumpedMemory|TestHardenProcess|TestCore|TestGeneratedCodeIsCurrent|TestPBKDF2ManyIterations|$failing_disks)\$"

modules() { find . -name go.mod ! -path ./go.mod -printf '%h\n' | sort; }

gofmt_clean() {
	local bad
	bad=$(gofmt -l .) && [ -z "$bad" ] || { say "gofmt would change:" "$bad"; return 1; }
}

cross() {
	local arch
	for arch in arm64 386 s390x; do
		GOARCH=$arch CGO_ENABLED=0 go vet ./... || { say "go vet for $arch"; return 1; }
	done
}

# expect SERPENT SHA1 COMMAND... runs it, and these kernels should be chosen.
expect() { SERPCRYPT_EXPECT_KERNEL=$1 SERPCRYPT_EXPECT_SHA1_KERNEL=$2 "${@:3}"; }

# emulate ARCHITECTURE QEMU'S-NAME-OF-IT runs tests on that processor. Its slowness
# would let goroutines be stopped in the midst of the ciphers, which saves
# registers to stacks that tests look at.
emulate() {
	GOARCH=$1 CGO_ENABLED=0 GODEBUG=asyncpreemptoff=1 expect generic generic \
		scripts/go-test.sh -exec "qemu-$2" -skip "$not_emulated" $portable
}

# kernels says which this CPU has and lacks, a line for each package that has any.
kernels() {
	go test -count=1 -v -run '^TestExpectedKernel$' ./cipher/... ./hash/... | sed -n 's/.*: kernels of //p'
}

other_modules() {
	local dir
	for dir in $(modules); do
		(cd "$dir" && go vet ./... && "$root/scripts/go-test.sh" ./...) || { say "in $dir"; return 1; }
	done
}

steps_failed=0
step() {
	local name=$1 start=$SECONDS
	shift
	say "== $name"
	echo "step $name" >>"$SERPCRYPT_TALLY"
	if "$@"; then
		say "== $name: ok, $((SECONDS - start)) s"
	else
		say "== $name: FAILED"
		echo failed >>"$SERPCRYPT_TALLY"
		steps_failed=$((steps_failed + 1))
	fi
}

SERPCRYPT_TALLY=$(mktemp)
export SERPCRYPT_TALLY
watch_for_leftovers

say "== kernels on this CPU, $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1)"
kernels=$(kernels) || true
say "$kernels"

step 'gofmt' gofmt_clean
step 'go vet' go vet ./...
step 'staticcheck' go run $STATICCHECK ./...
step 'go test' scripts/go-test.sh ./...
step 'go test without assembly' expect generic generic scripts/go-test.sh -tags purego $portable
step 'go test with the race detector' scripts/go-test.sh -race -skip "$not_raced" $concurrent
step 'fuzzing, a little' scripts/fuzz.sh 20000x $fuzzed
if GOARCH=386 CGO_ENABLED=0 go test -run '^$' ./internal/hashes >/dev/null 2>&1; then
	step 'go test on 32 bits' expect generic scalar env GOARCH=386 CGO_ENABLED=0 scripts/go-test.sh $portable
else
	say '== go test on 32 bits: NOT DONE, this machine runs no 32-bit x86 programs; make test-i386 emulates one that does'
fi
step 'go test on s390x, big-endian, emulated' emulate s390x s390x
step 'go test on arm64, emulated' emulate arm64 aarch64
step 'the choice of kernel on emulated CPUs' scripts/cpu-models.sh
step 'go vet for arm64, 386, s390x' cross
step 'go test of the other modules' other_modules
step 'fio, a little' test/fio/run.sh quick
step 'generated code is up to date' scripts/generate.sh -check
step 'nothing left behind' no_leftovers

# What failed comes last, as logs may be cut at their top.
say "$kernels" | sed -n 's/^\(.*\) here: .*, not here: \[\(..*\)\]$/\nnot tested, as this CPU lacks them: \1, kernels \2/p'
awk '
/^step / { step = substr($0, 6); told = 0; next }
/^! / { tell(": " substr($0, 3)); told = 1; next }
/^failed$/ { if (!told) tell(""); steps++; next }
{ pass += $1; fail += $2; skip += $3 }
END { print "\n" pass + 0 " passed, " (fail ? fail : steps + 0) " failed, " skip + 0 " skipped" }
function tell(what) {
	if (!failures++) print "\nfailed:"
	print "  " step what
}' "$SERPCRYPT_TALLY"
rm -f "$SERPCRYPT_TALLY"
[ $steps_failed = 0 ]
