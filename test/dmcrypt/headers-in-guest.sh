# Runs in the emulated machine; sourced by in-guest.sh. The other side of
# headers.sh: each container of the crate is a block device of its name.

unpack() { # unpack CRATE
	local name at sectors
	while read -r name at sectors; do
		dmsetup create "$name" --table "0 $sectors linear $1 $at"
	done </in/crate.list
}

fill() { # fill DISK writes the content that all containers have
	local open
	open=$(basename "$1")-open
	cryptsetup open --key-file /in/one "$1" "$open" && dd if=/in/before of="/dev/mapper/$open" bs=64k conv=fsync &&
		cryptsetup close "$open"
}

# The containers of a list, one for each processor at a time.
change_theirs() {
	local name command
	while read -r name command; do
		check "change $name" eval "${command//DISK//dev/mapper/$name}" &
		let_one_end
	done </in/commands
	wait
}
sound_all() { # sound_all LIST
	local name format header opens not
	while read -r name format header opens not; do
		check "$name: keys and content" sound "$name" "/dev/mapper/${header/#-/$name}" "$opens" "${not/#-/}" &
		let_one_end
	done <"$1"
	wait
}
let_one_end() { [ "$(jobs -rp | wc -l)" -lt "$(nproc)" ] || wait -n; }
sound() { # sound NAME HEADER-DISK OPENS OPENS-NOT
	local disk=/dev/mapper/$1 open=$1-open key keys rc
	IFS=, read -ra keys <<<"$3"
	for key in "${keys[@]:1}"; do
		cryptsetup open --test-passphrase --header "$2" --key-file "/in/$key" "$disk" || { echo "$key opens nothing"; return 1; }
	done
	for key in ${4//,/ }; do
		rc=0
		cryptsetup open --test-passphrase --header "$2" --key-file "/in/$key" "$disk" || rc=$?
		[ $rc = 2 ] || { echo "$key: exit code $rc, want 2"; return 1; }
	done
	cryptsetup open --header "$2" --key-file "/in/${keys[0]}" "$disk" "$open" || return
	rc=0
	cmp -n "$(stat -c %s /in/before)" /in/before "/dev/mapper/$open" || rc=$?
	cryptsetup close "$open" && return $rc
}
