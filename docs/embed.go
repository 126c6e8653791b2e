// Package docs has the documents that the program takes along: format.md is a
// page of its manual.
package docs

import _ "embed"

//go:embed format.md
var Format string
