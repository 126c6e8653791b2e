package luks2

import (
	"fmt"
	"strings"

	"serpcrypt/volume/luks"
)

// newFault returns the error about a field: of the binary header by its name
// there, or a member of the text by its path, such as "keyslots.3.area.offset".
func newFault(field string, offset int64, format string, args ...any) *luks.FieldError {
	return luks.BadField(field, slotOf(field), offset, format, args...)
}

// slotOf returns the key slot that a path belongs to.
func slotOf(path string) int {
	if rest, isSlot := strings.CutPrefix(path, "keyslots."); isSlot {
		name, _, _ := strings.Cut(rest, ".")
		if slot, ok := objectNumber(name); ok {
			return slot
		}
	}
	return luks.NoSlot
}

// faultAt returns a fault of the value at path. Its offset is where that was read,
// or the nearest value around it.
func (h *Header) faultAt(path, format string, args ...any) *luks.FieldError {
	offset := int64(HeaderSize) // of the text
	for around := path; around != ""; {
		if place, known := h.places[around]; known {
			offset = place
			break
		}
		around = around[:max(strings.LastIndexByte(around, '.'), 0)]
	}
	return newFault(path, offset, format, args...)
}

const mostExcerpt = 40 // characters

// excerpt quotes text from a header for a message, not all if it is long.
func excerpt(text string) string {
	if len(text) > mostExcerpt {
		return fmt.Sprintf("%.*q...", mostExcerpt, text)
	}
	return fmt.Sprintf("%q", text)
}

// excerpts is excerpt for a list.
func excerpts(texts []string) string {
	const most = 8
	quoted := make([]string, 0, most)
	for _, text := range texts[:min(len(texts), most)] {
		quoted = append(quoted, excerpt(text))
	}
	if len(texts) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(quoted, ", "), len(texts)-most)
	}
	return strings.Join(quoted, ", ")
}
