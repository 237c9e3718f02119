package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
)

// everyOp calls every method of a session that blocks or not, in the line of the
// trial with a member of its own, and expects each to return soon.
func (t *trial) everyOp(s backend.Session, ctx func() (context.Context, context.CancelFunc), judge func(name string, err error)) {
	for _, f := range methods(t) {
		ctx, cancel := ctx()
		result := t.async(func() error { return f.call(ctx, s, t.someone()) })
		err := await(t, result, t.h.TTL/10+t.h.soon(), f.name+" has not returned after its context ended")
		cancel()
		judge(f.name, err)
	}
}

// someone is a member that no line has.
func (t *trial) someone() backend.Member {
	return backend.Member{Line: t.line, Key: "n_9999999999", Position: 1 << 40}
}

// uses a client for about all that there is, and closes it.
func (t *trial) useAndClose() {
	a := t.client()
	m, other := a.join("x"), a.join("y")
	a.leads(m)
	ctx, cancel := context.WithCancel(t.ctx)
	done := t.async(func() error { return a.live().Gone(ctx, other) })
	term := a.elect()
	if _, err := term.Leader(t.ctx); err != nil {
		t.fatalf("Leader: %v", err)
	}
	if t.h.can(Records) {
		a.put(t.line+"-r", "x", nil)
	}
	a.leave(m)
	cancel()
	await(t, done, t.h.soon(), "a cancelled Gone has not returned")
	if err := a.Close(); err != nil {
		t.fatalf("Close: %v", err)
	}
}

var cleanRules = []Rule{{
	ID:    "G9.members",
	Title: "Close leaves no member",
	Text:  "When Backend.Close has returned nil, all members of the client are gone for every other client soon; a second Close is not an error, and Session then fails with ErrClosed.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		a.join("x")
		a.join("y")
		other := b.join("z")
		s := a.live()
		for range 2 {
			if err := a.Close(); err != nil {
				t.fatalf("Close: %v", err)
			}
		}
		b.shows(other)
		await(t, s.Done(), t.h.soon(), "Done has not closed after Backend.Close")
		ctx, cancel := t.within(t.h.soon())
		defer cancel()
		if _, err := a.Session(ctx); !errors.Is(err, backend.ErrClosed) {
			t.fatalf("Session after Close returned %v; want ErrClosed", err)
		}
	},
}, {
	ID:    "G9.unused",
	Title: "a backend without session can be closed",
	Text:  "Close of a backend that was never used returns nil soon.",
	check: func(t *trial) {
		a := t.client()
		if err := await(t, t.async(a.Close), t.h.soon(), "Close of an unused backend has not returned"); err != nil {
			t.fatalf("Close: %v", err)
		}
	},
}, {
	ID:    "G9.goroutines",
	Title: "Close leaves no goroutine",
	Text:  "Five clients in turn are opened, used and closed. Soon after, no goroutine is left that was started on their behalf.",
	check: func(t *trial) {
		left := t.labelled(func() {
			for range 5 {
				t.useAndClose()
			}
		})
		t.nobodyLeft(left, "goroutines are left after Close")
	},
}, {
	ID:    "G9.ended-goroutines",
	Title: "an ended session leaves no goroutine",
	Text:  "Five times a client's session is ended by the coordinator and it opens the next. Soon after the client is closed, no goroutine is left that was started on its behalf.",
	Needs: []Fault{Expire},
	check: func(t *trial) {
		left := t.labelled(func() {
			a := t.client()
			for range 5 {
				s := a.live()
				m := a.join("x")
				a.leads(m)
				a.expire()
				await(t, s.Done(), t.h.crash(), "Done has not closed after the end of the session")
				a.liveWithin(t.h.recovery())
			}
			if err := a.Close(); err != nil {
				t.fatalf("Close: %v", err)
			}
		})
		t.nobodyLeft(left, "goroutines are left after Close")
	},
}, {
	ID:    "G9.campaigns",
	Title: "campaigns and terms leave no goroutine",
	Text:  "Ten terms are won and resigned and ten campaigns behind a leader are cancelled. No goroutine that they started is left soon after, while the clients live on.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		a.leave(a.join("x")) // whatever a session needs, it has from now on
		b.leave(b.join("x"))
		left := t.labelled(func() {
			for range 10 {
				term, err := a.stand(t.ctx, a.elect())
				if err != nil {
					t.fatalf("Campaign: %v", err)
				}
				ctx, cancel := context.WithTimeoutCause(t.ctx, 2*t.tick(), errCancelled)
				if _, err := b.stand(ctx, b.elect()); !errors.Is(err, errCancelled) {
					t.fatalf("a cancelled Campaign behind a leader returned %v", err)
				}
				cancel()
				term.Resign(t.ctx)
			}
		})
		t.nobodyLeft(left, "goroutines are left after campaigns and terms")
	},
}, {
	ID:    "G9.ended-context",
	Title: "a call with an ended context returns its cause",
	Text:  "Every method of a session returns the cause of its context soon when that had ended before the call, and so do Backend.Session of a client without session and Campaign; when a crash would have been noticed nobody stands in line, and nothing is written.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		ctx, cancel := context.WithCancelCause(t.ctx)
		cancel(errCancelled)
		cause := func(name string, err error) {
			if !errors.Is(err, errCancelled) {
				t.fatalf("%s with an ended context returned %v; want its cause", name, err)
			}
		}
		_, err := a.Session(ctx)
		cause("Session", err)
		t.everyOp(a.live(), func() (context.Context, context.CancelFunc) { return ctx, func() {} }, cause)
		_, err = a.stand(ctx, a.elect())
		cause("Campaign", err)
		b.settles()
		b.wroteNothing("with an ended context")
	},
}, {
	ID:    "G9.cut-context",
	Title: "a call honours its context while cut off",
	Text:  "While a client is cut off, every method of its session returns soon after its context has ended, with the cause of that, unless it has failed before because the session ended or the coordinator is unavailable. When a crash would have been noticed after healing, nobody stands in line and nothing is written.",
	Needs: []Fault{Cut},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		s := a.live()
		heal := a.cut()
		t.everyOp(s, func() (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(t.ctx, t.h.TTL/20, errCancelled)
		}, func(name string, err error) {
			if !is(err, errCancelled, backend.ErrSessionEnded, backend.ErrUnavailable) {
				t.fatalf("%s while cut off returned %v; want the cause of its context", name, err)
			}
		})
		heal()
		b.settles()
		b.wroteNothing("whose context had ended")
	},
}, {
	ID:    "G9.cut-session",
	Title: "Session honours its context while cut off",
	Text:  "A client without session is cut off. Session returns soon after its context has ended, with the cause of that or ErrUnavailable; healed, it returns a session after recovery, and there is one such session.",
	Needs: []Fault{Cut},
	check: func(t *trial) {
		a := t.client()
		a.live()
		a.closeSession()
		heal := a.cut()
		ctx, cancel := context.WithTimeoutCause(t.ctx, t.h.TTL/10, errCancelled)
		defer cancel()
		result := t.async(func() error { _, err := a.Session(ctx); return err })
		err := await(t, result, t.h.TTL/10+t.h.soon(), "Session has not returned after its context ended")
		if !is(err, errCancelled, backend.ErrUnavailable) {
			t.fatalf("Session while cut off returned %v; want the cause of its context", err)
		}
		heal()
		t.reachable(a)
		m := a.join("x")
		a.leads(m)
	},
}, {
	ID:    "G9.cut-close",
	Title: "Close is bounded while cut off",
	Text:  "While a client is cut off, Session.Close returns soon after its context has ended, and Backend.Close within recovery. The members are gone after a crash, Done is closed, and soon no goroutine is left of the client.",
	Needs: []Fault{Cut},
	check: func(t *trial) {
		b := t.client()
		var a *client
		var s backend.Session
		left := t.labelled(func() {
			a = t.client()
			a.join("x")
			s = a.live()
			a.cut()
			ctx, cancel := context.WithTimeoutCause(t.ctx, t.h.TTL/10, errCancelled)
			defer cancel()
			began := time.Now()
			err := s.Close(ctx)
			if d := time.Since(began); d > t.h.TTL/10+t.h.soon() {
				t.fatalf("Session.Close took %v with a context of %v (%v)", d, t.h.TTL/10, err)
			}
			began = time.Now()
			err = a.Close()
			if d := time.Since(began); d > t.h.recovery() {
				t.fatalf("Backend.Close took %v while cut off (%v)", d, err)
			}
		})
		await(t, s.Done(), t.h.soon(), "Done has not closed after Close")
		b.showsWithin(t.h.crash())
		t.nobodyLeft(left, "goroutines are left after Close while cut off")
	},
}, {
	ID:    "G9.blocked",
	Title: "Close ends what blocks",
	Text:  "Gone, Watch, Joined, Campaign and Observe that wait when their backend is closed return soon, with ErrSessionEnded or ErrClosed; a leader of another client is not disturbed.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		term := b.campaign()
		s := a.live()
		waits := map[string]<-chan error{
			"Gone":     a.going(term.Member()),
			"Campaign": a.campaigns(t.ctx).failed,
			"Observe": t.async(func() error {
				for _, err := range a.elect().Observe(t.ctx) {
					if err != nil {
						return err
					}
				}
				return nil
			}),
		}
		for _, f := range methods(t) {
			if f.name == "Joined" || f.name == "Watch" {
				waits[f.name] = t.async(func() error { return f.call(t.ctx, s, term.Member()) })
			}
		}
		t.pass(t.h.TTL/10, "until the calls wait")
		if err := a.Close(); err != nil {
			t.fatalf("Close: %v", err)
		}
		for name, w := range waits {
			if err := await(t, w, t.h.soon(), name+" has not returned after Close"); !is(err, backend.ErrSessionEnded, backend.ErrClosed) {
				t.fatalf("%s returned %v after Close; want ErrSessionEnded or ErrClosed", name, err)
			}
		}
		if err := term.Check(); err != nil {
			t.fatalf("closing one client ended the term of another: %v", err)
		}
	},
}, {
	ID:    "G9.never-nil",
	Title: "nil, nil is never an answer",
	Text:  "Campaign of a backend that is closed, with a name that is not possible, and with a context that ended, returns an error each time.",
	check: func(t *trial) {
		a := t.client()
		never := func(what string, term election.Term, err error, want error) {
			if !errors.Is(err, want) {
				t.fatalf("%s returned %v, %v; want %v", what, term, err, want)
			}
		}
		term, err := a.stand(t.ctx, a.election("a//b", nil))
		never("Campaign with an impossible name", term, err, backend.ErrInvalid)
		ctx, cancel := context.WithCancelCause(t.ctx)
		cancel(errCancelled)
		term, err = a.stand(ctx, a.elect())
		never("Campaign with an ended context", term, err, errCancelled)
		a.Close()
		term, err = a.stand(t.ctx, a.elect())
		never("Campaign of a closed backend", term, err, backend.ErrClosed)
	},
}}

// reachable waits until the client has a session again.
func (t *trial) reachable(c *client) {
	t.poll(t.h.recovery(), "the client has a session again", func() bool {
		ctx, cancel := t.within(t.h.recovery())
		defer cancel()
		_, err := c.Session(ctx)
		if err != nil && !is(err, backend.ErrUnavailable, backend.ErrSessionEnded) {
			t.fatalf("Session: %v", err)
		}
		return err == nil
	})
}
