# Versions of packages from that of git; sourced.

# git_version prints what "git describe" says, always with the number of commits
# since the tag; where there is no tag yet, since the beginning.
git_version() {
	local dirty=
	git describe --tags --match 'v[0-9]*' --long --dirty --abbrev=12 2>/dev/null && return
	git diff-index --quiet HEAD -- || dirty=-dirty
	echo "v0.0.0-$(git rev-list --count HEAD)-g$(git rev-parse --short=12 HEAD)$dirty"
}

# package_version GIT-VERSION FORMAT prints it in the words of a package format, in
# which what comes before a release must sort before it, and what comes behind
# behind: v1.2.0-rc1-5-g0123456789ab is 1.2.0~rc1+5.g0123456789ab, or
# 1.2.0_rc1_git5 of an apk, which can have neither the commit nor the word dirty.
package_version() {
	local pattern='^v([0-9.]+)(-([a-z]+[0-9]+))?-([0-9]+)-g([0-9a-f]+)(-dirty)?$' version
	[[ $1 =~ $pattern ]] || { echo "$1 is no version that a package can have" >&2; return 1; }
	local release=${BASH_REMATCH[1]} early=${BASH_REMATCH[3]} commits=${BASH_REMATCH[4]} hash=${BASH_REMATCH[5]} dirty=${BASH_REMATCH[6]}
	if [ "$2" = apk ]; then
		version=$release${early:+_$early}
		[ "$commits$dirty" = 0 ] || version+=_git$commits
	else
		version=$release${early:+~$early}
		[ "$commits$dirty" = 0 ] || version+=+$commits.g$hash${dirty:+.dirty}
	fi
	echo "$version"
}
