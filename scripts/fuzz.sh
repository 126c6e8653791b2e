#!/bin/bash
# fuzz.sh TIME PACKAGE... - runs each fuzz target of the packages for TIME, as in
# "go test -fuzztime" (1h, or 20000x for a number of executions), from its seeds
# and from what earlier runs have found; and prints a line for each. Every package
# must have one. After a time, unlike a number, Go now and then calls a run failed
# that was ended in the middle of an execution.
. "$(dirname "$0")/common.sh"
need_go
[ $# -ge 2 ] || die "usage: fuzz.sh TIME PACKAGE..."
time=$1
shift

tally=${SERPCRYPT_TALLY:-/dev/null}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0
for package; do
	targets=$(go test -list '^Fuzz' "$package" | grep '^Fuzz') || {
		say "$package: no fuzz target, or it does not build"
		echo "! $package: no fuzz target" >>"$tally"
		failed=$((failed + 1))
	}
	for target in $targets; do
		# To make inputs smaller would take all of a short time.
		if go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x "$package" >"$log" 2>&1; then
			passed=$((passed + 1))
			say "$package $target: $(grep '^fuzz: elapsed' "$log" | tail -n 1 | sed 's/^fuzz: //')"
		else
			failed=$((failed + 1))
			say "$package $target: FAILED"
			cat "$log"
			echo "! $package: $target" >>"$tally"
		fi
	done
done
echo $passed $failed 0 >>"$tally"
[ $failed = 0 ]
