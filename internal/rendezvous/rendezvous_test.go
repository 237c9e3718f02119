package rendezvous_test

import (
	"fmt"
	"testing"

	"github.com/succession-dev/succession/internal/rendezvous"
)

// Processes of different versions must agree: what a name falls to never changes.
func TestChoose(t *testing.T) {
	several := []string{"web-1", "web-2", "web-3", "web-4"}
	for name, want := range map[string]string{"mail": "web-4", "web": "web-4", "/var/log/syslog": "web-1", "日本": "web-4", "source/3": "web-4"} {
		if got := rendezvous.Choose(name, several); got != want {
			t.Errorf("%s falls to %s, want %s", name, got, want)
		}
	}
	if got := rendezvous.Choose("mail", nil); got != "" {
		t.Errorf("among none, the name falls to %q", got)
	}
}

// Each of the several gets about as many names as the others, and one that goes leaves its names to
// all of them.
func TestNamesAreDividedEvenly(t *testing.T) {
	const n, names = 10, 10000
	var several []string
	for i := range n {
		several = append(several, fmt.Sprint("member-", i))
	}
	all, rest := make(map[string]int), make(map[string]int)
	for i := range names {
		name := fmt.Sprint("item-", i)
		one := rendezvous.Choose(name, several)
		all[one]++
		if one == several[0] {
			rest[rendezvous.Choose(name, several[1:])]++
		} else if next := rendezvous.Choose(name, several[1:]); next != one {
			t.Fatalf("%s moves from %s to %s, and another has gone", name, one, next)
		}
	}
	for _, one := range several {
		if n := all[one]; n < 900 || n > 1100 {
			t.Errorf("%s has %d of %d names", one, n, names)
		}
		if n := rest[one]; one != several[0] && (n < 70 || n > 155) {
			t.Errorf("%s has got %d of the %d names of one that has gone", one, n, all[several[0]])
		}
	}
}
