#!/bin/bash
# go-test.sh ARGUMENT... - `go test -count=1 ARGUMENT...`, in short: a line for
# each package, each skipped test with its reason, and all output of packages
# that fail. Appends "PASSED FAILED SKIPPED" to the file $SERPCRYPT_TALLY, if set.
set -uo pipefail
go test -count=1 -v "$@" 2>&1 | awk -v tally="${SERPCRYPT_TALLY:-/dev/null}" '
/^=== RUN/ && !running { show(); running = 1 } # what came before is from the compiler
{ line[n++] = $0 }
/^=== / { test = $3 }
/^ +[^ ]+\.go:[0-9]+: / { said[test] = $0 }
/^ *--- PASS/ { pass++ }
/^ *--- FAIL/ { fail++ }
/^ *--- SKIP/ { skip++; print "skip " $3 ":" said[$3]; fflush() }
/^ok / { print; fflush(); n = running = 0; delete said }
/^\?/ { n = running = 0 }
/^FAIL\t/ { broken = 1; show() }
END {
	show()
	print pass + 0, broken && !fail ? 1 : fail + 0, skip + 0 >>tally
}
function show(    i) {
	for (i = 0; i < n; i++)
		if (line[i] !~ /^ *(=== |--- PASS)|^PASS$/) print line[i]
	n = running = 0
	delete said
}'
exit "${PIPESTATUS[0]}"
