#!/bin/bash
# Runs in the emulated machine: the test programs that run.sh has packed, two at
# a time, by the lines "PROGRAM SERPENT SHA1 TESTS" of /in/list, with the kernels
# that should be chosen. Prints what `go test -v` prints.

# There is no Go here, and sixteen million iterations would take minutes.
without='^(TestGeneratedCodeIsCurrent|TestPBKDF2ManyIterations)$'

mkdir /tmp/tests && cd /tmp/tests && tar -xf /in/tests.tar || exit

run() { # run PROGRAM SERPENT SHA1 TESTS
	local start=$SECONDS said verdict="ok  "
	# An emulated processor is slow enough for goroutines to be stopped in the
	# midst of the ciphers, which saves registers to stacks that tests look at.
	said=$(cd "$(dirname "$1")" &&
		GODEBUG=asyncpreemptoff=1 SERPCRYPT_EXPECT_KERNEL=$2 SERPCRYPT_EXPECT_SHA1_KERNEL=$3 \
		"./$(basename "$1")" -test.v -test.timeout 20m -test.run "$4" -test.skip "$without" 2>&1) ||
		verdict=FAIL
	until mkdir /tmp/printing 2>/dev/null; do sleep 0.1; done
	printf '%s\n%s\tserpcrypt/%s\t%ss\n' "$said" "$verdict" "$1" $((SECONDS - start))
	rmdir /tmp/printing
	[ "$verdict" != FAIL ]
}
export -f run
export without
xargs -P 2 -n 4 bash -c 'run "$@"' - </in/list
