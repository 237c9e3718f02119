package group

import (
	"fmt"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
)

// Members of different versions must agree: what an item falls to never changes.
func TestFallsTo(t *testing.T) {
	ids := []string{"web-1", "web-2", "web-3", "web-4"}
	for item, want := range map[string]string{"mail": "web-4", "web": "web-4", "/var/log/syslog": "web-1", "日本": "web-4", "source/3": "web-4"} {
		if got := fallsTo(item, ids); got != want {
			t.Errorf("%s falls to %s, want %s", item, got, want)
		}
	}
	if got := fallsTo("mail", nil); got != "" {
		t.Errorf("with nobody present, the item falls to %q", got)
	}
}

// Each member gets about as many items as the others, and one that goes leaves its items to all of
// them.
func TestItemsAreDividedEvenly(t *testing.T) {
	const members, items = 10, 10000
	var ids []string
	for i := range members {
		ids = append(ids, fmt.Sprint("member-", i))
	}
	all, rest := make(map[string]int), make(map[string]int)
	for i := range items {
		item := fmt.Sprint("item-", i)
		owner := fallsTo(item, ids)
		all[owner]++
		if owner == ids[0] {
			rest[fallsTo(item, ids[1:])]++
		} else if next := fallsTo(item, ids[1:]); next != owner {
			t.Fatalf("%s moves from %s to %s, and another has gone", item, owner, next)
		}
	}
	for _, id := range ids {
		if n := all[id]; n < 900 || n > 1100 {
			t.Errorf("%s has %d of %d items", id, n, items)
		}
		if n := rest[id]; id != ids[0] && (n < 70 || n > 155) {
			t.Errorf("%s has got %d of the %d items of one that has gone", id, n, all[ids[0]])
		}
	}
}

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
