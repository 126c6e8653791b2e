#!/bin/bash
# go-test.sh ARGUMENT... - `go test -count=1 ARGUMENT...`, its output put in short
# by go-test.awk, with the file $SERPCRYPT_TALLY, if set.
# Emulated or busy machines take longer than the ten minutes that Go allows.
set -uo pipefail
go test -count=1 -timeout 40m -v "$@" 2>&1 |
	awk -v tally="${SERPCRYPT_TALLY:-/dev/null}" -f "$(dirname "$0")/go-test.awk"
exit "${PIPESTATUS[0]}"
