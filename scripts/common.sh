# What the scripts share; sourced, not run. Goes to the top of the repository
# and defines: the tools, messages, the check for Go, and the installing of
# packages.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# The tools of root are missing from a user's PATH on Debian, and Go from that
# of many who installed it by hand.
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/go/bin
export LC_ALL=C.UTF-8

# The Go programs that the scripts run, for "go run".
STATICCHECK=honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK=golang.org/x/vuln/cmd/govulncheck@v1.9.0
DEADCODE=golang.org/x/tools/cmd/deadcode@v0.52.0
NFPM=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.48.0

say() { printf '%s\n' "$*"; }
die() { printf 'error: %s\n' "$1" >&2; shift; [ $# = 0 ] || printf 'hint: %s\n' "$@" >&2; exit 1; }

# need_go ends the script unless there is a Go that can build this module.
need_go() {
	local want have
	want=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)
	command -v go >/dev/null ||
		die "there is no go command, and Go $want or later is needed to build serpcrypt" \
			"install it as https://go.dev/doc/install says; Debian and Ubuntu may ship an older one"
	# In this folder first: a Go that fetches the toolchain it is asked for will do.
	have=$(go env GOVERSION 2>/dev/null) || have=
	[ -n "$have" ] || have=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
	[ "$(printf '%s\n' "$want" "${have#go}" | sort -V | head -n 1)" = "$want" ] ||
		die "Go $want or later is needed, and $(command -v go) is $have" \
			"go.mod asks for $want because golang.org/x/crypto and golang.org/x/sys do; https://go.dev/doc/install has a newer Go"
}

# need_packages WHAT=PACKAGE... sees to it that each WHAT is there, a command, a
# file with its whole path or a C header as in '<math.h>', and where one is
# missing installs the Debian package that has it, or, without root, says which
# to install.
need_packages() {
	local pair what missing=()
	for pair; do
		what=${pair%%=*}
		case $what in
		/*) [ -e "$what" ] || missing+=("${pair#*=}") ;;
		'<'*) gcc -E -include "${what:1:-1}" -x c /dev/null >/dev/null 2>&1 || missing+=("${pair#*=}") ;;
		*) command -v "$what" >/dev/null || missing+=("${pair#*=}") ;;
		esac
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null ||
		die "these are missing here, by the names of their Debian packages: ${missing[*]}" \
			"install them with the package manager of this system, then try again"
	[ "$(id -u)" = 0 ] ||
		die "these packages are missing: ${missing[*]}" \
			"sudo apt-get install --no-install-recommends ${missing[*]}"
	say "Installing ${missing[*]}"
	local log
	log=$(mktemp)
	# One source that cannot be reached need not be the one that is needed.
	DEBIAN_FRONTEND=noninteractive apt-get -q update >"$log" 2>&1 || true
	DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}" \
		</dev/null >>"$log" 2>&1 || {
		cat "$log" >&2
		rm -f "$log"
		die "apt-get cannot install ${missing[*]}"
	}
	rm -f "$log"
}

# need_fuse ends the script where this user cannot mount over FUSE.
need_fuse() {
	[ -e /dev/fuse ] || [ "$(id -u)" != 0 ] || modprobe fuse 2>/dev/null || true
	[ -e /dev/fuse ] ||
		die "there is no /dev/fuse here, and an open container is mounted over FUSE" \
			"as root: modprobe fuse; in a container: start it with --device /dev/fuse --cap-add SYS_ADMIN" \
			"create without --fs, import, export, verify, dump and bench need no FUSE"
	[ -r /dev/fuse ] && [ -w /dev/fuse ] ||
		die "/dev/fuse is there but $(id -un) may not use it" \
			"as root: chmod 666 /dev/fuse (the usual mode), or run this as root" \
			"create without --fs, import, export, verify, dump and bench need no FUSE"
	# fusermount3 finds what it may unmount there; minimal systems lack it.
	[ -e /etc/mtab ] || [ "$(id -u)" != 0 ] || ln -s ../proc/self/mounts /etc/mtab
	[ -e /etc/mtab ] ||
		die "there is no /etc/mtab, which fusermount3 reads" "as root: ln -s ../proc/self/mounts /etc/mtab"
}

# build [FILE [LINKER-FLAGS]] makes bin/serpcrypt, or FILE: one static file.
build() {
	local version
	version=$(git describe --tags --always --dirty --abbrev=12 2>/dev/null) || version=
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "${2:-} -X main.version=$version" \
		-o "${1:-bin/serpcrypt}" ./cmd/serpcrypt
}
