#!/bin/bash
# test.sh LEVEL - tests and checks the repository, and prints a line for each step,
# the failures in full, and a summary. A level does all that those before it do:
#
#   short  the quick tests, in two minutes: while you write
#   check  all tests and checks of this machine's own build, in a quarter of an hour
#   all    other builds, other processors, which are emulated, other modules, fuzzing, fio
#
# SERPCRYPT_NO_SKIP=1      a test that would skip fails instead, but for want of a CPU
# SERPCRYPT_GOLDEN=DIR     a folder of container images to export and compare
. "$(dirname "$0")/common.sh"

level=${1:-}
case $level in short | check | all) ;; *) die "usage: test.sh short|check|all" ;; esac
# at_least LEVEL: is this one that much, or more?
at_least() { [[ $level = "$1" || "short check all" == *"$1"*"$level"* ]]; }

. scripts/steps.sh
. scripts/leftovers.sh

need_go
! at_least check || need_packages objdump=binutils diff=diffutils fusermount3=fuse3 fuse2fs=fuse2fs \
	losetup=mount mkfs.ext4=e2fsprogs mkfs.vfat=dosfstools mkfs.xfs=xfsprogs mkfs.ntfs=ntfs-3g mkfs.btrfs=btrfs-progs mkfs.exfat=exfatprogs \
	mkfs.f2fs=f2fs-tools mkfs.nilfs2=nilfs-tools mkfs.udf=udftools mksquashfs=squashfs-tools mkfs.erofs=erofs-utils squashfuse=squashfuse \
	mount.exfat-fuse=exfat-fuse fusefat=fusefat setpriv=util-linux qemu-img=qemu-utils cryptsetup=cryptsetup-bin \
	man=man-db zsh=zsh fish=fish gcc=gcc /usr/include/stdlib.h=libc6-dev
! at_least all || need_packages qemu-s390x=qemu-user \
	'<gcrypt.h>=libgcrypt20-dev' '<openssl/evp.h>=libssl-dev' '<nettle/sha1.h>=nettle-dev' gocryptfs=gocryptfs fio=fio

# Without FUSE the tests that need it say so; with it they need this.
[ ! -w /dev/fuse ] || ! at_least check || need_fuse

# A disk that fails at each operation of each change of a header: thousands of
# disks are looked at.
failing_disks='TestPowerCutsInUpdates|TestFaultsInUpdates|TestPowerCutWhileMaking|TestFaultsWhileMaking'
# What takes seconds, and is left to the other levels: thousands of disks and
# containers, other programs, much memory, processes that are killed.
slow="$failing_disks|TestPowerFailsWhileResizing|TestFaultsInResizing|TestRepairAfterFailedUpdates"
slow+='|TestGoldenWrite|TestGoldenLUKS2|TestLongRun|TestAssembly|TestEverySuiteIsComplete'
slow+='|TestDocs|TestExamples|TestInstall|TestKill|TestDeath|TestDeathOfOpen|TestEndWhileInUse|TestLittleMemory|TestOpenAsUser'
slow+='|TestServerMemory|TestCommandsOnGolden|TestCommandsOnGoldenLUKS2|TestDumpLikeCryptsetup|TestMetadataLikeCryptsetup|TestEveryChecker'
slow+='|TestQemu|TestOpenTree|TestAnyFileSystem|TestKillDuringSync|TestPassphraseLengths|TestKeyFileSituations|TestLastOfEightSlots'
slow+='|TestHostileLUKS2|TestWhichSlotOpened|TestCopyInPowerCuts|TestSoak|TestCloseSeesOtherNamespaces|TestBenchBars'
slow="^($slow)\$"
# The packages that work with several goroutines, and tests that take minutes
# under the race detector and have no more goroutines than others.
concurrent='./cipher/modes ./kdf ./volume ./internal/...'
not_raced="^(TestPBKDF2ManyIterations|TestEverySuiteIsComplete|$failing_disks)\$"
# What reads headers that anybody may have made.
fuzzed='./volume/luks1 ./volume/luks2 ./volume/af'
# What has assembly, or depends on the width of int or the order of bytes; and
# what stands on it.
portable='./cipher/... ./hash/... ./internal/hashes ./internal/secret ./internal/whirlpool ./kdf ./volume/...'
# What an emulator is no good for: it hides the flags of memory, knows no limit of
# it, cannot start the test program a second time, nor what go run builds for its
# processor; and what takes minutes there.
not_emulated="^(TestTooLittleMemory|TestNewGivesZeroedLockedUndumpedMemory|TestHardenProcess|TestCore|TestGeneratedCodeIsCurrent|TestPBKDF2ManyIterations|$failing_disks)\$"

modules() { find . -name go.mod ! -path ./go.mod -printf '%h\n' | sort; }

gofmt_clean() {
	local bad
	bad=$(gofmt -l .) && [ -z "$bad" ] || { say "gofmt would change:" "$bad"; return 1; }
}

cross() {
	local arch
	for arch in arm64 386 s390x; do
		GOARCH=$arch CGO_ENABLED=0 go vet ./... || { say "go vet for $arch"; return 1; }
	done
}

# expect SERPENT SHA1 COMMAND... runs it, and these kernels should be chosen.
expect() { SERPCRYPT_EXPECT_KERNEL=$1 SERPCRYPT_EXPECT_SHA1_KERNEL=$2 "${@:3}"; }

# emulate ARCHITECTURE QEMU'S-NAME-OF-IT runs tests on that processor. Its slowness
# would let goroutines be stopped in the midst of the ciphers, which saves
# registers to stacks that tests look at.
emulate() {
	GOARCH=$1 CGO_ENABLED=0 GODEBUG=asyncpreemptoff=1 expect generic generic \
		scripts/go-test.sh -exec "qemu-$2" -skip "$not_emulated" $portable
}

# kernels says which this CPU has and lacks, a line for each package that has any.
kernels() {
	go test -count=1 -v -run '^TestExpectedKernel$' ./cipher/... ./hash/... | sed -n 's/.*: kernels of //p'
}

other_modules() {
	local dir
	for dir in $(modules); do
		(cd "$dir" && go vet ./... && "$root/scripts/go-test.sh" ./...) || { say "in $dir"; return 1; }
	done
}

# go_test_counting runs all tests, and go test prints what share of each package's
# statements they ran: by its own tests, with the processes that these start.
go_test_counting() {
	local ran status=0
	ran=$(mktemp -d)
	chmod 777 "$ran" # for tests that become another user, who writes the same files
	GOCOVERDIR=$ran scripts/go-test.sh -cover -ldflags "-X serpcrypt/cmd/serpcrypt.coverageDir=$ran" ./... \
		-args -test.gocoverdir="$ran" || status=$?
	rm -rf "$ran"
	return $status
}

# vulnerabilities asks Go's database for those that the program can reach. It is
# taken as a module, which whoever gets the other modules can get, too.
vulnerabilities() {
	local database
	database=$(go mod download -json golang.org/x/vulndb@latest | sed -n 's/^\t"Dir": "\(.*\)".*/\1/p') && [ -n "$database" ] ||
		{ not_done 'their database, golang.org/x/vulndb, cannot be had'; return; }
	go run $GOVULNCHECK -db "file://$database/data/osv" ./cmd/serpcrypt
}

go_test_386() {
	GOARCH=386 CGO_ENABLED=0 go test -run '^$' ./internal/hashes >/dev/null 2>&1 ||
		{ not_done 'this machine runs no 32-bit x86 programs; make test-i386 emulates one that does'; return; }
	expect generic scalar env GOARCH=386 CGO_ENABLED=0 scripts/go-test.sh $portable
}

watch_for_leftovers

say "== kernels on this CPU, $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1)"
kernels=$(kernels) || true
say "$kernels"

step 'gofmt' gofmt_clean
step 'go vet' go vet ./...
if ! at_least check; then
	step 'go test, the quick ones' scripts/go-test.sh -short -skip "$slow" ./...
	say "left to make check: ${slow//|/ }"
else
	step 'staticcheck' go run $STATICCHECK ./...
	step 'known vulnerabilities' vulnerabilities
	step 'dead code' scripts/dead-code.sh
	step 'generated code is up to date' scripts/generate.sh -check
	# Also which package imports which, the instructions of the assembly, and the
	# manual, help and docs beside the code.
	step 'go test, with coverage' go_test_counting
	step 'go test with the race detector' scripts/go-test.sh -race -skip "$not_raced" $concurrent
fi
if at_least all; then
	step 'go test without assembly' expect generic generic scripts/go-test.sh -tags purego $portable
	step 'fuzzing, a little' scripts/fuzz.sh 20000x $fuzzed
	step 'go test on 32 bits' go_test_386
	step 'go test on s390x, big-endian, emulated' emulate s390x s390x
	step 'go test on arm64, emulated' emulate arm64 aarch64
	step 'the choice of kernel on emulated CPUs' scripts/cpu-models.sh
	step 'go vet for arm64, 386, s390x' cross
	step 'go test of the other modules' other_modules
	step 'fio, a little' test/fio/run.sh quick
fi
step 'nothing left behind' no_leftovers

say "$kernels" | sed -n 's/^\(.*\) here: .*, not here: \[\(..*\)\]$/\nnot tested, as this CPU lacks them: \1, kernels \2/p'
summary
