# Finds what tests left behind; sourced. Between watch_for_leftovers and
# no_leftovers everything runs with a temporary folder and an environment
# variable of its own, by which its files and processes are known. Mounts, loop
# devices and open containers are compared with those that there were before.

watch_for_leftovers() {
	leftovers_before=$(mounts_loops_containers)
	leftovers_tmp=$(mktemp -d "${TMPDIR:-/tmp}/serpcrypt-test.XXXXXX")
	chmod 1777 "$leftovers_tmp" # for tests that become another user
	export TMPDIR=$leftovers_tmp SERPCRYPT_TEST_RUN=$leftovers_tmp
}

# no_leftovers fails, and lists them, if there are any after some seconds of grace.
no_leftovers() {
	local found try
	for try in {1..10}; do
		found=$(leftovers)
		if [ -z "$found" ]; then
			rmdir "$leftovers_tmp"
			return 0
		fi
		sleep 0.5
	done
	say "left behind:" "$found"
	return 1
}

leftovers() {
	diff <(echo "$leftovers_before") <(mounts_loops_containers) | sed -n 's/^> /  /p'
	processes
	find "$leftovers_tmp" -xdev -mindepth 1 -maxdepth 1 -printf '  file %p\n'
}

# Whoever opens the first container here makes .lock, which then stays.
mounts_loops_containers() {
	local f
	awk '/serpcrypt/ { print "mount " $5 }' /proc/self/mountinfo
	for f in /sys/block/loop*/loop/backing_file; do
		[ ! -e "$f" ] || sed -n "/serpcrypt/s|^|loop device $(cut -d/ -f4 <<<"$f") on |p" "$f"
	done
	find /run/serpcrypt "${XDG_RUNTIME_DIR:-/nowhere}/serpcrypt" "/tmp/serpcrypt-$(id -u)" \
		-xdev -mindepth 1 -maxdepth 1 ! -name .lock -printf 'open container %p\n' 2>/dev/null || true
}

# processes lists those of this run: by their environment, or, where that cannot
# be read, by their program.
processes() {
	local p
	for p in /proc/[0-9]*; do
		if tr '\0' '\n' 2>/dev/null <"$p/environ" | grep -qxF "SERPCRYPT_TEST_RUN=$leftovers_tmp" ||
			[[ $(readlink "$p/exe") == "$leftovers_tmp"/* ]]; then
			echo "  process ${p#/proc/}: $(tr '\0' ' ' 2>/dev/null <"$p/cmdline")"
		fi
	done
} 2>/dev/null
