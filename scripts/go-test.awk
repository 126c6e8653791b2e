# Puts the output of `go test -v` in short: a line for each package, each
# skipped test with its reason, and all output of packages that fail. Appends to
# the file that the variable tally names "! PACKAGE: TEST" for each failure, and
# in the end "PASSED FAILED SKIPPED".

/^=== RUN/ && !running { show(); running = 1 } # what came before is from the compiler
{ line[n++] = $0 }
/^=== / { test = $3 }
/^ +[^ ]+\.go:[0-9]+: / { said[test] = $0 }
/^ *--- PASS/ { pass++ }
/^ *--- FAIL/ { fail++ }
/^--- FAIL/ { failure[++failures] = $3 }
/^ *--- SKIP/ { skip++; print "skip " $3 ":" said[$3]; fflush() }
/^\trunning tests:$/ { late = 1; next } # the time is over; a list of tests, then an empty line
/^$/ { late = 0 }
late { failure[++failures] = $1 ", still running when the time was over" }
/^ok / { print; fflush(); n = running = failures = 0; delete said }
/^\?|^\t[^ ]+\t\tcoverage: / { n = running = 0 } # a package without tests
/^FAIL\t/ {
	broken = 1
	if (!failures) failure[++failures] = running ? "ended in " test : "not run"
	for (i = 1; i <= failures; i++) print "! " $2 ": " failure[i] >>tally
	failures = 0
	show()
}
END {
	show()
	print pass + 0, broken && !fail ? 1 : fail + 0, skip + 0 >>tally
}
function show(    i) {
	for (i = 0; i < n; i++)
		if (line[i] !~ /^ *(=== |--- PASS)|^PASS$/) print line[i]
	n = running = 0
	delete said
}
