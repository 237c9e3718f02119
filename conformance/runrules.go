package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
)

// A running is a Run that goes on, whose function works until its context ends or
// until it is told to stop.
type running struct {
	began  chan election.Term // each term in which the function was called
	losing chan election.Term // each term whose end the function has seen
	finish chan error         // what the function is to return; it waits for it, also after its context ended, where hold is set
	result chan error
}

// runs runs a function that returns when its context ends.
func (c *client) runs(ctx context.Context) *running { return c.runsHolding(ctx, false) }

// runsHolding runs a function that, with hold, returns only when told.
func (c *client) runsHolding(ctx context.Context, hold bool) *running {
	r := &running{
		began:  make(chan election.Term, 100),
		losing: make(chan election.Term, 100),
		finish: make(chan error, 1),
		result: make(chan error, 1),
	}
	e := c.elect()
	c.t.spawn(func() {
		r.result <- e.Run(ctx, func(ctx context.Context, term election.Term) error {
			r.began <- term
			select {
			case err := <-r.finish:
				return err
			case <-ctx.Done():
				r.losing <- term
			}
			if hold {
				select {
				case err := <-r.finish:
					return err
				case <-c.t.ctx.Done():
				}
			}
			return context.Cause(ctx)
		})
	})
	return r
}

var errWork = errors.New("the work failed")

var runRules = []Rule{{
	ID:    "Run.returns",
	Title: "Run returns what the function returns, and resigns",
	Text:  "When the function returns an error, or nil, while it leads, Run returns just that, and its member is gone.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		for _, want := range []error{errWork, nil} {
			r := a.runs(t.ctx)
			await(t, r.began, t.h.soon(), "the function was not called")
			r.finish <- want
			if err := await(t, r.result, t.h.soon(), "Run has not returned"); err != want {
				t.fatalf("Run returned %v; the function returned %v", err, want)
			}
			b.shows()
		}
	},
}, {
	ID:    "Run.resigned",
	Title: "Run returns when its function has resigned",
	Text:  "When the function resigns its term by itself, the next in line leads soon, while the function goes on. When that returns an error, or nil, Run returns just that, has not called the function again, and its candidate stands in line no more.",
	check: func(t *trial) {
		for _, want := range []error{errWork, nil} {
			a, b := t.client(), t.client()
			r := a.runsHolding(t.ctx, true)
			term := await(t, r.began, t.h.soon(), "the function was not called")
			next := b.campaigns(t.ctx)
			if err := term.Resign(t.ctx); err != nil {
				t.fatalf("Resign: %v", err)
			}
			later := next.wins(t.h.soon())
			r.finish <- want
			if err := await(t, r.result, t.h.soon(), "Run has not returned after its function had resigned"); err != want {
				t.fatalf("Run returned %v; the function returned %v", err, want)
			}
			if returned(r.began) {
				t.fatalf("Run called its function again after that had resigned")
			}
			b.shows(later.Member())
			later.Resign(t.ctx)
		}
	},
}, {
	ID:    "Run.waits",
	Title: "Run resigns only when the function has returned",
	Text:  "When Run's context ends, the function's context ends soon. While the function still works, its member stands and nobody else leads, for half a TTL; when it has returned, Run returns the cause of its context, and the next one leads.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		ctx, cancel := context.WithCancelCause(t.ctx)
		defer cancel(nil)
		r := a.runsHolding(ctx, true)
		term := await(t, r.began, t.h.soon(), "the function was not called")
		next := b.campaigns(t.ctx)
		cancel(errCancelled)
		await(t, r.losing, t.h.soon(), "the function's context has not ended")
		t.steady(t.h.TTL/2, "Run resigned while the function worked", func() bool {
			return a.stands(term.Member()) && !returned(next.won) && !returned(r.result)
		})
		r.finish <- errWork
		if err := await(t, r.result, t.h.soon(), "Run has not returned"); !errors.Is(err, errCancelled) {
			t.fatalf("Run returned %v; want the cause of its context", err)
		}
		next.wins(t.h.soon())
	},
}, {
	ID:    "Run.cancelled",
	Title: "Run that is cancelled while it waits returns the cause",
	Text:  "When the context of a Run ends that stands in line behind a leader, it returns the cause soon, never nil, has never called the function, and stands in line no more.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		term := a.campaign()
		ctx, cancel := context.WithCancelCause(t.ctx)
		defer cancel(nil)
		r := b.runs(ctx)
		t.poll(t.h.soon(), "the second stands in line", func() bool { return len(a.members()) == 2 })
		cancel(errCancelled)
		if err := await(t, r.result, t.h.soon(), "Run has not returned"); !errors.Is(err, errCancelled) {
			t.fatalf("Run returned %v; want the cause of its context", err)
		}
		if returned(r.began) {
			t.fatalf("Run called its function behind a leader")
		}
		a.shows(term.Member())
	},
}, {
	ID:    "Run.panic",
	Title: "a panic of the function resigns, and is passed on",
	Text:  "When the function panics, Run resigns and panics with the same value; the next in line leads soon.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		leads := make(chan error)
		panicked := make(chan any, 1)
		e := a.elect()
		t.spawn(func() {
			defer func() { panicked <- recover() }()
			e.Run(t.ctx, func(context.Context, election.Term) error {
				leads <- nil
				<-leads
				panic("the work is broken")
			})
		})
		await(t, leads, t.h.soon(), "the function was not called")
		next := b.campaigns(t.ctx)
		close(leads)
		if p := await(t, panicked, t.h.soon(), "the panic has not come through Run"); fmt.Sprint(p) != "the work is broken" {
			t.fatalf("Run panicked with %v", p)
		}
		next.wins(t.h.soon())
	},
}, {
	ID:    "Run.lost",
	Title: "Run campaigns again after a loss, and waits for the function",
	Text:  "When the coordinator ends the session of a Run that leads, the function's context ends after a crash at the latest, with a LostError. While the function still works it is not called again; when it has returned its result is dropped, and it is called again with a larger token after recovery.",
	Needs: []Fault{Expire},
	check: func(t *trial) {
		a := t.client()
		r := a.runsHolding(t.ctx, true)
		term := await(t, r.began, t.h.soon(), "the function was not called")
		for range 2 {
			a.expire()
			await(t, r.losing, t.h.crash(), "the function's context has not ended")
			t.lost(term, elect.ErrLost)
			t.steady(t.h.TTL/4, "Run went on while the function worked", func() bool {
				return !returned(r.began) && !returned(r.result)
			})
			r.finish <- errWork
			again := await(t, r.began, t.h.recovery(), "the function was not called again")
			if again.Token() <= term.Token() {
				t.fatalf("the token went from %d to %d", term.Token(), again.Token())
			}
			term = again
		}
		r.finish <- errWork
		if err := await(t, r.result, t.h.soon(), "Run has not returned"); err != errWork {
			t.fatalf("Run returned %v; the function returned %v", err, errWork)
		}
	},
}, {
	ID:    "Run.sealed",
	Title: "Run ends where the election has moved",
	Text:  "When the election is sealed, a Run that waits returns a SealedError with the new address after its slow re-check.",
	Needs: []Fault{Pins},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		m := a.join("x")
		r := b.runs(t.ctx)
		t.poll(t.h.soon(), "the second stands in line", func() bool { return len(a.members()) == 2 })
		sealed := a.lineNow().Header
		sealed.Sealed = "memory:elsewhere"
		a.pin(m, sealed, a.lineNow().Version)
		err := await(t, r.result, t.h.recheck()+t.h.soon(), "Run behind a seal has not returned")
		if sealedTo(err) != "memory:elsewhere" {
			t.fatalf("Run behind a seal returned %v; want a SealedError", err)
		}
		a.shows(m)
	},
}}
