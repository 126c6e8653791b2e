#!/bin/bash
# Works in open containers for TIME (1h), as Go writes durations: raw and with ext4,
# on one processor and on two. It fails if anything reads other than it was written,
# if a server grows, or if anything is left behind.
. "$(dirname "$0")/../../scripts/common.sh"
. scripts/leftovers.sh

need_go
need_packages fusermount3=fuse3 losetup=mount mkfs.ext4=e2fsprogs
need_fuse

watch_for_leftovers
rc=0
SERPCRYPT_SOAK=${TIME:-1h} go test -count=1 -v -timeout 0 -run '^TestSoak$' ./cmd/serpcrypt || rc=$?
no_leftovers || rc=1
exit $rc
