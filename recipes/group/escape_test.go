package group

import (
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
)

// Every item is a part of a name, and no two are the same.
func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"x", ".", "..", "a/b", "a_2fb", "", "日本", ".hidden", "-"} {
		f.Add(seed, "_2e")
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		a, b := escape(one), escape(other)
		if (a == b) != (one == other) {
			t.Errorf("%q and %q become %q and %q", one, other, a, b)
		}
		if strings.Contains(a, "/") {
			t.Errorf("%q becomes %q", one, a)
		}
		if err := backend.CheckName("x-owners/" + a); err != nil && one != "" && len(a) <= 200 {
			t.Errorf("%q becomes %q: %v", one, a, err)
		}
	})
}
