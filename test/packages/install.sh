#!/bin/bash
# install.sh ROOT DEB VERSION - installs a package into the system in the folder
# ROOT, looks whether what it brings works, and removes it: then every file is as
# it was. ROOT may be changed.
. "$(dirname "$0")/../../scripts/common.sh"

[ $# = 3 ] || die "usage: install.sh ROOT DEB VERSION"
guest=$1 deb=$2 version=$3
inside() { chroot "$guest" env -u TMPDIR PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }

# Left out is what the system writes about its packages, and what is gone when it ends.
files() {
	find "$guest" -xdev \( -path "$guest/var/lib/dpkg" -o -path "$guest/var/cache/man" -o -path "$guest/var/log" -o -path "$guest/run" -o -path "$guest/tmp" \) -prune \
		-o -printf '%P %y %m %u %g %l\n' | sort
}

# expect TEXT COMMAND... - the output of a command has a line with TEXT in it.
expect() {
	local said
	said=$(inside "${@:2}" 2>&1) || die "in the chroot, ${*:2}: $said"
	grep -qF -- "$1" <<<"$said" || die "in the chroot, ${*:2} has no line with '$1': $said"
}

mount -t proc none "$guest/proc"
files >"$guest/tmp/before"
cp "$deb" "$guest/tmp/serpcrypt.deb"
inside dpkg -i /tmp/serpcrypt.deb >"$guest/tmp/log" 2>&1 || die "dpkg -i: $(cat "$guest/tmp/log")"
! cmp -s "$guest/tmp/before" <(files) || die "nothing was installed"

expect "serpcrypt $version" serpcrypt --version
expect 'encrypted containers with the Serpent cipher' man serpcrypt
expect 'idle-timeout=DURATION' man mount.serpcrypt
expect 'LoadCredentialEncrypted' man 7 serpcrypt-boot
expect 'serpcrypt-open (1)' man -k serpcrypt
expect ' serpcrypt' bash -c '. /usr/share/bash-completion/completions/serpcrypt && complete -p serpcrypt'
expect '#compdef serpcrypt' cat /usr/share/zsh/vendor-completions/_serpcrypt
expect 'complete ' cat /usr/share/fish/vendor_completions.d/serpcrypt.fish
expect 'Redistribution and use' cat /usr/share/doc/serpcrypt/copyright
expect 'usage: mount.serpcrypt' sh -c '/sbin/mount.serpcrypt || true'
expect 'not a dynamic executable' sh -c 'ldd /usr/bin/serpcrypt || true'
for manager in system user; do
	said=$(inside env HOME=/root XDG_RUNTIME_DIR=/run systemd-analyze "--$manager" --man=yes verify "/usr/lib/systemd/$manager/serpcrypt@.service" 2>&1) && [ -z "$said" ] ||
		die "systemd-analyze verify, $manager: $said"
done
said=$(inside dpkg --verify serpcrypt) && [ -z "$said" ] || die "dpkg --verify: $said"
expect 'Made /tmp/box.luks' sh -c 'echo secret | serpcrypt create -q --size 32M --sparse --pbkdf-force-iterations 1000 /tmp/box.luks'

inside dpkg -r serpcrypt >"$guest/tmp/log" 2>&1 || die "dpkg -r: $(cat "$guest/tmp/log")"
files | diff "$guest/tmp/before" - || die "dpkg -r has not left everything as it was"
