// Package move checks that live elections move between coordinators.
package move

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	_ "github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/migrate"
	"github.com/succession-dev/succession/spread"
)

// A candidate leads, again and again, until it is ended.
type candidate struct {
	terms chan *elect.Term
	end   func()
}

// stand starts a candidate of the election on the coordinator of a URL, or on a backend.
func stand(t *testing.T, b succession.Backend, name string) *candidate {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &candidate{terms: make(chan *elect.Term, 10)}
	done := make(chan error, 1)
	go func() {
		done <- elect.New(b, name, nil).Run(ctx, func(ctx context.Context, term *elect.Term) error {
			c.terms <- term
			<-ctx.Done()
			return nil
		})
	}()
	ended := false
	c.end = func() {
		if !ended {
			ended = true
			cancel()
			<-done
		}
	}
	t.Cleanup(c.end)
	return c
}

// leads waits for a term, whose token is larger than all before.
func (c *candidate) leads(t *testing.T, newest *uint64) *elect.Term {
	t.Helper()
	select {
	case term := <-c.terms:
		if term.Token() <= *newest {
			t.Errorf("the token %d follows %d", term.Token(), *newest)
		}
		*newest = term.Token()
		return term
	case <-time.After(time.Minute):
		t.Fatal("nobody leads")
		return nil
	}
}

func connectTo(t *testing.T, rawURL string) succession.Backend {
	t.Helper()
	b, err := succession.Connect(t.Context(), rawURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// Check moves elections from the coordinator of one URL to that of the other and back, by migrate and in a spread.
func Check(t *testing.T, here, there string) {
	for way, check := range map[string]func(t *testing.T, here, there string){"migrate": migrated, "spread": spreads} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			check(t, here, there)
		})
	}
}

// migrated moves an election from the one coordinator to the other and back, while somebody leads it.
func migrated(t *testing.T, here, there string) {
	t.Helper()
	name := coordtest.Name(t)
	var newest uint64
	last := stand(t, connectTo(t, here), name)
	last.leads(t, &newest)
	for _, way := range [][2]string{{here, there}, {there, here}} {
		from, to := way[0], way[1]
		op := connectTo(t, "migrate:?from="+url.QueryEscape(from)+"&to="+url.QueryEscape(to)).(*migrate.Backend)
		step := func(what string, f func(context.Context, string) (migrate.Status, error), want migrate.Phase) {
			t.Helper()
			if s, err := f(t.Context(), name); err != nil || s.Phase != want {
				t.Fatalf("%s from %s to %s: %+v, %v", what, from, to, s, err)
			}
		}
		step("begin", op.Begin, migrate.Begun)
		both := stand(t, connectTo(t, "migrate:?from="+url.QueryEscape(from)+"&to="+url.QueryEscape(to)), name)
		last.end()
		term := both.leads(t, &newest)
		step("cutover", op.Cutover, migrate.Moved)
		if err := term.Check(); err != nil {
			t.Errorf("the term did not go on over the cutover: %v", err)
		}
		step("finish", op.Finish, migrate.Moved)
		last = stand(t, connectTo(t, to), name)
		both.end()
		last.leads(t, &newest)
	}
}

// spreads does the same to an election of a spread over both.
func spreads(t *testing.T, here, there string) {
	t.Helper()
	rawURL := "spread:?to=" + url.QueryEscape("here="+here) + "&to=" + url.QueryEscape("there="+there)
	op := connectTo(t, rawURL).(*spread.Backend)
	name := coordtest.Name(t)
	var newest uint64
	one := stand(t, connectTo(t, rawURL), name)
	one.leads(t, &newest)
	home, _, err := op.Where(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	two := stand(t, connectTo(t, rawURL), name)
	at := home.At
	for _, c := range []*candidate{two, one} {
		to := map[string]string{"here": "there", "there": "here"}[at]
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := op.Move(ctx, name, to, nil); err != nil {
			t.Fatalf("move from %s to %s: %v", at, to, err)
		}
		cancel()
		term := c.leads(t, &newest)
		for end := time.Now().Add(time.Minute); ; {
			err := op.Finish(t.Context(), name, nil)
			if err == nil {
				break
			}
			if !errors.Is(err, spread.ErrRefused) || time.Now().After(end) {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond) // it is refused as long as somebody does not know of the move
		}
		if now, _, err := op.Where(t.Context(), name); err != nil || now.At != to {
			t.Errorf("it lives at %+v, %v; want %s", now, err, to)
		}
		if err := term.Check(); err != nil {
			t.Error(err)
		}
		at = to
	}
}
