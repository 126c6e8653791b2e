#!/bin/bash
# Writes the generated files anew; with -check it does so in a copy of the
# repository and fails, listing the differences, if anything changes.
. "$(dirname "$0")/common.sh"
need_go

generate() {
	local dir
	go generate ./...
	for dir in $(find . -type d -name _asm | sort); do
		(cd "$dir" && go run . -out ..)
	done
}

if [ "${1:-}" != -check ]; then
	generate
	exit
fi
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -c --exclude=./.git --exclude=./bin --exclude=./build . | tar -x -C "$copy"
(cd "$copy" && generate)
diff -r --exclude=.git --exclude=bin --exclude=build . "$copy" || die "generated files are not what make generate writes"
