#!/bin/bash
# Compares the speed of Serpent here, in libgcrypt and in Go's github.com/aead/serpent,
# and of AES in OpenSSL and Go; and of SHA-1 and PBKDF2 here, in OpenSSL, Nettle,
# libgcrypt and Go; and of open containers and gocryptfs. Prints tables, or an
# error if one of them computes something else than the others.
. "$(dirname "$0")/../../scripts/common.sh"

need_go
need_packages gcc=gcc /usr/include/stdlib.h=libc6-dev '<gcrypt.h>=libgcrypt20-dev' '<openssl/evp.h>=libssl-dev' \
	'<nettle/sha1.h>=nettle-dev' mkfs.ext4=e2fsprogs fusermount3=fuse3 gocryptfs=gocryptfs
cd test/peers
go run . "$@"
