package record_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
	"github.com/succession-dev/succession/recipes/record"
)

// What belongs to an election is not overwritten, whatever call writes and whenever the election came.
func TestWhatBelongsToAnElection(t *testing.T) {
	calls := map[string]func(ctx context.Context, v *record.Value[string], term *elect.Term) error{
		"Set": func(ctx context.Context, v *record.Value[string], _ *elect.Term) error {
			_, err := v.Set(ctx, "x")
			return err
		},
		"SetAs": func(ctx context.Context, v *record.Value[string], g *elect.Term) error {
			_, err := v.SetAs(ctx, g, 0, "x")
			return err
		},
		"Delete": func(ctx context.Context, v *record.Value[string], _ *elect.Term) error {
			return v.Delete(ctx, backend.Any)
		},
		"Update": func(ctx context.Context, v *record.Value[string], _ *elect.Term) error {
			_, err := v.Update(ctx, func(string) (string, error) { return "x", nil })
			return err
		},
		"Compare": func(ctx context.Context, v *record.Value[string], _ *elect.Term) error {
			e, err := v.Get(ctx)
			if err == nil {
				_, err = v.CompareAndSet(ctx, e.Version, "x")
			}
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			c := memory.New(nil)
			b := c.Client("a")
			defer b.Close()
			lead := func(election string) *elect.Term {
				term, err := elect.New(b, election, nil).Campaign(t.Context())
				if err == nil {
					err = term.Acknowledge(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { term.Resign(context.Background()) })
				return term
			}
			other := lead("other")
			lead("app/reports")
			before := c.Record("app/reports")
			for _, taken := range []string{"app/reports", "app/reports/config", "app/reports.fence", "app/reports.history", "app/reports.unready", "app/reports.unready/7"} {
				if err := call(t.Context(), record.New(b, taken, record.Text()), other); !errors.Is(err, backend.ErrInvalid) {
					t.Errorf("on %s it returned %v; want ErrInvalid", taken, err)
				}
			}
			if after := c.Record("app/reports"); after.Version != before.Version {
				t.Errorf("the header of the election has become %q", after.Value)
			}
			// An election that comes later, with the same name.
			v := record.New(b, "late", record.Text())
			if err := call(t.Context(), v, other); err != nil {
				t.Fatal(err)
			}
			lead("late")
			if err := call(t.Context(), v, other); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("on a record that an election has come to use, it returned %v; want ErrInvalid", err)
			}
			if err := call(t.Context(), record.New(b, "app/reports-config", record.Text()), other); err != nil {
				t.Errorf("on a record beside an election it returned %v", err)
			}
		})
	}
}

// An election that comes into being while a leader writes keeps its header.
func TestSetAsBesideANewElection(t *testing.T) {
	c := memory.New(nil)
	b, other := c.Client("a"), c.Client("b")
	defer b.Close()
	defer other.Close()
	g, err := elect.New(b, "other", nil).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer g.Resign(context.Background())
	lead := sync.OnceFunc(func() {
		term, err := elect.New(other, "late", nil).Campaign(t.Context())
		if err == nil {
			err = term.Acknowledge(t.Context())
		}
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { term.Resign(context.Background()) })
	})
	v := record.New(view.Of(b, func(s backend.Session) backend.Session { return afterGet{s, lead} }), "late", record.Text())
	_, err = v.SetAs(t.Context(), g, backend.Any, "x")
	if !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	if got := string(c.Record("late").Value); !strings.Contains(got, "acknowledged") {
		t.Errorf("the header has become %q", got)
	}
}

// An afterGet calls f when a record has been read.
type afterGet struct {
	backend.Session
	f func()
}

func (s afterGet) Get(ctx context.Context, name string) (backend.Record, error) {
	defer s.f()
	return s.Session.Get(ctx, name)
}

// A record that only one process writes takes a round trip, as its version is known.
func TestSetCosts(t *testing.T) {
	c := memory.New(nil)
	b, other := c.Client("a"), c.Client("b")
	defer b.Close()
	defer other.Close()
	v, w := record.New(b, "config/limits", record.Text()), record.New(other, "config/limits", record.Text())
	sets := func(v *record.Value[string], text string) int {
		before := c.Requests().Of("a")
		if _, err := v.Set(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		return int(c.Requests().Of("a") - before)
	}
	sets(v, "1")
	if n := sets(v, "2"); n != 1 {
		t.Errorf("a second Set sends %d requests", n)
	}
	sets(w, "3")
	if n := sets(v, "4"); n != 3 {
		t.Errorf("Set after another's sends %d requests, want 3", n)
	}
	if got := string(c.Record("config/limits").Value); got != "4" {
		t.Errorf("the record is %q, want 4", got)
	}
}

// A term of a migration knows a record by other versions than a handle on one of its two coordinators. SetAs
// writes all the same, whatever the version is, and costs no more than a few requests.
func TestSetAsOfAMigration(t *testing.T) {
	for at, side := range []string{"old", "new"} {
		for _, moved := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, moved %v", side, moved), func(t *testing.T) {
				var c [2]*memory.Coordinator
				for i := range c {
					c[i] = memory.New(&memory.Options{Index: uint64(500 * i)})
				}
				open := func(begin bool) *migrate.Backend {
					b := migrate.New(c[0].Client("a"), c[1].Client("a"), &migrate.Options{From: "memory:old", To: "memory:new", Begin: begin})
					t.Cleanup(func() { b.Close() })
					return b
				}
				term, err := elect.New(open(true), "reports", nil).Campaign(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer term.Resign(context.Background())
				if moved {
					if _, err := open(false).Cutover(t.Context(), "reports"); err != nil {
						t.Fatal(err)
					}
				}
				plain := c[at].Client("plain")
				defer plain.Close()
				v := record.New(plain, "limits", record.Text())
				if _, err := v.Set(t.Context(), "before"); err != nil {
					t.Fatal(err)
				}
				before := c[at].Requests().Of("plain")
				for _, value := range []string{"one", "two"} {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					if _, err := v.SetAs(ctx, term, 0, value); err != nil {
						t.Errorf("%s: %v", value, err)
					}
				}
				if n := c[at].Requests().Of("plain") - before; n > 4 {
					t.Errorf("the handle has sent %d requests", n)
				}
			})
		}
	}
}
