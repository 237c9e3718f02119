package rendezvous_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/succession-dev/succession/internal/rendezvous"
)

func numbered(what string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(what, "-", i))
	}
	return all
}

// Each of the several gets as many as the others, or one more.
func TestDivideIsEven(t *testing.T) {
	for _, n := range []struct{ several, names int }{{1, 5}, {3, 8}, {5, 20}, {5, 3}, {7, 0}, {50, 200}, {10, 999}} {
		names, several := numbered("item", n.names), numbered("member", n.several)
		falls := rendezvous.Divide(names, several)
		each := make(map[string]int)
		for _, name := range names {
			if !slices.Contains(several, falls[name]) {
				t.Fatalf("%d over %d: %s falls to %q", n.names, n.several, name, falls[name])
			}
			each[falls[name]]++
		}
		for _, one := range several {
			if few := n.names / n.several; each[one] < few || each[one] > few+1 {
				t.Errorf("%d over %d: %s has %d", n.names, n.several, one, each[one])
			}
		}
		slices.Reverse(names)
		slices.Reverse(several)
		if !maps.Equal(falls, rendezvous.Divide(names, several)) {
			t.Errorf("%d over %d: another order has another result", n.names, n.several)
		}
	}
	each := make(map[string]int)
	for _, name := range numbered("alone", 1000) {
		each[rendezvous.Divide([]string{name}, []string{"a", "b"})[name]]++
	}
	if each["a"] < 400 || each["b"] < 400 {
		t.Errorf("of names that stand alone, %d fall to a and %d to b", each["a"], each["b"])
	}
	if falls := rendezvous.Divide([]string{"mail"}, nil); len(falls) != 0 {
		t.Errorf("over none: %v", falls)
	}
}

// Processes of different versions must agree: what a name falls to never changes.
func TestDivideIsStable(t *testing.T) {
	want := map[string]string{"mail": "web-1", "web": "web-2", "/var/log/syslog": "web-0", "日本": "web-1", "source/3": "web-0"}
	if got := rendezvous.Divide([]string{"mail", "web", "/var/log/syslog", "日本", "source/3"}, numbered("web", 3)); !maps.Equal(got, want) {
		t.Errorf("the names fall to %v, want %v", got, want)
	}
}

// Where one comes or goes, its share must move. Few others do.
func TestDivideMovesFew(t *testing.T) {
	for _, n := range []struct{ several, names int }{{3, 8}, {5, 20}, {10, 1000}, {50, 200}, {20, 2000}} {
		names := numbered("item", n.names)
		moved, must := 0, 0
		const rounds = 20
		for round := range rounds {
			several := numbered(fmt.Sprint("member-", round), n.several+1)
			fewer, more := rendezvous.Divide(names, several[1:]), rendezvous.Divide(names, several)
			for _, name := range names {
				if fewer[name] != more[name] {
					moved++
				}
				if more[name] == several[0] {
					must++
				}
			}
		}
		t.Logf("%d over %d: %.1f move where one comes, %.1f must", n.names, n.several, float64(moved)/rounds, float64(must)/rounds)
		if moved > 4*must {
			t.Errorf("%d over %d: %d moved where %d had to", n.names, n.several, moved, must)
		}
	}
}

func BenchmarkDivide(b *testing.B) {
	names, several := numbered("item", 2000), numbered("member", 100)
	for b.Loop() {
		rendezvous.Divide(names, several)
	}
}
