#!/bin/bash
# Exchanges containers with the kernel's dm-crypt and with cryptsetup, in an
# emulated machine, both ways: bare volumes in every cipher mode, ext4 file
# systems, and headers of LUKS1 and LUKS2 after every change that either side can
# make. Prints a line for each check, and a summary.
#
# SERPCRYPT_GUEST=DIR   where the emulated machine is kept (build/guest)
. "$(dirname "$0")/../../scripts/common.sh"

need_go
need_packages fusermount3=fuse3 mkfs.ext4=e2fsprogs losetup=mount cmp=diffutils \
	cryptsetup=cryptsetup-bin qemu-img=qemu-utils
need_fuse
guest=${SERPCRYPT_GUEST:-$root/build/guest}
test/guest/build.sh "$guest"
build
PATH=$root/bin:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/serpcrypt-dmcrypt.XXXXXX")
tidy() {
	local rc=$?
	trap - EXIT
	cd /
	! grep -q " $work/" /proc/self/mounts || serpcrypt close "$work/mnt" || true
	rm -rf --one-file-system "$work"
	exit $rc
}
trap tidy EXIT
trap 'exit 130' INT TERM HUP
cd "$work"

# check WHAT COMMAND... prints one line, and what COMMAND said if it fails.
check() {
	local what=$1 said
	shift
	if said=$("$@" 2>&1); then echo "ok   $what"; else printf 'FAIL %s\n%s\n' "$what" "$said"; fi | tee -a log
}
serp() { serpcrypt "$@" <<<"$passphrase"; }
create() { serp create -q --type luks1 --pbkdf-force-iterations 1000 "$@"; }
exports_to() { rm -f raw && serp export "$1" raw && cmp -n "$(stat -c %s "$2")" raw "$2"; }
clean_ext4() { rm -f raw && serp export "$1" raw && e2fsck -fn raw; }
inside() { # inside CONTAINER COMMAND... runs COMMAND in the opened container
	local container=$1 rc=0
	shift
	serp open "$container" mnt && { (cd mnt && "$@") || rc=$?; serpcrypt close mnt && return $rc; }
}
# in_guest STAGE runs that part of in-guest.sh, which says "ok" and "FAIL" as here.
in_guest() {
	echo "$1" >stage
	"$root/test/guest/run.sh" -t 900 -f stage -f passphrase -f ciphers -f before -f after \
		$(printf -- '-f %s ' one two three ours.list theirs.list again.list commands crate.list "$root/test/dmcrypt/headers-in-guest.sh") \
		"$guest" "$root/test/dmcrypt/in-guest.sh" "${disks[@]}" | tee -a log ||
		echo "FAIL the guest ended with status ${PIPESTATUS[0]}" | tee -a log
}

passphrase='a pass phrase, auch grün'
printf '%s' "$passphrase" >passphrase
cat >ciphers <<'LIST'
serpent-xts-plain64 512 sha1
serpent-xts-plain64 384 sha512
serpent-xts-plain 256 sha256
serpent-xts-essiv:sha256 512 sha256
serpent-cbc-essiv:sha256 256 sha1
serpent-cbc-plain64 192 sha256
serpent-cbc-plain64be 128 sha1
serpent-cbc-null 128 sha1
serpent-ctr-plain64 256 sha1
serpent-ecb 256 sha256
serpent-lrw-benbi 384 sha1
LIST
mkdir mnt
# The payload of a 3 MiB container: cryptsetup starts it at 2 MiB, and so do we
# but where short keys let it start earlier.
head -c 1M < <(seq 1000000) >before
head -c 1M < <(seq -f %.0f 5000000 5999999) >after

. "$root/test/dmcrypt/headers.sh"
headers_of_luks1
headers_of_luks2
backups_of luks1
backups_of luks2
cat ours.list theirs.list >crate-of
pack crate-of
: >again.list

# Disks: the crate, one ext4 made by each side, then for each cipher one volume of each.
truncate -s 32M theirs.img
disks=(crate.img ours.img theirs.img)
check 'create ours.img with ext4' serp create -q --pbkdf-force-iterations 1000 --size 32M --fs ext4 ours.img
check 'put a file into it' inside ours.img sh -c 'seq 200000 >numbers'
n=0
while read -r cipher bits hash; do
	check "create and import: $cipher $bits $hash" eval \
		"create --size 3M --cipher $cipher --key-size $bits --hash $hash ours-$n.img && serp import before ours-$n.img"
	truncate -s 3M "theirs-$n.img"
	disks+=("ours-$n.img" "theirs-$n.img")
	n=$((n + 1))
done <ciphers

in_guest exchange

unpack
open_theirs
pack again.list

check 'our ext4 is clean after the guest' clean_ext4 ours.img
check 'the file that the guest changed' inside ours.img sh -c '{ seq 200000; echo changed; } | cmp - numbers'
check 'the file that the guest added' inside ours.img grep -qx 'hello from dm-crypt' reply
check 'ours.img verifies' serp verify ours.img
check 'the file in the ext4 of the guest' inside theirs.img sh -c 'seq 300000 | cmp - numbers'
check 'change the ext4 of the guest' inside theirs.img sh -c 'echo changed >>numbers && echo "hello from serpcrypt" >reply'
check 'theirs.img verifies' serp verify theirs.img
n=0
while read -r cipher bits hash; do
	check "what dm-crypt wrote to ours: $cipher $bits $hash" exports_to "ours-$n.img" after
	check "export theirs: $cipher $bits $hash" exports_to "theirs-$n.img" before
	check "import into theirs: $cipher $bits $hash" serp import after "theirs-$n.img"
	n=$((n + 1))
done <ciphers

in_guest read-back

failed=$(grep -c '^FAIL' log) || true
printf '\n%s passed, %s failed\n' "$(grep -c '^ok ' log)" "$failed"
[ "$failed" = 0 ]
