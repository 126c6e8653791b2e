#!/bin/bash
# Writes the generated files anew; with -check it does so in a copy of the
# repository without them and fails, listing the differences, if they are not the
# same. What writes which file, the go:generate lines say.
. "$(dirname "$0")/common.sh"
need_go

if [ "${1:-}" != -check ]; then
	go generate ./...
	exit
fi
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -c --exclude=./.git --exclude=./bin --exclude=./build --exclude=./dist . | tar -x -C "$copy"
(
	cd "$copy"
	generated=$(grep -rlE '^// Code generated .* DO NOT EDIT\.$' --include='*.go' --include='*.s' .)
	rm $generated
	go generate ./...
)
diff -r --exclude=.git --exclude=bin --exclude=build --exclude=dist . "$copy" || die "generated files are not what make generate writes"
