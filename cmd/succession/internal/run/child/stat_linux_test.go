package child

import (
	"fmt"
	"testing"
)

// A process chooses its name, and so what stands in its line of /proc. It cannot choose its parent.
func FuzzStat(f *testing.F) {
	for _, name := range []string{"sh", ") S 1 1", "a b", "\n", "((", ") Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 (x"} {
		f.Add(name, 42, uint64(7))
	}
	f.Fuzz(func(t *testing.T, name string, parent int, born uint64) {
		line := fmt.Sprintf("99 (%s) S %d 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %d 1 2 3", name, parent, born)
		if p, b, ok := parseStat([]byte(line)); !ok || p != parent || b != born {
			t.Errorf("%q is read as %d, %d, %t", line, p, b, ok)
		}
		parseStat([]byte(name)) // whatever it is
	})
}
