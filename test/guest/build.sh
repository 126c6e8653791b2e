#!/bin/bash
# build.sh FOLDER - puts into FOLDER the kernel (vmlinux) and the first file
# system (initrd.cpio) of a small machine with the real dm-crypt and cryptsetup,
# which run.sh starts. Where FOLDER is up to date, it does nothing.
#
# For Debian on amd64, whose kernel package is taken. Kernel and busybox are only
# downloaded and unpacked, never installed; the rest is copied from this system.
. "$(dirname "$0")/../../scripts/common.sh"

[ $# = 1 ] || die "usage: build.sh FOLDER"
mkdir -p "$1"
out=$(cd "$1" && pwd)
grep -qx 'ID=debian' /etc/os-release && [ "$(dpkg --print-architecture)" = amd64 ] ||
	die "the emulated machine takes its kernel from Debian on amd64, and this is another system"

need_packages qemu-system-x86_64=qemu-system-x86 cryptsetup=cryptsetup-bin dmsetup=dmsetup \
	mkfs.ext4=e2fsprogs blockdev=util-linux modprobe=kmod cpio=cpio xz=xz-utils

stamp="$(sha256sum <"${BASH_SOURCE[0]}") $(dpkg-query -W cryptsetup-bin e2fsprogs | xargs)"
if [ -s "$out/initrd.cpio" ] && [ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ]; then
	exit 0
fi
say "Building the guest in $out"
rm -f "$out/stamp"
work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# ---- the kernel and its modules ----------------------------------------------
download() {
	local kernel
	kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: *\(linux-image-[0-9].*\)/\1/p')
	(cd "$work" && apt-get -q download "$kernel" busybox-static)
} >"$work/log" 2>&1
if ! download; then # the package lists may be old, or not there yet
	[ "$(id -u)" != 0 ] || apt-get -q update >/dev/null 2>&1 || true
	download || { cat "$work/log" >&2; die "cannot download the kernel package" "as root: apt-get update"; }
fi
dpkg -x "$work"/linux-image-*.deb "$work/kernel"
dpkg -x "$work"/busybox-static*.deb "$work/busybox"
version=$(ls "$work/kernel/lib/modules")

# The payload of a bzImage (Documentation/arch/x86/boot.rst): its place in the
# part behind the setup sectors, and its length. Unpacked here, it need not be
# unpacked by the emulated processor.
image=$work/kernel/boot/vmlinuz-$version
field() { od -An -v -t "u$2" -j "$1" -N "$2" "$image" | tr -d ' '; }
start=$((($(field 0x1f1 1) + 1) * 512 + $(field 0x248 4)))
tail -c +$((start + 1)) "$image" | head -c "$(field 0x24c 4)" >"$work/payload" || true
xz -dc --single-stream "$work/payload" >"$work/vmlinux" 2>/dev/null || cp "$image" "$work/vmlinux"

# ---- the first file system ---------------------------------------------------
guest=$work/guest
mkdir -p "$guest"/{bin,sbin,usr/bin,usr/sbin,usr/lib,lib,lib64,etc,proc,sys,dev,run,tmp,in,mnt,root,var}
ln -s /run "$guest/var/run"
echo 'root:x:0:0:root:/root:/bin/sh' >"$guest/etc/passwd"
ln -s /proc/mounts "$guest/etc/mtab"

# copy PROGRAM copies it, where its links point to, with the libraries it loads.
copy() {
	local f
	for f in "$(command -v "$1")" $(ldd "$(command -v "$1")" | grep -o '/[^ ]*'); do
		[ -e "$guest$f" ] || { mkdir -p "$guest$(dirname "$f")" && cp -L "$f" "$guest$f"; }
	done
}
cp "$work/busybox/bin/busybox" "$guest/bin/"
for applet in $("$guest/bin/busybox" --list); do
	[ "$applet" = busybox ] || ln -s busybox "$guest/bin/$applet"
done
# Debian's busybox sh prefers its own applets to PATH, so bash runs the scripts.
rm "$guest"/bin/{sh,modprobe,dmsetup,blockdev} 2>/dev/null || true
for program in cryptsetup dmsetup blockdev mkfs.ext4 e2fsck bash kmod; do copy "$program"; done
# Threads of Argon2 load this when they end.
libgcc=$(ldconfig -p | grep -o '/[^ ]*/libgcc_s.so.1$' | head -n 1)
mkdir -p "$guest$(dirname "$libgcc")" && cp -L "$libgcc" "$guest$libgcc"
ln -s "$(command -v bash)" "$guest/bin/sh"
[ -e "$guest/bin/bash" ] || ln -s "$(command -v bash)" "$guest/bin/bash"
ln -s "$(command -v kmod)" "$guest/sbin/modprobe"

depmod -b "$work/kernel" "$version"
(
	cd "$work/kernel"
	find lib/modules/*/kernel/{crypto,arch/x86/crypto,lib/crypto} -name '*.ko*' -printf '%f\n' |
		sed 's/\.ko.*//' | sort >"$work/modules"
	for module in $(cat "$work/modules") virtio_pci virtio_blk virtio_rng dm_crypt ext4; do
		modprobe -d . -S "$version" --show-depends "$module"
	done | sed -n 's|^insmod .*/\(lib/modules/[^ ]*\).*|\1|p' | sort -u | xargs cp --parents -t "$guest"
	cp --parents lib/modules/*/modules.{order,builtin,builtin.modinfo} "$guest"
)
depmod -b "$guest" "$version"

cat >"$guest/init" <<'INIT'
#!/bin/sh
# First process of the guest: runs /in/script. What it says goes to the first
# serial line, its exit status, in digits, to the second.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb
export DM_DISABLE_UDEV=1 # there is none: libdevmapper makes the device nodes
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
ln -sf /proc/self/fd /dev/fd
mkdir -p /run/cryptsetup /run/lock
stty -F /dev/ttyS0 raw -echo
stty -F /dev/ttyS1 raw -echo
for m in virtio_pci virtio_blk virtio_rng dm_mod dm_crypt ext4; do modprobe -q $m; done
want=$(sed -n 's/.*guest\.disks=\([0-9]*\).*/\1/p' /proc/cmdline)
for try in $(seq 50); do # virtio_blk finds its disks in the background
	[ "$(ls -d /sys/block/vd* 2>/dev/null | wc -l)" -lt "$want" ] || break
	sleep 0.1
done
cd /root
setsid /bin/sh /in/script </dev/null >/dev/ttyS0 2>&1
status=$?
sync
echo 0 >/proc/sys/kernel/printk # nothing about the power in the output
stty -F /dev/ttyS0 raw # waits until the output is out
echo $status >/dev/ttyS1
stty -F /dev/ttyS1 raw
poweroff -f
INIT
chmod 755 "$guest/init"
(cd "$guest" && find . -print0 | sort -z | cpio --null --quiet -o -H newc -R 0:0) >"$work/initrd.cpio"

mv -f "$work"/{vmlinux,initrd.cpio} "$out/"
echo "$stamp" >"$out/stamp"
say "Built it: Linux $version, $(cryptsetup --version | cut -d' ' -f1,2), $(du -m "$out/initrd.cpio" | cut -f1) MB"
