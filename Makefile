# Each target is one command; `make help` lists them.

.PHONY: build quickstart test check test-short test-i386 test-dmcrypt test-fio soak bench bench-peers plots generate man install uninstall deb rpm apk tarball test-packages clean help
.DEFAULT_GOAL := build

PREFIX ?= /usr/local

build: ## build bin/serpcrypt
	@scripts/build.sh

quickstart: ## build it and show a container's whole life, in a temporary folder
	@scripts/quickstart.sh

test: ## run all tests and checks
	@scripts/test.sh all

check: ## run those of this machine's own build, in less than 15 minutes
	@scripts/test.sh check

test-short: ## run the quick tests, in less than two minutes
	@scripts/test.sh short

test-i386: ## run tests as 32-bit programs, in an emulated machine
	@test/i386/run.sh

test-dmcrypt: ## exchange containers with the kernel's dm-crypt, in an emulated machine
	@test/dmcrypt/run.sh

test-fio: ## write to open containers and verify by checksums, with fio
	@test/fio/run.sh

TIME ?= 1h
soak: ## work in open containers for TIME, 1h unless told otherwise
	@TIME=$(TIME) test/soak/run.sh

bench: build ## measure this machine
	@bin/serpcrypt bench

bench-peers: ## compare with libgcrypt, OpenSSL, Nettle, Go's packages and gocryptfs on this machine
	@test/peers/run.sh

plots: ## draw the plots of docs/bench.md; JSON='FILE ...' has new figures, of bench --json
	@cd internal/bench/_plots && go run . "$(CURDIR)/docs/bench" $(abspath $(JSON))

generate: ## write the generated assembly anew
	@scripts/generate.sh

man: build ## write the manual and the shells' completions into build/share
	rm -rf build/share
	bin/serpcrypt manual build/share

install: man ## install into $(PREFIX), /usr/local unless told otherwise
	install -D -m 755 bin/serpcrypt "$(DESTDIR)$(PREFIX)/bin/serpcrypt"
	install -d "$(DESTDIR)$(PREFIX)/sbin"
	ln -sf ../bin/serpcrypt "$(DESTDIR)$(PREFIX)/sbin/mount.serpcrypt"
	find build/share -type f -printf '%P\n' | xargs -I{} install -D -m 644 build/share/{} "$(DESTDIR)$(PREFIX)/share/{}"
	find packaging/systemd -type f -printf '%P\n' | xargs -I{} install -D -m 644 packaging/systemd/{} "$(DESTDIR)$(PREFIX)/lib/systemd/{}"

uninstall: man ## remove what make install has put there
	rm -f "$(DESTDIR)$(PREFIX)/bin/serpcrypt" "$(DESTDIR)$(PREFIX)/sbin/mount.serpcrypt"
	find build/share -type f -printf '%P\n' | xargs -I{} rm -f "$(DESTDIR)$(PREFIX)/share/{}"
	find packaging/systemd -type f -printf '%P\n' | xargs -I{} rm -f "$(DESTDIR)$(PREFIX)/lib/systemd/{}"

deb rpm apk tarball: ## make a package of the commit in dist
	@packaging/build.sh $@

test-packages: ## make all packages twice and compare, install them and boot with them
	@scripts/test-packages.sh

clean: ## remove what was built
	rm -rf bin build dist

help: ## this list
	@sed -n 's/^\([a-z0-9 -]*\):.*## /\1\t/p' Makefile | expand -t 22
