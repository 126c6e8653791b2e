#!/bin/bash
# build.sh deb|rpm|apk|tarball... - makes packages of the commit in dist/. Whoever
# makes them of the same commit by the same Go gets the same bytes. GOARCH in the
# environment chooses another processor.
. "$(dirname "$0")/../scripts/common.sh"
. packaging/version.sh

need_go
need_packages git=git tar=tar gzip=gzip
umask 022
git=$(git_version 2>/dev/null) || die "the version of a package comes from git, and this is no clone"
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
GOARCH=$(go env GOARCH)
export GOARCH GOAMD64=v1 GOFLAGS= GOEXPERIMENT=

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p dist

# licences prints ours, and those of all that is linked into the program.
licences() {
	local module folder file
	cat LICENSE
	{
		printf 'Go %s\n' "$(go env GOROOT)"
		go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' ./cmd/serpcrypt | sort -u
	} | while read -r module folder; do
		printf '\n\n---- The program contains %s:\n' "$module"
		for file in "$folder"/{LICENSE,LICENCE,COPYING,NOTICE}*; do
			[ ! -f "$file" ] || { echo; cat "$file"; }
		done | grep . -A1000000 || { echo "error: $module in $folder has no licence" >&2; exit 1; }
	done
}

# fill lays out what is packed, as it lies below /usr or /usr/local.
fill() {
	local file
	build "$stage/bin/serpcrypt" '-s -w'
	GOARCH=$(go env GOHOSTARCH) build "$stage/host"
	"$stage/host" manual "$stage/share"
	rm "$stage/host"
	find "$stage/share/man" -type f -exec gzip -9n {} +
	mkdir -p "$stage/sbin" "$stage/lib" "$stage/share/doc/serpcrypt/docs"
	ln -s ../bin/serpcrypt "$stage/sbin/mount.serpcrypt"
	cp -r packaging/systemd "$stage/lib/systemd"
	cp README.md CHANGELOG.md SECURITY.md "$stage/share/doc/serpcrypt/"
	for file in $(git ls-files docs); do
		[ "${file##*.}" = go ] || cp --parents "$file" "$stage/share/doc/serpcrypt/"
	done
	licences >"$stage/share/doc/serpcrypt/copyright"
	chmod -R u=rwX,go=rX "$stage"
	find "$stage" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

tarball() {
	local name
	name=serpcrypt-$(package_version "$git" tarball)-linux-$GOARCH
	tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu --transform="s|^\.|$name|S" -c . |
		gzip -9n >"dist/$name.tar.gz"
	say "dist/$name.tar.gz"
}

package() {
	local to=$PWD/dist
	(
		cd "$stage"
		export PACKAGE_ARCH=$GOARCH PACKAGE_VERSION
		PACKAGE_VERSION=$(package_version "$git" "$1")
		env -u GOARCH go run $NFPM package -f "$root/packaging/nfpm.yaml" -p "$1" -t "$to" | sed -n "s|^created package: $root/||p"
	)
}

say "Making it (the first time, Go fetches and compiles the packager, too, which takes minutes)" >&2
fill
for format; do
	case $format in
	tarball) tarball ;;
	deb | rpm | apk) package "$format" ;;
	*) die "usage: build.sh deb|rpm|apk|tarball..." ;;
	esac
done
