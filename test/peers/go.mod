module serpcrypt/test/peers

go 1.26.0

require (
	github.com/aead/serpent v0.0.0-20160714141033-fba169763ea6
	golang.org/x/crypto v0.59.0
	serpcrypt v0.0.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/hanwen/go-fuse/v2 v2.12.1 // indirect
	github.com/klauspost/cpuid/v2 v2.4.2 // indirect
	github.com/moby/sys/mountinfo v0.7.3 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace serpcrypt => ../..
