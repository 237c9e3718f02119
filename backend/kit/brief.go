package kit

import (
	"fmt"
	"strings"
)

// maxText is how many bytes of a server's text an error shows.
const maxText = 1 << 10

// Clip shortens a server's text that is too long for an error: it returns its beginning, and how
// long it was. Errors are logged again and again, and an unknown server may answer with megabytes.
func Clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes in all)", strings.ToValidUTF8(text[:maxText], ""), len(text))
}

// Brief returns err with its text clipped; see [Clip].
func Brief(err error) error {
	if err == nil || len(err.Error()) <= maxText {
		return err
	}
	return &brief{err}
}

type brief struct{ err error }

func (e *brief) Error() string { return Clip(e.err.Error()) }
func (e *brief) Unwrap() error { return e.err }
