package elect_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

func TestArgumentsAreChecked(t *testing.T) {
	c := memory.New(&memory.Options{TTL: ttl})
	b := client(t, c, "a")
	made := func(b backend.Backend, name string, o *elect.Options) *elect.Election { return elect.New(b, name, o) }
	for what, e := range map[string]*elect.Election{
		"an empty name":                  made(b, "", nil),
		"a name with a slash in front":   made(b, "/reports", nil),
		"the name of a history":          made(b, "reports.history", nil),
		"the name of a fence":            made(b, "reports.fence", nil),
		"the name of a migration's line": made(b, "reports.migrate-both", nil),
		"the name of a home":             made(b, "reports.spread", nil),
		"the name of those not ready":    made(b, "reports.unready", nil),
		"no backend":                     made(nil, "reports", nil),
		"the zero Election":              new(elect.Election),
		"a negative margin":              made(b, "reports", &elect.Options{Margin: -1}),
		"a negative time for resigning":  made(b, "reports", &elect.Options{ResignTimeout: -1}),
		"an ID of two lines":             made(b, "reports", &elect.Options{ID: "two\nlines"}),
		"a value that is too long":       made(b, "reports", &elect.Options{Value: string(make([]byte, backend.MaxValue))}),
		"a margin longer than a session": made(b, "reports", &elect.Options{Margin: time.Hour}), // known only with the session
	} {
		if term, err := e.Campaign(t.Context()); !errors.Is(err, backend.ErrInvalid) || term != nil {
			t.Errorf("%s: Campaign returned %v, %v; want ErrInvalid", what, term, err)
		}
	}
	_, err := made(b, "reports", &elect.Options{Margin: 5*time.Second + 1}).Campaign(t.Context())
	if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "can keep 5s;") {
		t.Errorf("a margin that is a little too long: %v; want ErrInvalid and the longest possible, 5s", err)
	}
	if err := (*elect.Options)(nil).Check(); err != nil {
		t.Errorf("no options: %v", err)
	}
	zero := new(elect.Election)
	_, leader := zero.Leader(t.Context())
	_, _, line := zero.Line(t.Context())
	_, state := zero.State(t.Context())
	for l, err := range zero.Observe(t.Context()) {
		if !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("Observe of the zero Election yielded %+v, %v; want ErrInvalid", l, err)
		}
	}
	for what, err := range map[string]error{
		"Leader": leader, "Line": line, "State": state,
		"Run without a function": made(b, "reports", nil).Run(t.Context(), nil),
	} {
		if !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", what, err)
		}
	}
}
