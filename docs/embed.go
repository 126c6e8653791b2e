// Package docs has the documents that the program takes along: each is a page of
// its manual.
package docs

import _ "embed"

var (
	//go:embed format.md
	Format string
	//go:embed boot.md
	Boot string
)
