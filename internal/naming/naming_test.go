package naming_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	. "github.com/succession-dev/succession/internal/naming"
)

// No name of the table is also another one of the same NAME, and the page has all of them.
func TestTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]Owner)
	for _, r := range Table {
		if row := fmt.Sprintf("\n| %s | `NAME%s%s` | %s | %s |\n", r.Owner, r.Suffix, r.Next, r.Use, r.Says); !strings.Contains(string(page), row) {
			t.Errorf("docs/recipes.md lacks the row%s", row)
		}
		if owner, twice := seen[r.Suffix]; twice && owner != r.Owner {
			t.Errorf("%s and %s both use NAME%s", owner, r.Owner, r.Suffix)
		}
		seen[r.Suffix] = r.Owner
	}
	if rows := strings.Count(string(page), "\n| ") - strings.Count(strings.Split(string(page), "| of | name |")[0], "\n| "); rows < len(Table) {
		t.Errorf("the page has %d rows, and the table %d", rows, len(Table))
	}
}

// A name is allowed as long as all names beside it have room.
func TestCheck(t *testing.T) {
	for owner, longest := range map[Owner]int{
		Lock: 0, Semaphore: len("-waiting"), Queue: len("-claims"), Barrier: len("-arrivals"),
		Standby: len("-position"), Group: len("-values/18446744073709551615"), Pool: len("-assigned/18446744073709551615"),
	} {
		name := strings.Repeat("x", backend.MaxName-longest)
		if err := Check(owner, name); err != nil {
			t.Errorf("a %s with a name of %d bytes: %v", owner, len(name), err)
		}
		err := Check(owner, name+"x")
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprintf("at most %d", backend.MaxName-longest)) {
			t.Errorf("a %s with a name of %d bytes: %v", owner, len(name)+1, err)
		}
	}
}

func TestCheckElection(t *testing.T) {
	long := strings.Repeat("x", backend.MaxName-len(History)+1)
	for name, want := range map[string][2]bool{ // whether it is allowed, without a history and with one
		"jobs": {true, true}, "no//name": {}, "jobs.fence": {}, ".spread": {}, "jobs.migrate-both": {}, long: {true, false}, long[1:]: {true, true},
	} {
		for i, history := range []bool{false, true} {
			if err := CheckElection(name, history); (err == nil) != want[i] || err != nil && !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("%q with a history: %t: %v", name, history, err)
			}
		}
	}
}

func TestKept(t *testing.T) {
	type row struct {
		of string
		by Owner
	}
	for name, want := range map[string]row{
		"jobs": {}, ".fence": {}, ".spreadsheet": {}, "jobs-items": {}, "jobs.migrate": {},
		"jobs.fence": {"jobs", Election}, "a/jobs.history": {"a/jobs", Election}, "jobs.unready": {"jobs", Election}, "jobs.unready/7": {"jobs", Election},
		"jobs.migrate-both": {"jobs", Migration}, "jobs.history.migrate-home": {"jobs.history", Migration},
		"jobs.spread": {"jobs", Spread}, ".spread": {"", Spread}, ".spread-moves": {"", Spread},
	} {
		if of, by, kept := Kept(name); (row{of, by}) != want || kept != (want != row{}) {
			t.Errorf("%s: %q, %q, %t; want %+v", name, of, by, kept, want)
		}
	}
}

// What stands beside two names is never the same, and always a name.
func TestBeside(t *testing.T) {
	folder := strings.Repeat("x", backend.MaxName-20) + "/"
	long := strings.Repeat("x", backend.MaxName)
	seen := make(map[string]string)
	for _, name := range []string{"e", long, long[1:], long[:backend.MaxName-1] + "y", long[2:], folder + "a", folder + "abcdefghij", folder + "abcdefghijk"} {
		got := Beside(name, "-y")
		if other, found := seen[got]; found || backend.CheckName(got) != nil || !strings.HasSuffix(got, "-y") {
			t.Errorf("beside %s stands %s, as beside %q: %v", name, got, other, backend.CheckName(got))
		}
		if seen[got] = name; len(name) < backend.MaxName-1 && got != name+"-y" {
			t.Errorf("beside %s stands %s", name, got)
		}
	}
}

// A line may be that of a task wherever -run- stands in its name; a task is one segment.
func TestOfTask(t *testing.T) {
	for line, want := range map[string]string{
		"bus-run-orders":   "bus-tasks/orders bus-position/orders",
		"a/bus-run-orders": "a/bus-tasks/orders a/bus-position/orders",
		"a-run-b-run-c":    "a-tasks/b-run-c a-position/b-run-c a-run-b-tasks/c a-run-b-position/c",
		"a-run-b/c":        "", "-run-a": "", "a-run-": "", "reports": "",
	} {
		if got := strings.Join(OfTask(line), " "); got != want {
			t.Errorf("the line %q is that of a task with %q, want %q", line, got, want)
		}
	}
}
