#!/bin/bash
# Writes to open containers with fio, which puts a checksum into every block and
# verifies what it then reads: in sequence and at random, in requests of 4 KiB to
# 1 MiB, 1 to 32 at a time, to the raw volume and to files in ext4 and xfs, with
# xts and cbc in sectors of 512 and 4096 bytes. Then each container is opened
# anew, and fio verifies everything once more as the portable code decrypts it: so
# it also finds errors that cancel each other out when the same code writes and
# reads. Prints a line for each check, and a summary.
#
# run.sh quick   a selection, in half a minute
#
# SERPCRYPT_NO_SKIP=1   what cannot be tested here fails instead
. "$(dirname "$0")/../../scripts/common.sh"

case ${1-} in
'') quick= ;;
quick) quick=1 ;;
*) die 'usage: run.sh [quick]' ;;
esac
need_go
need_packages fio=fio fusermount3=fuse3 losetup=mount mkfs.ext4=e2fsprogs mkfs.xfs=xfsprogs

tally=${SERPCRYPT_TALLY:-/dev/null}
limit=120 # seconds for a run of fio; most take less than one
passed=0 failed=0 skipped=0

work=$(mktemp -d "${TMPDIR:-/tmp}/serpcrypt-fio.XXXXXX")
tidy() {
	local rc=$?
	trap - EXIT
	cd /
	if mounted && ! timeout 60 serpcrypt close "$work/mnt"; then
		kill -9 "$(server)" || true
		serpcrypt close --lazy "$work/mnt" || true
	fi
	if mounted; then
		say "error: $work is still mounted, so it stays" >&2
		exit 1
	fi
	rm -rf --one-file-system "$work"
	exit $rc
}
trap tidy EXIT
trap 'exit 130' INT TERM HUP
mounted() { grep -q " $work/" /proc/self/mounts; }
server() { serpcrypt status --json "$work/mnt" | sed -n 's/.*"pid": \([0-9]*\).*/\1/p'; }

CGO_ENABLED=0 go build -o "$work/serpcrypt" ./cmd/serpcrypt
PATH=$work:$PATH
cd "$work"
mkdir mnt

failure() {
	say "FAIL $1"
	say "$2"
	echo "! fio: $1" >>"$tally"
	failed=$((failed + 1))
}

# check WHAT COMMAND... prints one line, and what COMMAND said if it fails.
check() {
	local what=$1 said
	shift
	if said=$("$@" 2>&1); then
		say "ok   $what"
		passed=$((passed + 1))
	else
		failure "$what" "$(head -n 12 <<<"$said")"
		return 1
	fi
}

skip() {
	if [ "${SERPCRYPT_NO_SKIP-}" = 1 ]; then
		failure "$1" "SERPCRYPT_NO_SKIP=1 forbids to skip: $2"
	else
		say "skip $1: $2"
		skipped=$((skipped + 1))
	fi
}

# lacking PLACE says why nothing can be written to PLACE here, if so.
lacking() {
	if [ ! -r /dev/fuse ] || [ ! -w /dev/fuse ]; then
		echo "there is no /dev/fuse that $(id -un) may use"
	elif [ "$1" = raw ]; then
		return
	elif [ "$(id -u)" != 0 ]; then
		[ "$1" = ext4 ] && command -v fuse2fs >/dev/null || echo "$(id -un) has no program that mounts $1"
	elif [ ! -e /dev/loop-control ]; then
		echo 'there are no loop devices'
	elif ! grep -qw "$1" /proc/filesystems && ! modprobe -q "$1" 2>/dev/null; then
		echo "the kernel has no $1"
	fi
}

# within_limit COMMAND... kills the server when the time is over: a COMMAND that
# waits for it where no signal gets then ends with an error.
within_limit() {
	local server watchdog rc=0
	server=$(server)
	{
		trap 'kill $!' TERM
		sleep $limit &
		wait $! && say "the server is killed after $limit s" && kill -9 "$server"
	} &
	watchdog=$!
	"$@" || rc=$?
	kill $watchdog 2>/dev/null || true
	wait $watchdog || true
	return $rc
}

# fio_verifies OPTION... is fio without its report.
fio_verifies() {
	within_limit fio --verify=crc32c --verify_fatal=1 --verify_state_save=0 --direct=1 --output=fio.out "$@"
}

# A target is a container, and a place to write to in it. Each pattern and size of
# request has a file of its own there, or a part of the raw volume.
declare -A where     # as options of fio, by pattern and size
declare -A read_back # likewise: what to verify in the end
volume_used=0        # MiB

# writes PATTERN REQUEST MIB DEPTH OPTION... is a check. The engines take turns.
writes() {
	local pattern=$1 request=$2 mib=$3 depth=$4 name=$1-$2 engine size=--bs=$2
	shift 4
	[[ $request != *-* ]] || size=--bsrange=$request
	engine=${engines[turn++ % ${#engines[@]}]}
	if [ -z "${where[$name]-}" ]; then
		where[$name]="--filename=mnt/$name --size=${mib}m"
		if [ "$place" = raw ]; then
			where[$name]="--filename=mnt/volume --offset=${volume_used}m --size=${mib}m"
			volume_used=$((volume_used + mib))
		fi
	fi
	check "$target: $pattern $request x$depth, $engine${*:+, $*}" fio_verifies --name="$name" ${where[$name]} \
		--rw="$pattern" $size --iodepth="$depth" --ioengine="$engine" "$@" || true
	read_back[$name]="--name=$name ${where[$name]} --bs=$request"
}

writes_few() {
	writes write 1m 32 4
	writes randwrite 4k 8 32
	writes_otherwise
}

writes_all() {
	local pattern request depth
	for pattern in write randwrite; do
		for request in 4k:8 16k:16 64k:32 256k:32 1m:32; do
			for depth in 1 4 32; do
				writes $pattern "${request%:*}" "${request#*:}" $depth
			done
		done
	done
	writes randwrite 16k 16 32 --verify_backlog=64 # reads in the midst
	writes_otherwise
}

# writes_otherwise makes requests of many sizes, with a checksum every 4 KiB, which
# requests of any size can verify; parts of sectors, many at a time in the same one;
# and, where there is one, it takes the way of the page cache.
writes_otherwise() {
	writes randwrite 4k-1m 32 16 --verify_interval=4k
	read_back[randwrite-4k-1m]="--name=many ${where[randwrite-4k-1m]} --bs=64k --verify_interval=4k"
	if [ "$place" = raw ]; then
		writes randwrite 512 1 32
	else
		writes randwrite 8k 16 8 --direct=0 --fsync=64
	fi
}

reads_back() {
	serpcrypt open $raw --readonly --kernel generic box.img mnt <<<x &&
		fio_verifies --rw=read --iodepth=8 --ioengine="${engines[0]}" ${read_back[@]} &&
		serpcrypt close mnt
}

# test_target MODE SECTOR PLACE
test_target() {
	local mode=$1 sector=$2 place=$3 target="$1, sectors of $2 bytes, $3" lacking cipher raw= fs=
	lacking=$(lacking "$place")
	[ -z "$lacking" ] || { skip "$target" "$lacking"; return; }
	case $mode in
	xts) cipher=serpent-xts-plain64 ;;
	cbc) cipher=serpent-cbc-essiv:sha256 ;;
	esac
	if [ "$place" = raw ]; then raw=--raw; else fs="--fs $place"; fi
	where=() read_back=() volume_used=0
	check "$target: create" serpcrypt create -q --force --sparse --pbkdf-force-iterations 1000 \
		--cipher $cipher --sector-size "$sector" --size 448M $fs box.img <<<x || return 0
	check "$target: open" serpcrypt open $raw box.img mnt <<<x || return 0
	"writes_$extent"
	check "$target: close" serpcrypt close mnt || return 0
	check "$target: all of it again, by the portable code" reads_back || ! mounted || serpcrypt close mnt
	[ "$extent" = few ] || [ "$place" = raw ] ||
		check "$target: file system" serpcrypt verify --fsck box.img <<<x || true
}

engines=(libaio io_uring)
turn=0
fio --name=x --filename=x --size=4k --rw=write --ioengine=io_uring --output=fio.out 2>/dev/null || {
	skip io_uring 'the kernel or who started this forbids it'
	engines=(libaio)
}
if [ "$quick" ]; then
	extent=few
	test_target cbc 512 raw
	test_target xts 4096 raw
	test_target cbc 4096 ext4
	test_target xts 512 xfs
else
	extent=all
	for mode in xts cbc; do
		for sector in 512 4096; do
			for place in raw ext4 xfs; do
				test_target $mode $sector $place
			done
		done
	done
fi

printf '\n%s passed, %s failed, %s skipped, in %s s\n' $passed $failed $skipped $SECONDS
echo $passed $failed $skipped >>"$tally"
[ $failed = 0 ]
