package guarantees

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/header"
)

// A running is a Run in the background. Its function works until its context ends, or until
// it is told to return.
type running struct {
	*engine.Call
	began  chan election.Term // each term in which the function was called
	losing chan election.Term // each term whose end the function has seen
	finish chan error         // what the function is to return
}

// runs makes the client call Run. With hold, the function returns only when it is told to, even
// after its context has ended.
func runs(t *engine.Trial, c *engine.Client, ctx context.Context, hold bool) *running {
	r := &running{
		began:  make(chan election.Term, 100),
		losing: make(chan election.Term, 100),
		finish: make(chan error, 1),
	}
	e := c.Elect()
	r.Call = t.Go("Run", func() error {
		return e.Run(ctx, func(ctx context.Context, term election.Term) error {
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
				case <-t.Ctx.Done():
				}
			}
			return context.Cause(ctx)
		})
	})
	return r
}

// works waits until the function has been called, and returns its term.
func (r *running) works(t *engine.Trial, d time.Duration) election.Term {
	return engine.Await(t, r.began, d, "Run has not called its function")
}

// returnsAs tells the function to return want, and checks that Run returns just that.
func (r *running) returnsAs(t *engine.Trial, want error) {
	r.finish <- want
	if err := engine.Await(t, r.Result(), t.Soon(), "Run has not returned after its function"); err != want {
		t.Fatalf("Run returned %v; the function returned %v", err, want)
	}
}

var errWork = errors.New("the work failed")

var runRules = []engine.Rule{{
	ID: "Run.returns", Title: "Run returns what the function returns, and resigns",
	Text: "When the function returns an error, or nil, while it leads, Run returns just that, and its member is gone.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		for _, want := range []error{errWork, nil} {
			r := runs(t, a, t.Ctx, false)
			r.works(t, t.Soon())
			r.returnsAs(t, want)
			b.Shows(t.Soon())
		}
	},
}, {
	ID: "Run.resigned", Title: "Run returns when its function has resigned",
	Text: "When the function resigns its term by itself, the next in line leads soon, while the function goes on. When that returns an error, or nil, Run returns just that, has not called the function again, and its candidate stands in line no more.",
	Check: func(t *engine.Trial) {
		for _, want := range []error{errWork, nil} {
			a, b := t.Client(), t.Client()
			r := runs(t, a, t.Ctx, true)
			term := r.works(t, t.Soon())
			next := b.Stand(t.Ctx)
			t.Want("Resign", term.Resign(t.Ctx))
			later := next.Wins(t.Soon())
			r.returnsAs(t, want)
			if engine.Arrived(r.began) {
				t.Fatalf("Run called its function again after that had resigned")
			}
			b.Shows(t.Soon(), later.Member())
			later.Resign(t.Ctx)
		}
	},
}, {
	ID: "Run.waits", Title: "Run resigns only when the function has returned",
	Text: "When Run's context ends, the function's context ends soon. While the function still works, its member stands and nobody else leads, for half a TTL; when it has failed, Run returns its error, and the next one leads.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		ctx, cancel := context.WithCancelCause(t.Ctx)
		defer cancel(nil)
		r := runs(t, a, ctx, true)
		term := r.works(t, t.Soon())
		next := b.Stand(t.Ctx)
		cancel(engine.ErrCancelled)
		engine.Await(t, r.losing, t.Soon(), "the function's context has not ended")
		t.Always(t.TTL/2, "Run resigned while the function worked", func() bool {
			return a.Stands(term.Member()) && !next.Leading() && !r.Returned()
		})
		r.finish <- errWork
		r.Returns(t.Soon(), errWork)
		next.Wins(t.Soon())
	},
}, {
	ID: "Run.cancelled", Title: "Run that is cancelled while it waits returns the cause",
	Text: "When the context of a Run ends that stands in line behind a leader, it returns the cause soon, never nil, has never called the function, and stands in line no more.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		term := a.Leads()
		ctx, cancel := context.WithCancelCause(t.Ctx)
		defer cancel(nil)
		r := runs(t, b, ctx, false)
		t.Eventually(t.Soon(), "the second stands in line", func() bool { return len(a.Members()) == 2 })
		cancel(engine.ErrCancelled)
		r.Returns(t.Soon(), engine.ErrCancelled)
		if engine.Arrived(r.began) {
			t.Fatalf("Run called its function behind a leader")
		}
		a.Shows(t.Soon(), term.Member())
	},
}, {
	ID: "Run.panic", Title: "a panic of the function resigns, and is passed on",
	Text: "When the function panics, Run resigns and panics with the same value; the next in line leads soon.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		leads := make(chan error)
		var panicked any
		e := a.Elect()
		run := t.Go("Run", func() error {
			defer func() { panicked = recover() }()
			return e.Run(t.Ctx, func(context.Context, election.Term) error {
				leads <- nil
				<-leads
				panic("the work is broken")
			})
		})
		engine.Await(t, leads, t.Soon(), "the function was not called")
		next := b.Stand(t.Ctx)
		close(leads)
		if run.Returns(t.Soon()); fmt.Sprint(panicked) != "the work is broken" {
			t.Fatalf("Run panicked with %v", panicked)
		}
		next.Wins(t.Soon())
	},
}, {
	ID: "Run.lost", Title: "Run campaigns again after a loss, and waits for the function",
	Text:  "When the coordinator ends the session of a Run that leads, the function's context ends after a crash at the latest, with a LostError. While the function still works it is not called again; when it has returned its result is dropped, and it is called again with a larger token after recovery.",
	Needs: []engine.Fault{engine.Expire}, Check: func(t *engine.Trial) {
		a := t.Client()
		r := runs(t, a, t.Ctx, true)
		term := r.works(t, t.Soon())
		for range 2 {
			a.Inject(engine.Expire)
			engine.Await(t, r.losing, t.Crash(), "the function's context has not ended")
			lost(t, term, elect.ErrLost)
			t.Always(t.TTL/4, "Run went on while the function worked", func() bool {
				return !engine.Arrived(r.began) && !r.Returned()
			})
			r.finish <- errWork
			again := r.works(t, t.Recovery())
			if again.Token() <= term.Token() {
				t.Fatalf("the token went from %d to %d", term.Token(), again.Token())
			}
			term = again
		}
		r.returnsAs(t, errWork)
	},
}, {
	ID: "Run.sealed", Title: "Run ends where the election has moved",
	Text:  "When the leader is pinned as the seal, three Runs that wait one behind the other return a SealedError with the new address, each after a slow re-check at most, and leave the line.",
	Needs: []engine.Fault{engine.Pins}, Check: func(t *engine.Trial) {
		a := t.Client()
		m := a.Join("x")
		waiting := runsBehind(t, a, 3)
		a.Pin(m, func(h *header.Header) { h.Sealed = "memory:elsewhere" })
		areSealed(t, waiting)
		a.Shows(t.Soon(), m)
	},
}, {
	ID: "Run.sealed-gate", Title: "Run behind a gate ends where the election has moved",
	Text:  "A gate stands at the head of the line, and three Runs wait behind it, one behind the other. The header then says that the election has moved, and the gate stands as before: each Run returns a SealedError with the new address, after a slow re-check at most, and leaves the line.",
	Needs: []engine.Fault{engine.Pins, engine.Records}, Check: func(t *engine.Trial) {
		a := t.Client()
		gate := a.Join("gate")
		a.Pin(gate, nil)
		waiting := runsBehind(t, a, 3)
		a.PutHeader(func(h *header.Header) { h.Sealed = "memory:elsewhere" })
		areSealed(t, waiting)
		a.Shows(t.Soon(), gate)
	},
}}

// runsBehind has n Runs of other clients stand behind the one that has joined the line.
func runsBehind(t *engine.Trial, a *engine.Client, n int) (waiting []*running) {
	for i := range n {
		waiting = append(waiting, runs(t, t.Client(), t.Ctx, false))
		t.Eventually(t.Soon(), "the next one stands in line", func() bool { return len(a.Members()) == i+2 })
	}
	return waiting
}

// areSealed checks that all who wait are told where the election has moved.
func areSealed(t *engine.Trial, waiting []*running) {
	for _, r := range waiting {
		if err := r.Returns(t.Recheck()+t.Soon(), backend.ErrSealed); engine.SealedTo(err) != "memory:elsewhere" {
			t.Fatalf("Run in an election that has moved returned %v; want a SealedError with the address", err)
		}
	}
}
