#!/bin/bash
# Runs tests as 32-bit programs, which not every machine can, in an emulated one;
# and looks which kernels 64-bit programs choose there under a Linux that does not
# save the registers of AVX, and under one that does.
#
# SERPCRYPT_GUEST=DIR   where the emulated machine is kept (build/guest)
. "$(dirname "$0")/../../scripts/common.sh"

need_go
guest=${SERPCRYPT_GUEST:-$root/build/guest}
test/guest/build.sh "$guest"

work=$(mktemp -d "${TMPDIR:-/tmp}/serpcrypt-i386.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# The slowest first. volume would take as long as all of these.
packages='cipher/modes volume/luks1 volume/keyslot cipher/serpent hash/sha1 volume/af kdf internal/hashes internal/secret'
with_avx='cipher/serpent hash/sha1'

pack() { # pack ARCHITECTURE PACKAGE
	mkdir -p "$work/tests/$2"
	GOARCH=$1 CGO_ENABLED=0 go test -c -o "$work/tests/$2/$1.test" "./$2"
	[ ! -d "$2/testdata" ] || cp -r "$2/testdata" "$work/tests/$2/"
}

# in_guest PARAMETER runs the tests listed on stdin, as in-guest.sh wants them,
# with that parameter for the kernel.
in_guest() {
	cat >"$work/list"
	test/guest/run.sh -t 1500 -a "$1" -f "$work/tests.tar" -f "$work/list" "$guest" test/i386/in-guest.sh |
		tr -d '\r' | awk -v tally="$work/tally" -f scripts/go-test.awk
}

for package in $packages; do pack 386 $package; done
for package in $with_avx; do pack amd64 $package; done
cp go.mod "$work/tests/"
cp -r testdata "$work/tests/"
tar -cf "$work/tests.tar" -C "$work/tests" .

failed=0
{
	for package in $packages; do echo "$package/386.test generic scalar ."; done
	for package in $with_avx; do echo "$package/amd64.test sse2 scalar ^TestExpectedKernel$"; done
} | in_guest noxsave || failed=1
for package in $with_avx; do
	echo "$package/amd64.test avx2 avx2 ^TestExpectedKernel$"
done | in_guest '' || failed=1

awk '
/^! / { print }
!/^! / { pass += $1; fail += $2; skip += $3 }
END { print "\n" pass + 0 " passed, " fail + 0 " failed, " skip + 0 " skipped" }' "$work/tally"
[ $failed = 0 ]
