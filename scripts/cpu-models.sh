#!/bin/bash
# cpu-models.sh - holds, on emulated processors, that cipher/serpent, hash/sha1
# and the program choose the kernels that fit the processor, and that these work.
. "$(dirname "$0")/common.sh"
need_go
need_packages qemu-x86_64=qemu-user

export GOARCH=amd64 CGO_ENABLED=0
failed=0

# Tests of a single kernel, which not all of these CPUs have; and a slow one that
# is none of kernels.
without='^(TestAVX2WipesWords|TestPairs|TestSHANIPads|TestEverySplit)$'

# expect MODEL SERPENT SHA1 TESTS runs those tests on that model, where these
# kernels should be the fastest. For asyncpreemptoff see test.sh.
expect() {
	say "${1%%,*}: $2 and $3"
	GODEBUG=asyncpreemptoff=1 SERPCRYPT_EXPECT_KERNEL=$2 SERPCRYPT_EXPECT_SHA1_KERNEL=$3 \
		scripts/go-test.sh -exec "qemu-x86_64 -cpu $1" -run "$4" -skip "$without" ./cipher/serpent ./hash/sha1 ||
		failed=1
}

# What qemu's emulation of a model lacks is switched off, or it warns of it.
haswell=Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid
sandy_bridge=SandyBridge,-x2apic,-tsc-deadline
expect qemu64 sse2 scalar TestExpectedKernel
expect Nehalem sse2 scalar .
expect $sandy_bridge sse2 scalar TestExpectedKernel
expect $haswell avx2 avx2 .

# refuses MODEL KERNEL KERNELS: the program has KERNELS there, so not KERNEL.
refuses() {
	local how said rc
	for how in option environment; do
		rc=0
		case $how in
		option) said=$(qemu-x86_64 -cpu "$1" "$program" bench --kernel "$2" 2>&1) || rc=$? ;;
		environment) said=$(SERPCRYPT_KERNEL=$2 qemu-x86_64 -cpu "$1" "$program" bench 2>&1) || rc=$? ;;
		esac
		if [ $rc = 1 ] && [[ $said == *"cannot run kernel \"$2\""*"this CPU and build have auto, $3" ]]; then
			passed=$((passed + 1))
		else
			say "serpcrypt bench, $2 by $how, on ${1%%,*}: status $rc, want 1 and the kernels $3" "$said"
			echo "! serpcrypt: $2 by $how on ${1%%,*} not refused" >>"$tally"
			refused_not=$((refused_not + 1))
		fi
	done
}

tally=${SERPCRYPT_TALLY:-/dev/null}
passed=0 refused_not=0
program=$(mktemp)
trap 'rm -f "$program"' EXIT
go build -o "$program" ./cmd/serpcrypt
refuses Nehalem avx2 'generic, sse2'
refuses Nehalem avx512 'generic, sse2'
refuses $haswell avx512 'generic, sse2, avx2'
echo $passed $refused_not 0 >>"$tally"
[ $refused_not = 0 ] && [ $failed = 0 ]
