#!/bin/bash
# Makes every package twice, in different places and surroundings, and compares the
# bytes; compares what is in the packages; installs and removes the Debian package
# in a chroot; and boots that chroot to run the commands of docs/boot.md. Only root
# can do the last two, on Debian, and where mounts and control groups are allowed.
# The chroot is made once, and kept below /tmp.
if [ -z "${SERPCRYPT_OWN_MOUNTS:-}" ] && [ "$(id -u)" = 0 ] && unshare --mount --uts true 2>/dev/null; then
	exec env SERPCRYPT_OWN_MOUNTS=1 unshare --mount --uts "$0"
fi
. "$(dirname "$0")/common.sh"
. packaging/version.sh

not_done() {
	say "$1: NOT DONE, $2"
	[ "${SERPCRYPT_NO_SKIP:-}" != 1 ] || exit 1
	exit 0
}

# twice COMMAND... is for what downloads, which fails now and then.
twice() { "$@" || { sleep 5 && "$@"; }; }

need_go
need_packages git=git dpkg-deb=dpkg rpm2cpio=rpm2cpio cpio=cpio

work=$(mktemp -d "${TMPDIR:-/tmp}/serpcrypt-packages.XXXXXX")
tidy() {
	! mountpoint -q "$work/ram" || umount -R "$work/ram"
	chmod -R u+w "$work" && rm -rf --one-file-system "$work"
}
trap tidy EXIT
trap 'exit 130' INT TERM HUP

# ---- versions ------------------------------------------------------------------
versions() {
	local git format want got
	while read -r git format want; do
		got=$(package_version "$git" "$format")
		[ "$got" = "$want" ] || die "package_version $git $format: $got, want $want"
	done <<-END
		v1.2.0-0-g0123456789ab deb 1.2.0
		v1.2.0-0-g0123456789ab apk 1.2.0
		v1.2.0-0-g0123456789ab-dirty deb 1.2.0+0.g0123456789ab.dirty
		v1.2.0-rc1-0-g0123456789ab rpm 1.2.0~rc1
		v1.2.0-rc1-5-g0123456789ab deb 1.2.0~rc1+5.g0123456789ab
		v1.2.0-rc1-5-g0123456789ab apk 1.2.0_rc1_git5
		v0.0.0-8-g0123456789ab tarball 0.0.0+8.g0123456789ab
	END
	! package_version v1 deb 2>/dev/null || die 'package_version takes v1'
	dpkg --compare-versions 1.2.0~rc1+5.gab lt 1.2.0 && dpkg --compare-versions 1.2.0 lt 1.2.0+1.gab || die 'versions sort wrongly'
}
versions
say 'versions: ok'

# ---- the same bytes twice ------------------------------------------------------
# copy_to FOLDER makes a clone there, with the changes that are not committed.
git rev-parse --git-dir >/dev/null 2>&1 || not_done packages 'their version comes from git, and this is no clone'
copy_to() {
	git clone -q --no-checkout "$root" "$1"
	git ls-files -z -co --exclude-standard | xargs -0 -I{} sh -c '[ ! -e "$1" ] || printf "%s\0" "$1"' sh {} |
		tar --null -T - -c | tar -x -C "$1"
	git -C "$1" reset -q
}
copy_to "$work/one"
copy_to "$work/another place"
twice "$work/one/packaging/build.sh" deb rpm apk tarball
(
	umask 077
	GOENV=$(go env GOENV) GOCACHE=$(go env GOCACHE) GOPATH=$(go env GOPATH) GOMODCACHE=$(go env GOMODCACHE)
	export GOENV GOCACHE GOPATH GOMODCACHE GOFLAGS=-tags=purego TZ=Asia/Tokyo HOME=$work USER=somebody
	[ -z "${SERPCRYPT_OWN_MOUNTS:-}" ] || hostname elsewhere
	"$work/another place/packaging/build.sh" tarball apk rpm deb >/dev/null
)
diff -r "$work/one/dist" "$work/another place/dist" || die 'two builds of the same commit differ'
set -- "$work"/one/dist/*
[ $# = 4 ] || die "there are $# packages, want 4: $*"

cd "$work/one"
version=$(git describe --tags --always --dirty --abbrev=12)
deb=$(echo dist/*.deb)

# ---- the same files in each ----------------------------------------------------
# Debian and Alpine have their own places for two of them.
mkdir "$work"/{deb,rpm,apk,tarball,tarball/usr}
dpkg-deb -x "$deb" "$work/deb"
(cd "$work/rpm" && rpm2cpio "$work"/one/dist/*.rpm | cpio -id --quiet)
tar -xzf dist/*.apk -C "$work/apk" --warning=no-unknown-keyword --exclude=.PKGINFO
tar -xzf dist/*.tar.gz -C "$work/tarball/usr" --strip-components=1
mv "$work/deb/usr/share/zsh/vendor-completions" "$work/deb/usr/share/zsh/site-functions"
mkdir "$work/apk/usr/sbin" && ln -s ../bin/serpcrypt "$work/apk/usr/sbin/mount.serpcrypt"
[ "$(readlink "$work/apk/sbin/mount.serpcrypt")" = ../usr/bin/serpcrypt ] || die 'the apk has no mount helper'
rm -r "$work/apk/sbin"

# files FOLDER lists what is in it: kind, mode, where links lead, and a checksum.
files() {
	(
		cd "$1"
		find . ! -type d -printf '%p %y %m %l\n' | sed 's/ l 0*[0-7]* / l /'
		find . -type f -exec sha256sum {} +
	) | sort
}
files "$work/deb" >"$work/files"
for format in rpm apk tarball; do
	files "$work/$format" | diff "$work/files" - || die "the $format has other files than the deb"
done
[ "$(wc -l <"$work/files")" -gt 60 ] || die "the packages are almost empty"
for file in $(bin=$work/deb/usr/bin/serpcrypt && "$bin" manual "$work/share" && cd "$work/share" && find . -type f); do
	[ -e "$work/deb/usr/share/$file" ] || [ -e "$work/deb/usr/share/$file.gz" ] || die "$file is in no package"
done
# Once more, with nothing that an earlier build has left.
GOCACHE=$work/cache GOAMD64=v1 build "$work/again" '-s -w'
cmp "$work/again" "$work/deb/usr/bin/serpcrypt" || die 'the program is another when it is built anew'
say "packages: ok, the same bytes twice and the same $(find "$work/deb" ! -type d | wc -l) files in each"

# ---- installed, and booted -----------------------------------------------------
cannot_install() { not_done 'installing and booting' "$1"; }
[ "$(id -u)" = 0 ] || cannot_install 'only root can'
[ -n "${SERPCRYPT_OWN_MOUNTS:-}" ] || cannot_install 'mounts are not allowed'
codename=$(. /etc/os-release && [ "${ID:-}" = debian ] && echo "$VERSION_CODENAME") || cannot_install 'this is not Debian'
need_packages debootstrap=debootstrap systemd-nspawn=systemd-container
apt-cache show dpkg >/dev/null 2>&1 || twice apt-get -q update >"$work/log" 2>&1 || cannot_install "apt-get update: $(cat "$work/log")"
for package in $(dpkg-deb -f "$deb" Recommends Suggests | sed 's/^[^:]*://; s/,/ /g'); do
	apt-cache show "$package" >/dev/null 2>&1 || die "Debian has no package $package, which ours recommends"
done

# One at a time: two systems that are booted would share their control groups.
exec 9<"$(command -v systemd-nspawn)"
flock -w 600 9 || cannot_install 'somebody else boots all the time'

base=/tmp/serpcrypt-chroot-$codename
make_base() {
	rm -rf --one-file-system "$base"
	mkdir -m 700 "$base"
	timeout -k 10 300 debootstrap --variant=minbase --include=man-db,systemd,systemd-sysv,dbus,libpam-systemd,fuse3,fuse2fs \
		"$codename" "$base/root" "$1" >"$work/log" 2>&1 </dev/null || { tail -n 20 "$work/log" && return 1; }
	touch "$base/whole"
}
# Nobody else may have laid something there.
[ -O "$base" ] && [ "$(stat -c %a "$base")" = 700 ] && [ -e "$base/whole" ] || {
	mirror=$(apt-get indextargets --format '$(SITE)' "Codename: $codename" 'Component: main' 'Created-By: Packages' | head -n 1)
	[ -n "$mirror" ] || cannot_install "apt has no source of $codename"
	say "Making $base from $mirror"
	twice make_base "$mirror" || cannot_install 'debootstrap failed'
}

# fresh FOLDER mounts the system of the chroot there, and keeps all changes in
# memory.
fresh() {
	mkdir -p "$1"/{root,changes,work}
	mount -t overlay overlay -o "lowerdir=$base/root,upperdir=$1/changes,workdir=$1/work" "$1/root" 2>"$work/log" ||
		cp -a "$base/root/." "$1/root/" # such as on a kernel without overlays
}
mkdir "$work/ram"
mount -t tmpfs none "$work/ram"
fresh "$work/ram/install"
test/packages/install.sh "$work/ram/install/root" "$deb" "$version"
say 'installing and removing: ok'

fresh "$work/ram/boot"
guest=$work/ram/boot/root
systemd-nspawn --quiet --register=no --keep-unit --directory="$guest" --console=pipe /bin/true >"$work/log" 2>&1 </dev/null ||
	not_done booting "$(cat "$work/log")"
cp "$deb" "$guest/root/serpcrypt.deb"
chroot "$guest" dpkg -i /root/serpcrypt.deb >/dev/null
test/packages/boot.sh "$guest" # runs docs/boot.md
