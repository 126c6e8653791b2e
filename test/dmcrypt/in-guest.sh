#!/bin/bash
# Runs in the emulated machine: the other side of run.sh, which says what lies on
# the disks. Prints the same "ok" and "FAIL" lines.

disks=(/dev/vd[a-z])
crate=${disks[0]} ours=${disks[1]} theirs=${disks[2]}
disks=("${disks[@]:3}")

check() {
	local what=$1 said
	shift
	if said=$("$@" 2>&1); then echo "ok   guest: $what"; else printf 'FAIL guest: %s\n%s\n' "$what" "$said"; fi
}
mapped() { # mapped DISK COMMAND... runs COMMAND while /dev/mapper/it is DISK's volume
	local disk=$1 rc=0
	shift
	cryptsetup open --key-file /in/passphrase "$disk" it || return
	"$@" || rc=$?
	cryptsetup close it && return $rc
}
mounted() { mapped "$1" in_ext4 "$2"; } # mounted DISK SCRIPT runs SCRIPT in the volume's ext4
in_ext4() {
	local rc=0
	e2fsck -fn /dev/mapper/it && mount -t ext4 /dev/mapper/it /mnt || return
	(cd /mnt && eval "$1") || rc=$?
	umount /mnt && return $rc
}
luks_format() { # luks_format DISK CIPHER BITS HASH
	cryptsetup -q luksFormat --type luks1 --cipher "$2" --key-size "$3" --hash "$4" \
		--pbkdf-force-iterations 1000 --key-file "$5" "$1"
}
holds() { cmp -n "$(stat -c %s "$1")" "$1" /dev/mapper/it; }
write() { dd if="$1" of=/dev/mapper/it bs=64k conv=fsync; }

format_with_slots() { # the passphrase opens slot 3 only; slot 0 is gone
	printf other >/tmp/other
	luks_format "$theirs" serpent-xts-plain64 512 sha1 /tmp/other &&
		cryptsetup -q luksAddKey --key-file /tmp/other --key-slot 3 --pbkdf-force-iterations 1000 "$theirs" /in/passphrase &&
		cryptsetup -q luksKillSlot --key-file /in/passphrase "$theirs" 0
}

exchange() {
	local n=0 cipher
	echo "guest: $(uname -sr), $(cryptsetup --version | cut -d' ' -f1,2)"
	check 'our header by cryptsetup isLuks' cryptsetup isLuks --type luks2 "$ours"
	check 'the file in our ext4' mounted "$ours" 'seq 200000 | cmp - numbers'
	check 'change it' mounted "$ours" 'echo changed >>numbers && echo "hello from dm-crypt" >reply'
	check 'luksFormat with slots' format_with_slots
	check 'mkfs.ext4' mapped "$theirs" mkfs.ext4 -q /dev/mapper/it
	check 'put a file into it' mounted "$theirs" 'seq 300000 >numbers'
	while read -r cipher; do
		check "open ours: $cipher" mapped "${disks[n]}" holds /in/before
		check "write ours: $cipher" mapped "${disks[n]}" write /in/after
		check "luksFormat: $cipher" luks_format "${disks[n + 1]}" $cipher /in/passphrase
		check "write theirs: $cipher" mapped "${disks[n + 1]}" write /in/before
		n=$((n + 2))
	done </in/ciphers
}

read_back() {
	local n=0 cipher
	check 'the file that serpcrypt changed in the ext4' mounted "$theirs" '{ seq 300000; echo changed; } | cmp - numbers'
	check 'the file that serpcrypt added' mounted "$theirs" 'grep -qx "hello from serpcrypt" reply'
	while read -r cipher; do
		check "what serpcrypt wrote to theirs: $cipher" mapped "${disks[n + 1]}" holds /in/after
		n=$((n + 2))
	done </in/ciphers
}

. /in/headers-in-guest.sh
unpack "$crate"
case $(cat /in/stage) in
exchange)
	exchange
	sound_all /in/ours.list
	change_theirs
	;;
read-back)
	read_back
	sound_all /in/again.list
	;;
esac
