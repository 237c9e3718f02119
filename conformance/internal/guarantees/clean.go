package guarantees

import (
	"context"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// nobody returns a member that is in no line.
func nobody(t *engine.Trial) backend.Member {
	return backend.Member{Line: t.Name, Key: "n_9999999999", Position: 1 << 40}
}

// useAndClose makes a client use most of its methods, and closes it.
func useAndClose(t *engine.Trial) {
	a := t.Client()
	m, other := a.Join("x"), a.Join("y")
	a.First(m, engine.Now)
	ctx, cancel := context.WithCancel(t.Ctx)
	s := a.Live()
	gone := t.Go("a cancelled Gone", func() error { return s.Gone(ctx, other) })
	_, err := a.Elect().State(t.Ctx)
	t.Want("State", err)
	if t.Can(engine.Records) {
		a.Put(t.Name+"-r", "x", nil)
	}
	a.Leave(m)
	cancel()
	engine.Await(t, gone.Result(), t.Soon(), "a cancelled Gone has not returned")
	a.Closes()
}

var cleanRules = []engine.Rule{{
	ID: "G9.members", Title: "Close leaves no member",
	Text: "When Backend.Close has returned nil, all members of the client are gone for every other client soon; a second Close is not an error, and Session then fails with ErrClosed.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		a.Join("x")
		a.Join("y")
		other := b.Join("z")
		s := a.Live()
		for range 2 {
			a.Closes()
		}
		b.Shows(t.Soon(), other)
		engine.Await(t, s.Done(), t.Soon(), "Done has not closed after Backend.Close")
		ctx, cancel := t.Within(t.Soon())
		defer cancel()
		_, err := a.Session(ctx)
		t.Want("Session after Close", err, backend.ErrClosed)
	},
}, {
	ID: "G9.unused", Title: "a backend without session can be closed",
	Text: "Close of a backend that was never used returns nil soon.",
	Check: func(t *engine.Trial) {
		t.Go("Close of an unused backend", t.Client().Close).Returns(t.Soon())
	},
}, {
	ID: "G9.goroutines", Title: "Close leaves no goroutine",
	Text: "Five clients in turn are opened, used and closed. Soon after, no goroutine is left that was started on their behalf.",
	Check: func(t *engine.Trial) {
		left := t.Started(func() {
			for range 5 {
				useAndClose(t)
			}
		})
		left.End("goroutines are left after Close")
	},
}, {
	ID: "G9.ended-goroutines", Title: "an ended session leaves no goroutine",
	Text:  "Five times a client's session is ended by the coordinator and it opens the next. Soon after the client is closed, no goroutine is left that was started on its behalf.",
	Needs: []engine.Fault{engine.Expire}, Check: func(t *engine.Trial) {
		left := t.Started(func() {
			a := t.Client()
			for range 5 {
				a.First(a.Join("x"), engine.Now)
				a.Expires()
				a.LiveWithin(t.Recovery())
			}
			a.Closes()
		})
		left.End("goroutines are left after Close")
	},
}, {
	ID: "G9.campaigns", Title: "campaigns and terms leave no goroutine",
	Text: "Ten terms are won and resigned and ten campaigns behind a leader are cancelled. No goroutine that they started is left soon after, while the clients live on.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		a.Leave(a.Join("x")) // from now on the session has all that it needs, such as connections and goroutines
		b.Leave(b.Join("x"))
		left := t.Started(func() {
			for range 10 {
				term, err := a.Campaign(t.Ctx)
				t.Want("Campaign", err)
				ctx, cancel := context.WithTimeoutCause(t.Ctx, 2*t.Tick(), engine.ErrCancelled)
				_, err = b.Campaign(ctx)
				t.Want("a cancelled Campaign behind a leader", err, engine.ErrCancelled)
				cancel()
				term.Resign(t.Ctx)
			}
		})
		left.End("goroutines are left after campaigns and terms")
	},
}, {
	ID: "G9.ended-context", Title: "a call with an ended context returns its cause",
	Text: "Every method of a session returns the cause of its context soon when that had ended before the call, and so do Backend.Session of a client without session and Campaign; when a crash would have been noticed nobody stands in line, and nothing is written.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		ctx, cancel := context.WithCancelCause(t.Ctx)
		cancel(engine.ErrCancelled)
		_, err := a.Session(ctx)
		t.Want("Session with an ended context", err, engine.ErrCancelled)
		s := a.Live()
		for _, op := range t.Ops(nobody(t)) {
			t.Go(op.Name+" with an ended context", func() error { return op.Call(ctx, s) }).Returns(t.TTL/10+t.Soon(), engine.ErrCancelled)
		}
		_, err = a.Campaign(ctx)
		t.Want("Campaign with an ended context", err, engine.ErrCancelled)
		b.Settles()
		b.WroteNothing("with an ended context")
	},
}, {
	ID: "G9.cut-context", Title: "a call honours its context while cut off",
	Text:  "While a client is cut off, every method of its session returns soon after its context has ended, with the cause of that, unless it has failed before because the session ended or the coordinator is unavailable. When a crash would have been noticed after healing, nobody stands in line and nothing is written.",
	Needs: []engine.Fault{engine.Cut}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		s := a.Live()
		heal := a.Inject(engine.Cut)
		for _, op := range t.Ops(nobody(t)) {
			ctx, cancel := context.WithTimeoutCause(t.Ctx, t.TTL/20, engine.ErrCancelled)
			t.Go(op.Name+" while cut off", func() error { return op.Call(ctx, s) }).
				Returns(t.TTL/10+t.Soon(), engine.ErrCancelled, backend.ErrSessionEnded, backend.ErrUnavailable)
			cancel()
		}
		heal()
		b.Settles()
		b.WroteNothing("whose context had ended")
	},
}, {
	ID: "G9.cut-session", Title: "Session honours its context while cut off",
	Text:  "A client without session is cut off. Session returns soon after its context has ended, with the cause of that or ErrUnavailable; healed, it returns a session after recovery, and there is one such session.",
	Needs: []engine.Fault{engine.Cut}, Check: func(t *engine.Trial) {
		a := t.Client()
		a.Live()
		a.CloseSession()
		heal := a.Inject(engine.Cut)
		ctx, cancel := context.WithTimeoutCause(t.Ctx, t.TTL/10, engine.ErrCancelled)
		defer cancel()
		t.Go("Session while cut off", func() error { _, err := a.Session(ctx); return err }).
			Returns(t.TTL/10+t.Soon(), engine.ErrCancelled, backend.ErrUnavailable)
		heal()
		reachable(t, a)
		a.First(a.Join("x"), engine.Now)
	},
}, {
	ID: "G9.cut-close", Title: "Close is bounded while cut off",
	Text:  "While a client is cut off, Session.Close returns soon after its context has ended, and Backend.Close within recovery. The members are gone after a crash, Done is closed, and soon no goroutine is left of the client.",
	Needs: []engine.Fault{engine.Cut}, Check: func(t *engine.Trial) {
		b := t.Client()
		var a *engine.Client
		var s backend.Session
		left := t.Started(func() {
			a = t.Client()
			a.Join("x")
			s = a.Live()
			a.Inject(engine.Cut)
			ctx, cancel := context.WithTimeoutCause(t.Ctx, t.TTL/10, engine.ErrCancelled)
			defer cancel()
			began := time.Now()
			err := s.Close(ctx)
			if d := time.Since(began); d > t.TTL/10+t.Soon() {
				t.Fatalf("Session.Close took %v with a context of %v (%v)", d, t.TTL/10, err)
			}
			began = time.Now()
			err = a.Close()
			if d := time.Since(began); d > t.Recovery() {
				t.Fatalf("Backend.Close took %v while cut off (%v)", d, err)
			}
		})
		engine.Await(t, s.Done(), t.Soon(), "Done has not closed after Close")
		b.Shows(t.Crash())
		left.End("goroutines are left after Close while cut off")
	},
}, {
	ID: "G9.blocked", Title: "Close ends what blocks",
	Text: "Gone, Watch, WatchLine, Campaign and Observe that wait when their backend is closed return soon, with ErrSessionEnded or ErrClosed; a leader of another client is not disturbed.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		term := b.Leads()
		waits := []*engine.Call{t.Go("Observe", func() error {
			for _, err := range a.Elect().Observe(t.Ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		})}
		for _, op := range t.Waits(term.Member()) {
			waits = append(waits, a.Go(op))
		}
		candidate := a.Stand(t.Ctx)
		t.Settles(a)
		a.Closes()
		for _, call := range waits {
			call.Returns(t.Soon(), backend.ErrSessionEnded, backend.ErrClosed)
		}
		candidate.GivesUp(t.Soon(), backend.ErrSessionEnded, backend.ErrClosed)
		if err := term.Check(); err != nil {
			t.Fatalf("closing one client ended the term of another: %v", err)
		}
	},
}, {
	ID: "G9.never-nil", Title: "nil, nil is never an answer",
	Text: "Campaign of a backend that is closed, with a name that is not possible, and with a context that ended, returns an error each time.",
	Check: func(t *engine.Trial) {
		a := t.Client()
		_, err := a.In("a//b").Campaign(t.Ctx)
		t.Want("Campaign with an impossible name", err, backend.ErrInvalid)
		ctx, cancel := context.WithCancelCause(t.Ctx)
		cancel(engine.ErrCancelled)
		_, err = a.Campaign(ctx)
		t.Want("Campaign with an ended context", err, engine.ErrCancelled)
		a.Close()
		_, err = a.Campaign(t.Ctx)
		t.Want("Campaign of a closed backend", err, backend.ErrClosed)
	},
}}

// reachable waits until the client has a session again.
func reachable(t *engine.Trial, c *engine.Client) {
	t.Eventually(t.Recovery(), "the client has a session again", func() bool {
		ctx, cancel := t.Within(t.Recovery())
		defer cancel()
		_, err := c.Session(ctx)
		if err != nil && !engine.Is(err, backend.ErrUnavailable, backend.ErrSessionEnded) {
			t.Fatalf("Session: %v", err)
		}
		return err == nil
	})
}
