# Headers of LUKS1 and LUKS2 that are passed to and fro; sourced by run.sh. All
# containers travel on one disk, the crate.
#
# A list of containers has for each of them: its name, its format, the container
# that has its header or "-", the keys that open it, and those that do not, with
# commas between, or "-". Each holds the content of the file before.

printf one >one
printf two >two
printf three >three
: >ours.list
: >theirs.list
: >commands

sero() { serpcrypt "$@" --key-file one; }
make_base() { # make_base NAME OPTION... makes what is to be changed
	serpcrypt create -q --pbkdf-force-iterations 1000 --key-file one --size 3M "${@:2}" "$1" && sero import before "$1"
}
new_key() { serpcrypt key "$1" -q --pbkdf-force-iterations 1000 --key-file one --new-keyfile two "${@:2}" "$c"; }
remove() { new_key add && sero key remove -q "$c"; }
restore() { serpcrypt header backup "$c" backup && new_key change && serpcrypt header restore -q "$c" backup && rm -f backup; }
configure() { serpcrypt config "$@" "$c"; }
grow() { serpcrypt resize "$c" 5M; }
shrink() { grow && sero resize -q --force "$c" 3M; }
convert() { serpcrypt convert -q --type "$1" "$c"; }
convert_twice() { convert "$1" && convert "$2"; }
poke() { printf "$2" | dd of="$c" bs=1 seek="$1" conv=notrunc status=none; } # poke OFFSET BYTES
repair() { poke "$@" && serpcrypt repair -q --backup damaged "$c" && rm -f damaged; }
detach() {
	serpcrypt create -q --pbkdf-force-iterations 1000 --key-file one --type "$format" --size 2M --header "$c-header" --force "$c" &&
		sero import --header "$c-header" before "$c" && new_key change --header "$c-header"
}

# ours NAME OPENS OPENS-NOT COMMAND... changes a copy of the container base, c, by
# our COMMAND.
ours() {
	c=$format-$1
	cp "$base" "$c"
	check "$format: $1" "${@:4}"
	header=-
	[ ! -e "$c-header" ] || header=$c-header
	check "$format: $1: cryptsetup finds nothing to repair" in_order "${header/#-/$c}"
	if [ "$format $header" = 'luks1 -' ]; then
		check "$format: $1: qemu-img reads it" qemu_reads "$c" "${2%%,*}"
	fi
	echo "$c $format $header $2 $3" >>ours.list
}
qemu_reads() { # qemu_reads CONTAINER KEY
	qemu-img convert --object "secret,id=key,file=$2" -O raw \
		--image-opts "driver=luks,key-secret=key,file.driver=file,file.filename=$1" read-by-qemu &&
		cmp -n "$(stat -c %s before)" before read-by-qemu
}
# in_order CONTAINER is about the header alone, which needs no dm-crypt.
in_order() {
	cp "$1" copy && cryptsetup isLuks --type "$format" copy && cryptsetup luksDump copy &&
		cryptsetup -q -v repair copy && cmp "$1" copy
}
# theirs NAME OPENS OPENS-NOT COMMAND has the guest do it to DISK, a copy of base,
# by cryptsetup's.
theirs() {
	cp "$base" "$format-$1"
	echo "$format-$1 $format - $2 $3" >>theirs.list
	echo "$format-$1 $4" >>commands
}

headers_of() { # headers_of FORMAT OTHER-FORMAT
	local format=$1 quick='--pbkdf pbkdf2 --pbkdf-force-iterations 1000' key='--key-file /in/one'
	local base=$format-base
	check "$format: create" make_base "$base" --type "$format"
	ours created one two true
	ours key-added one,two - new_key add
	ours key-added-6 one,two - new_key add -S 6
	ours key-changed two one new_key change
	ours key-removed two one remove
	ours restored one two restore
	ours uuid one two configure --uuid ''
	ours grown one two grow
	ours shrunk one two shrink
	ours detached two one detach

	theirs cs-key-added one,two - "cryptsetup -q luksAddKey $quick $key DISK /in/two"
	theirs cs-key-changed two one "cryptsetup -q luksChangeKey $quick $key DISK /in/two"
	theirs cs-key-removed two one "cryptsetup -q luksAddKey $quick $key DISK /in/two && cryptsetup -q luksRemoveKey DISK /in/one"
	theirs cs-slot-killed two one "cryptsetup -q luksAddKey $quick $key --key-slot 5 DISK /in/two && cryptsetup -q luksKillSlot --key-file /in/two DISK 0"
	theirs cs-restored one two "cryptsetup luksHeaderBackup DISK --header-backup-file /tmp/$format && cryptsetup -q luksChangeKey $quick $key DISK /in/two && cryptsetup -q luksHeaderRestore DISK --header-backup-file /tmp/$format && rm -f /tmp/$format"
	theirs cs-uuid one two "cryptsetup -q luksUUID --uuid 6ba7b811-9dad-11d1-80b4-00c04fd430c8 DISK"

	# What can be converted has sectors of 512 bytes.
	base=$format-from-$2 c=$base
	check "$2: create, 512-byte sectors" make_base "$base" --type "$2" $([ "$2" = luks1 ] || echo --sector-size 512)
	check "$2: add a key to it" new_key add -S 5
	ours converted one,two - convert "$format"
	base=$format-converted ours converted-key-changed two one key_changed_after_removal
	theirs cs-converted one,two - "cryptsetup -q convert --type $format DISK"
	format=$2 base=$2-twice c=$2-twice
	cp "$1-from-$2" "$base"
	ours converted-twice one,two - convert_twice "$1" "$2"
}
key_changed_after_removal() { serpcrypt key remove -q -S 5 "$c" && new_key change; }

headers_of_luks1() {
	local format=luks1 base=luks1-base
	headers_of luks1 luks2
	ours repaired one two repair 256 '\x12\x34\x56\x78' # key slot 1 neither in use nor free
}

headers_of_luks2() {
	local format=luks2 base=luks2-base quick='--pbkdf pbkdf2 --pbkdf-force-iterations 1000' key='--key-file /in/one'
	local argon2='--pbkdf-force-iterations 4 --pbkdf-memory 64 --pbkdf-parallel'
	headers_of luks2 luks1
	ours texts one two configure --label holiday --subsystem photos
	ours primary-repaired one two repair 0 '\0\0\0\0'
	ours secondary-repaired one two repair 16400 '\377'
	ours argon2id-added one,two - serpcrypt key add -q --key-file one --new-keyfile two --pbkdf argon2id $argon2 2 luks2-argon2id-added
	ours argon2i-changed two one serpcrypt key change -q --key-file one --new-keyfile two --pbkdf argon2i $argon2 1 luks2-argon2i-changed
	ours made-cbc one two make_base luks2-made-cbc --force --cipher serpent-cbc-essiv:sha256 --hash sha512 --sector-size 4096
	ours made-lrw one two make_base luks2-made-lrw --force --cipher serpent-lrw-benbi --hash sha256 --sector-size 512
	ours made-xts-256 one two make_base luks2-made-xts-256 --force --key-size 256 --sector-size 2048 --pbkdf argon2id --pbkdf-memory 64 --pbkdf-force-iterations 4
	theirs cs-texts one two "cryptsetup -q config --label theirs --subsystem others DISK"
	theirs cs-prefers one two "cryptsetup -q config --priority prefer --key-slot 0 DISK"
	theirs cs-argon2id one,two - "cryptsetup -q luksAddKey --pbkdf argon2id $argon2 2 $key DISK /in/two"
	theirs cs-aes-slot one,two - "cryptsetup -q luksAddKey $quick --keyslot-cipher aes-xts-plain64 --keyslot-key-size 512 $key DISK /in/two"
	theirs cs-token one two "echo '{\"type\":\"ours\",\"keyslots\":[\"0\"],\"x\":[1,{\"y\":null}]}' | cryptsetup token import DISK"

	# Containers of cryptsetup's own making.
	local small='--luks2-metadata-size 16k --luks2-keyslots-size 1m'
	theirs cs-made one two "cryptsetup -q luksFormat --type luks2 --cipher serpent-xts-plain64 --key-size 512 $quick $small $key DISK && fill DISK"
	theirs cs-made-argon2i one two "cryptsetup -q luksFormat --type luks2 --cipher serpent-xts-plain64 --key-size 256 --pbkdf argon2i $argon2 1 --sector-size 4096 $small $key DISK && fill DISK"
	theirs cs-made-cbc one two "cryptsetup -q luksFormat --type luks2 --cipher serpent-cbc-essiv:sha256 --key-size 256 $quick --hash sha512 --sector-size 2048 $small $key DISK && fill DISK"
}

# backups_of FORMAT has each side restore what the other has backed up.
backups_of() {
	local format=$1 base=$1-base c=$1-restored-across
	cp "$base" "$c"
	check "$format: cryptsetup restores our backup" eval 'serpcrypt header backup "$c" backup && new_key change &&
		cryptsetup -q luksHeaderRestore "$c" --header-backup-file backup && in_order "$c" && opens_as_said "$c" one two && exports_by one "$c" before'
	rm -f backup
	check "$format: we restore the backup of cryptsetup" eval 'cryptsetup luksHeaderBackup "$c" --header-backup-file backup && new_key change &&
		serpcrypt header restore -q "$c" backup && in_order "$c" && opens_as_said "$c" one two && exports_by one "$c" before'
	rm -f backup
}

# pack LIST puts the containers of a list into the crate, which crate.list tells of.
pack() {
	local at=0 sectors name
	: >crate.list
	: >crate.img
	for name in $(awk '{ print $1; if ($3 != "-") print $3 }' "$1"); do
		sectors=$(($(stat -c %s "$name") / 512))
		echo "$name $at $sectors" >>crate.list
		cat "$name" >>crate.img
		at=$((at + sectors))
	done
}
unpack() {
	local at sectors name
	while read -r name at sectors; do
		dd if=crate.img of="$name" bs=512 skip="$at" count="$sectors" status=none
	done <crate.list
}

# open_theirs opens each container of theirs.list by its keys, reads and changes it.
open_theirs() {
	local name format header opens not
	: >again.list
	while read -r name format header opens not; do
		check "open $name" opens_as_said "$name" "$opens" "${not/#-/}"
		check "export $name" exports_by "${opens%%,*}" "$name" before
		check "add a key to $name" serpcrypt key add -q --pbkdf-force-iterations 1000 --key-file "${opens%%,*}" --new-keyfile three "$name"
		echo "$name $format - ${opens%%,*},three $not" >>again.list
	done <theirs.list
	check 'the token that cryptsetup has made' eval 'serpcrypt dump luks2-cs-token | grep -q "ours"'
}
opens_as_said() { # opens_as_said CONTAINER OPENS OPENS-NOT
	local key rc
	for key in ${2//,/ }; do serpcrypt key test --key-file "$key" "$1" || return; done
	for key in ${3//,/ }; do
		rc=0
		serpcrypt key test --key-file "$key" "$1" || rc=$?
		[ $rc = 2 ] || { echo "$key: exit code $rc, want 2"; return 1; }
	done
}
exports_by() { rm -f raw && serpcrypt export --key-file "$1" "$2" raw && cmp -n "$(stat -c %s "$3")" raw "$3"; }
