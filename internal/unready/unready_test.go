package unready

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A candidate says why it is not ready in a record, which others may write. What is shown is short, and text.
func FuzzReason(f *testing.F) {
	for _, s := range []string{"", "no disk", "\xff", strings.Repeat("é", MaxReason)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		why := reason(value)
		if why == "" || !utf8.ValidString(why) || len(why) > 3*MaxReason {
			t.Errorf("%q is the reason %q", value, why)
		}
		if utf8.Valid(value) && len(value) > 0 && len(value) <= MaxReason && why != string(value) {
			t.Errorf("%q is the reason %q", value, why)
		}
	})
}
