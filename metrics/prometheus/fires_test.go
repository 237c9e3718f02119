//go:build linux

package prometheus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/lane"
)

// The alerts about processes that are cut off fire on what a real Prometheus has scraped, of those processes, and of no others; and
// while an election is paused none does. Here they wait a second, and look back a minute.
func TestAlertsFire(t *testing.T) {
	lane.All(t)
	all, c := startCandidates(t, 3)
	s := startServer(t, hurried(t), []string{all[0].addr, all[1].addr, all[2].addr})
	firing := func() (names []string) {
		t.Helper()
		got, err := s.query(t.Context(), `ALERTS{alertstate="firing"}`)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range got {
			names = append(names, strings.TrimSuffix(x.labels["alertname"]+" "+x.labels["instance"], " "))
		}
		slices.Sort(names)
		return names
	}
	// fire waits until these alerts fire and no others.
	fire := func(want ...string) {
		t.Helper()
		slices.Sort(want)
		var got []string
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if got = firing(); slices.Equal(got, want) {
				return
			}
		}
		t.Fatalf("%q fire; want %q", got, want)
	}
	// holds waits until Prometheus has seen for five seconds that the expression has a value.
	holds := func(expr string, value float64) {
		t.Helper()
		whole := fmt.Sprintf("(count_over_time((%s)[5s:500ms]) >= 9) and on () (min_over_time((%[1]s)[5s:500ms]) == %g) and on () (max_over_time((%[1]s)[5s:500ms]) == %[2]g)", expr, value)
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if got, err := s.query(t.Context(), whole); err != nil {
				t.Fatal(err)
			} else if len(got) == 1 {
				return
			}
		}
		t.Fatalf("%s is not %g for five seconds", expr, value)
	}
	holds("sum(succession_in_line)", 3)
	fire()
	first := leader(all)
	want := []string{"SuccessionNoHeir"}
	for _, k := range all {
		if k != first {
			k.b.Cut()
			want = append(want, "SuccessionNotInLine "+k.addr)
		}
	}
	fire(want...)
	for _, k := range all {
		k.b.Heal()
	}
	holds("sum(succession_in_line)", 3)
	fire()
	pauses(t, c, func() {
		holds("sum(succession_leader)", 0)
		if names := firing(); len(names) > 0 {
			t.Errorf("while the election is paused, %q fire", names)
		}
	})
	holds("sum(succession_leader)", 1)
	c.Pause()
	defer c.Resume()
	fire("SuccessionNobodyLeads", "SuccessionNotInLine "+all[0].addr, "SuccessionNotInLine "+all[1].addr, "SuccessionNotInLine "+all[2].addr)
}

// hurried returns a file with the rules, which wait a second, and look back a minute.
func hurried(t *testing.T) string {
	t.Helper()
	rules := read(t, rulesFile)
	for _, change := range []struct{ from, to string }{
		{`for: \d+m`, "for: 1s"}, {`\[1h:1m\]`, "[1m:1s]"}, {`\[15m:15s\]`, "[1m:1s]"}, {`\[(15|5)m\]`, "[1m]"},
	} {
		from := regexp.MustCompile(change.from)
		if !from.MatchString(rules) {
			t.Fatalf("%s has no %s any more", rulesFile, change.from)
		}
		rules = from.ReplaceAllString(rules, change.to)
	}
	file := filepath.Join(t.TempDir(), "alerts.yml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
