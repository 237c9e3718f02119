package naming

import (
	"strconv"
	"testing"
)

// Whoever may write below an election's folder chooses the names there. One that says a position is the one that its candidate
// would write.
func FuzzUnreadyMember(f *testing.F) {
	for _, name := range []string{"e.unready/7", "e.unready/007", "e.unready/18446744073709551616", "e.unready/", ".unready/7", "a/e.unready/7.unready/7", "e.unready/-1"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		election, position, ok := UnreadyMember(name)
		if ok && name != election+Unready+"/"+strconv.FormatUint(position, 10) {
			t.Errorf("%q is taken for member %d of %q", name, position, election)
		}
	})
}
