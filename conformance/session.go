package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A method is one of a session's, called in the line and with the member of a
// trial.
type method struct {
	name  string
	needs Fault // an ability; empty for none
	call  func(ctx context.Context, s backend.Session, m backend.Member) error
}

// methods are all that talk to the coordinator, except for Close and for those that the
// backend lacks. Those that wait wait for what does not happen.
func methods(t *trial) []method {
	never := t.line + "-never"
	all := []method{
		{"Join", "", func(ctx context.Context, s backend.Session, m backend.Member) error {
			_, err := s.Join(ctx, t.line, "late")
			return err
		}},
		{"Ahead", "", func(ctx context.Context, s backend.Session, m backend.Member) error {
			_, err := s.Ahead(ctx, m)
			return err
		}},
		{"Gone", "", func(ctx context.Context, s backend.Session, m backend.Member) error { return s.Gone(ctx, m) }},
		{"Leave", "", func(ctx context.Context, s backend.Session, m backend.Member) error { return s.Leave(ctx, m) }},
		{"Pin", Pins, func(ctx context.Context, s backend.Session, m backend.Member) error {
			return s.Pin(ctx, m, backend.Header{Fence: 1}, backend.Absent)
		}},
		{"Line", "", func(ctx context.Context, s backend.Session, m backend.Member) error {
			_, err := s.Line(ctx, t.line)
			return err
		}},
		{"Joined", "", func(ctx context.Context, s backend.Session, m backend.Member) error { return s.Joined(ctx, never) }},
		{"Get", Records, func(ctx context.Context, s backend.Session, m backend.Member) error {
			_, err := s.Get(ctx, never)
			return err
		}},
		{"Put", Records, func(ctx context.Context, s backend.Session, m backend.Member) error {
			_, err := s.Put(ctx, t.line+"-late", []byte("late"), &backend.If{Member: m})
			return err
		}},
		{"Delete", Records, func(ctx context.Context, s backend.Session, m backend.Member) error {
			return s.Delete(ctx, t.line+"-late", nil)
		}},
		{"List", Records, func(ctx context.Context, s backend.Session, m backend.Member) error {
			_, err := s.List(ctx, never)
			return err
		}},
		{"Watch", Records, func(ctx context.Context, s backend.Session, m backend.Member) error {
			_, err := s.Watch(ctx, never, backend.Absent)
			return err
		}},
	}
	return slices.DeleteFunc(all, func(f method) bool { return f.needs != "" && !t.h.can(f.needs) })
}

// wroteNothing checks that no Put of methods was done.
func (c *client) wroteNothing(what string) {
	if !c.t.h.can(Records) {
		return
	}
	if r := c.get(c.t.line + "-late"); r.Version != backend.Absent {
		c.t.fatalf("a Put %s was done", what)
	}
}

// ended checks that every method of s fails with ErrSessionEnded.
func (t *trial) ended(s backend.Session, m backend.Member) {
	for _, f := range methods(t) {
		ctx, cancel := t.within(2 * t.h.soon())
		result := t.async(func() error { return f.call(ctx, s, m) })
		err := await(t, result, t.h.soon(), f.name+" under an ended session has not returned")
		cancel()
		if !is(err, backend.ErrSessionEnded) {
			t.fatalf("%s under an ended session returned %v; want ErrSessionEnded", f.name, err)
		}
	}
}

var sessionRules = []Rule{{
	ID:    "L5.same",
	Title: "a backend has one session at a time",
	Text:  "Session returns the same live session again and again, also to four callers at once; two clients have different ones.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		got := make(chan backend.Session, 4)
		for range 4 {
			t.spawn(func() { got <- a.live() })
		}
		s := a.live()
		for range 4 {
			if other := await(t, got, t.h.soon(), "Session has not returned"); other != s {
				t.fatalf("Session returned two sessions at once")
			}
		}
		if a.live() != s {
			t.fatalf("Session returned another session while the first lives")
		}
		if err := s.Err(); err != nil {
			t.fatalf("Err of a live session is %v", err)
		}
		if untapped(b.live()) == untapped(s) {
			t.fatalf("two clients share a session")
		}
	},
}, {
	ID:    "L5.done",
	Title: "the end of a session is told",
	Text:  "After the coordinator has ended a leader's session, Done closes after a crash at the latest. Err is nil before, and wraps ErrSessionEnded then; Deadline, where there is one, has passed then. Both for good.",
	Needs: []Fault{Expire},
	check: func(t *trial) {
		a := t.client()
		a.leads(a.join("x"))
		s := a.live()
		if s.Err() != nil {
			t.fatalf("Err of a live session is %v", s.Err())
		}
		a.expire()
		await(t, s.Done(), t.h.crash(), "Done has not closed after the end of the session")
		for _, when := range []string{"is over", "is over and the next has begun"} {
			if !is(s.Err(), backend.ErrSessionEnded) {
				t.fatalf("Err of a session that %s is %v; want ErrSessionEnded", when, s.Err())
			}
			if d := time.Until(s.Deadline()); d > 0 {
				t.fatalf("the deadline of a session that %s is %v ahead", when, d)
			}
			a.live()
		}
	},
}, {
	ID:    "L5.fails",
	Title: "every call fails after the end",
	Text:  "After the coordinator has ended a session, each of its methods fails soon with ErrSessionEnded, before and after the next session has been opened, and does nothing, for half a TTL.",
	Needs: []Fault{Expire},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		s, m := a.live(), a.join("x")
		a.expire()
		await(t, s.Done(), t.h.crash(), "Done has not closed after the end of the session")
		t.ended(s, m)
		next := a.join("y")
		t.ended(s, m)
		b.shows(next)
		version := b.lineNow().Version
		t.steady(t.h.TTL/2, "a call under an ended session was done", func() bool {
			l := b.lineNow()
			return sameLine(l.Members, []backend.Member{next}) && l.Version == version && (!t.h.can(Records) || b.get(t.line+"-late").Version == backend.Absent)
		})
	},
}, {
	ID:    "L5.blocked",
	Title: "blocked calls fail at the end",
	Text:  "Gone, Joined and Watch that wait when the coordinator ends their session fail with ErrSessionEnded after a crash at the latest. Gone of a member of that session may return nil instead: it has gone.",
	Needs: []Fault{Expire},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		s, own, other := a.live(), a.join("x"), b.join("y")
		waits := map[string]<-chan error{
			"Gone of another": t.async(func() error { return s.Gone(t.ctx, other) }),
			"Gone of its own": t.async(func() error { return s.Gone(t.ctx, own) }),
		}
		for _, f := range methods(t) {
			if f.name == "Joined" || f.name == "Watch" {
				waits[f.name] = t.async(func() error { return f.call(t.ctx, s, own) })
			}
		}
		t.pass(t.h.TTL/10, "until the calls wait")
		a.expire()
		for name, w := range waits {
			err := await(t, w, t.h.crash(), name+" has not returned after the end of its session")
			if !is(err, backend.ErrSessionEnded) && !(err == nil && name == "Gone of its own") {
				t.fatalf("%s returned %v after the end of its session; want ErrSessionEnded", name, err)
			}
		}
	},
}, {
	ID:    "L5.next",
	Title: "a new session begins with nothing",
	Text:  "After the coordinator has ended a session, Session opens another soon; the old members are gone, the new session joins at the end, and closing the old one disturbs nothing, for a quarter of a TTL.",
	Needs: []Fault{Expire},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		old := a.live()
		a.join("x")
		other := b.join("y")
		a.expire()
		await(t, old.Done(), t.h.crash(), "Done has not closed after the end of the session")
		s := a.liveWithin(t.h.recovery())
		if s == old {
			t.fatalf("Session returned the session that has ended")
		}
		m := a.join("z")
		b.shows(other, m)
		ctx, cancel := t.within(t.h.soon())
		defer cancel()
		old.Close(ctx)
		t.steady(t.h.TTL/4, "closing an ended session has ended the next, or changed the line", func() bool {
			return s.Err() == nil && sameLine(b.members(), []backend.Member{other, m})
		})
		if a.live() != s {
			t.fatalf("closing an ended session has ended the next: %v", s.Err())
		}
	},
}, {
	ID:    "L5.close",
	Title: "Close ends the session",
	Text:  "When Session.Close has returned nil, the session's members are gone for every client, Done is closed, every method fails with ErrSessionEnded, another Close is harmless, and Session opens another.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		s, m := a.live(), a.join("x")
		a.join("y")
		other := b.join("z")
		a.do("Close", func(ctx context.Context, s backend.Session) error { return s.Close(ctx) })
		b.shows(other)
		if !over(s) || !is(s.Err(), backend.ErrSessionEnded) {
			t.fatalf("after Close, Done is not closed or Err is %v", s.Err())
		}
		t.ended(s, m)
		ctx, cancel := t.within(t.h.soon())
		defer cancel()
		s.Close(ctx)
		next := a.join("new")
		b.shows(other, next)
	},
}, {
	ID:    "L5.queue",
	Title: "nothing queued runs under the next session",
	Text:  "A client is cut off and calls Join, Leave, Pin and a guarded Put with contexts that do not end. When its session must have ended it is healed: each call returns after recovery with an error, and under the next session nobody stands in line who was not joined there, and nothing was written.",
	Needs: []Fault{Cut, Deadlines},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		s, m := a.live(), a.join("x")
		going := b.going(m)
		before := a.lineNow().Version
		heal := a.cut()
		results := make(map[string]<-chan error)
		for _, f := range methods(t) {
			switch f.name {
			case "Join", "Leave", "Put", "Pin":
				results[f.name] = t.async(func() error { return f.call(t.ctx, s, m) })
			}
		}
		if err := await(t, going, t.h.crash(), "the member of a client that is cut off has not gone"); err != nil {
			t.fatalf("Gone: %v", err)
		}
		heal()
		for name, r := range results {
			err := await(t, r, t.h.recovery(), name+" has not returned after its session ended")
			if err == nil && name != "Leave" || err != nil && !is(err, backend.ErrSessionEnded, backend.ErrUnavailable) {
				t.fatalf("%s, queued under a session that ended, returned %v; want ErrSessionEnded", name, err)
			}
		}
		a.liveWithin(t.h.recovery())
		next := a.join("y")
		b.shows(next)
		t.steady(t.h.TTL/2, "a queued call was done under the next session", func() bool {
			l := b.lineNow()
			return sameLine(l.Members, []backend.Member{next}) && l.Version == before
		})
		b.wroteNothing("queued under a session that ended")
	},
}}

// over reports whether the session says that it has ended.
func over(s backend.Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}
