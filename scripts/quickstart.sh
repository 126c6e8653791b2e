#!/bin/bash
# Builds bin/serpcrypt and shows a container's whole life with it: made, opened,
# written, closed, opened again, read, closed, verified. All of it happens in a
# temporary folder that is gone afterwards. As root the kernel mounts the file
# system; an ordinary user gets it by fuse2fs, or, where that is not installed,
# the bare volume as one file.
. "$(dirname "$0")/common.sh"

need_go
need_packages fusermount3=fuse3 mkfs.ext4=e2fsprogs cmp=diffutils
need_fuse

say "Building bin/serpcrypt (the first time, Go fetches and compiles what it is made of)"
build
say "  $("$root/bin/serpcrypt" --version)"
PATH=$root/bin:$PATH

passphrase='only for this demonstration'
folder=$(mktemp -d "${TMPDIR:-/tmp}/serpcrypt-quickstart.XXXXXX")
cd "$folder"

tidy() {
	local rc=$?
	trap - EXIT
	cd /
	if grep -q " $folder/" /proc/self/mounts; then
		serpcrypt close "$folder/mnt" >/dev/null 2>&1 || true
	fi
	if grep -q " $folder/" /proc/self/mounts; then
		say "error: $folder is still mounted, so it stays; to end it: serpcrypt close $folder/mnt" >&2
		exit 1
	fi
	rm -rf "$folder"
	exit $rc
}
trap tidy EXIT
trap 'exit 130' INT TERM HUP

step() { printf '\n== %s\n' "$*"; }

# run shows a command line and what it says; stdin is the passphrase.
run() {
	printf '$ %s\n' "$*"
	bash -c "$*" 2>&1 <<<"$passphrase" | sed 's/^/  /'
}

if [ "$(id -u)" = 0 ] || command -v fuse2fs >/dev/null; then
	fs='--fs ext4' raw='' file=mnt/letter.txt
	put="cp letter.txt $file" get="cmp letter.txt $file && cat $file"
else
	say "fuse2fs is not installed: showing the bare volume as a file instead of an ext4 file system"
	fs='' raw='--raw ' file=mnt/volume
	put="dd if=letter.txt of=$file bs=4096 conv=notrunc,fsync status=none"
	get="cmp -n \$(stat -c %s letter.txt) letter.txt $file && head -n 1 $file"
fi
mkdir mnt
say "Dear diary, today is $(date '+%A, %-d %B %Y')." >letter.txt
say "(In $folder; each command reads the passphrase '$passphrase' from its standard input.)"

step 'Make a container of 32 MiB'
run "serpcrypt create --size 32M${fs:+ $fs} box.img"
step 'Open it'
run "serpcrypt open ${raw}box.img mnt"
run 'serpcrypt status'
step 'Put a file into it'
run "$put"
run 'ls -l mnt'
step 'Close it: nothing is readable any more'
run 'serpcrypt close mnt'
run 'ls -l mnt'
run '! grep -c diary box.img'
step 'Open it again and read'
run "serpcrypt open ${raw}box.img mnt"
run "$get"
run 'serpcrypt close mnt'
step 'Verify all of it'
run 'serpcrypt verify box.img'

say
say "It works. Next: bin/serpcrypt help, and README.md."
