#!/bin/bash
# Runs every test of the repository and prints a line for each step, the
# failures in full, and a summary.
#
# SERPCRYPT_NO_SKIP=1    a test that would skip fails instead
# SERPCRYPT_GOLDEN=DIR   a folder of container images to export and compare
. "$(dirname "$0")/common.sh"
. scripts/leftovers.sh

STATICCHECK=honnef.co/go/tools/cmd/staticcheck@v0.8.2

need_go
need_packages gcc=gcc objdump=binutils /usr/include/stdlib.h=libc6-dev diff=diffutils fusermount3=fuse3 fuse2fs=fuse2fs \
	losetup=mount mkfs.ext4=e2fsprogs mkfs.vfat=dosfstools qemu-img=qemu-utils cryptsetup=cryptsetup-bin \
	'<gcrypt.h>=libgcrypt20-dev' '<openssl/evp.h>=libssl-dev'

# Without FUSE the tests that need it say so; with it they need this.
[ ! -w /dev/fuse ] || need_fuse

# The packages that work with several goroutines.
concurrent='./cipher/modes ./volume ./internal/...'
# What has assembly, or depends on the width of int; and what stands on it.
portable='./cipher/... ./hash/... ./internal/hashes ./volume/...'

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
	if "$@"; then
		say "== $name: ok, $((SECONDS - start)) s"
	else
		say "== $name: FAILED"
		steps_failed=$((steps_failed + 1))
	fi
}

SERPCRYPT_TALLY=$(mktemp)
export SERPCRYPT_TALLY
watch_for_leftovers

step 'gofmt' gofmt_clean
step 'go vet' go vet ./...
step 'staticcheck' go run $STATICCHECK ./...
step 'go test' scripts/go-test.sh ./...
step 'go test without assembly' scripts/go-test.sh -tags purego $portable
step 'go test with the race detector' scripts/go-test.sh -race $concurrent
if GOARCH=386 CGO_ENABLED=0 go test -run '^$' ./internal/hashes >/dev/null 2>&1; then
	step 'go test on 32 bits' env GOARCH=386 CGO_ENABLED=0 scripts/go-test.sh $portable
else
	say '== go test on 32 bits: NOT DONE, this machine runs no 32-bit x86 programs'
fi
step 'go vet for arm64, 386, s390x' cross
step 'go test of the other modules' other_modules
step 'generated code is up to date' scripts/generate.sh -check
step 'nothing left behind' no_leftovers

awk -v steps=$steps_failed '
{ pass += $1; fail += $2; skip += $3 }
END {
	if (steps) print "\nsteps that failed: " steps
	print "\n" pass " passed, " (fail ? fail : steps) " failed, " skip " skipped"
}' "$SERPCRYPT_TALLY"
rm -f "$SERPCRYPT_TALLY"
[ $steps_failed = 0 ]
