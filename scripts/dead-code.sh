#!/bin/bash
# dead-code.sh - finds functions that nothing reaches, neither the program nor a
# test, and those that only tests reach, in any of these builds. What one build has
# and does not use, another may.
. "$(dirname "$0")/common.sh"
need_go

builds='amd64: amd64:purego arm64: 386:'

# What is there for tests only, each one looked at: packages, and the libraries'
# functions for callers that are not of this module.
for_tests='^(internal/(child|faultfs|faultstore|golden|guarded|skip)/|cipher/serpent/serpent.go NewCipher$|hash/sha1/sha1.go Sum$)'

# unreached [-test] prints "FILE FUNCTION" for those that no build reaches of all
# that have the file.
unreached() {
	local build arch tags files='{{range .GoFiles}}{{$.Dir}}/{{.}}
{{end}}{{range .TestGoFiles}}{{$.Dir}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$.Dir}}/{{.}}
{{end}}'
	for build in $builds; do
		arch=${build%:*} tags=${build#*:}
		GOARCH=$arch go list -tags "$tags" -f "$files" ./... | sed -n "s|^$root/|has |p" || return
		go run -exec "env GOARCH=$arch" $DEADCODE -tags "$tags" "$@" ./... |
			sed 's/^\([^:]*\):.*: unreachable func: /dead \1 /' || return
	done | awk '
	$1 == "has" { builds[$2]++ }
	$1 == "dead" { dead[$2 " " $3]++; file[$2 " " $3] = $2 }
	END { for (f in dead) if (dead[f] == builds[file[f]]) print f }' | sort
}

export CGO_ENABLED=0
unused=$(unreached -test) && without_tests=$(unreached) || die 'deadcode does not run'
for_tests_only=$(grep -vE "$for_tests" <<<"$without_tests" | comm -13 <(echo "$unused") -) || true
[ -z "$unused" ] || say 'nothing reaches:' "$unused"
[ -z "$for_tests_only" ] || say 'only tests reach:' "$for_tests_only"
[ -z "$unused$for_tests_only" ]
