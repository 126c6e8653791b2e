#!/bin/bash
# run.sh [-t SECONDS] [-a PARAMETER] [-f FILE]... FOLDER SCRIPT [DISK...]
#
# Runs SCRIPT, by bash as root, in the machine that build.sh put into FOLDER,
# with one more PARAMETER for its kernel. Its output streams to stdout, and its
# exit status is that of this script. DISK is a raw image of whole 512-byte
# sectors: /dev/vda, /dev/vdb ... in the guest, written through. FILE is found
# there as /in/ and its base name. After SECONDS (300), boot included, the
# machine is ended: exit status 124; 125 if it dies without a status.
#
# No KVM is needed: two emulated processors, with AVX2, and 2 GB of memory.
set -u

limit=300 parameter= files=()
while getopts t:a:f: option; do
	case $option in
	t) limit=$OPTARG ;;
	a) parameter=$OPTARG ;;
	f) files+=("$OPTARG") ;;
	*) exit 125 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || { echo "usage: run.sh [-t SECONDS] [-a PARAMETER] [-f FILE]... FOLDER SCRIPT [DISK...]" >&2; exit 125; }
folder=$1 script=$2
shift 2

work=$(mktemp -d) || exit 125
qemu=
tidy() {
	[ -z "$qemu" ] || { kill "$qemu" && wait "$qemu"; } 2>/dev/null
	rm -rf "$work"
}
trap tidy EXIT
trap 'exit 130' INT TERM HUP

# Script and files travel in a second archive behind the first; the kernel
# unpacks both.
mkdir "$work/in" &&
	cp "$script" "$work/in/script" &&
	{ [ ${#files[@]} = 0 ] || cp "${files[@]}" "$work/in/"; } &&
	{ cat "$folder/initrd.cpio" && (cd "$work" && find in | cpio --quiet -o -H newc -R 0:0); } >"$work/initrd" ||
	exit 125

arguments=(-accel "tcg,thread=multi" -smp 2 -m 2G -cpu max -M pc
	-nodefaults -no-user-config -no-reboot -display none -monitor none
	-kernel "$folder/vmlinux" -initrd "$work/initrd"
	-append "console=ttyS0 loglevel=1 panic=-1 mitigations=off random.trust_cpu=on guest.disks=$# $parameter"
	-chardev "stdio,id=out,signal=off" -serial chardev:out -serial "file:$work/status"
	-device virtio-rng-pci)
n=0
for disk; do
	[ $(($(stat -Lc %s "$disk") % 512)) = 0 ] || { echo "guest: $disk: not whole sectors" >&2; exit 125; }
	arguments+=(-drive "if=none,id=d$n,format=raw,file=${disk//,/,,}" -device "virtio-blk-pci,drive=d$n")
	n=$((n + 1))
done

timeout -k 5 "$limit" qemu-system-x86_64 "${arguments[@]}" </dev/null &
qemu=$!
wait "$qemu"
rc=$?
qemu=
case $rc in
0) ;;
124 | 137) echo "guest: still running after $limit s" >&2; exit 124 ;;
*) echo "guest: qemu failed: $rc" >&2; exit 125 ;;
esac
status=$(tr -cd 0-9 <"$work/status")
[ -n "$status" ] || { echo "guest: the guest died" >&2; exit 125; }
exit "$status"
