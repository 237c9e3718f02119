package broken

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
)

var deadlineFlaws = []Flaw{
	{
		Name:    "asked for",
		Breaks:  "L6: TTL is what was asked for, and the coordinator has granted the half",
		Must:    "L6.ttl",
		May:     "G8.waiter-removed Run.sealed",
		session: func(_ *Backend, s backend.Session) backend.Session { return &askedFor{s} },
	},
	{
		Name:    "lenient",
		Breaks:  "L6: the deadline relies on the time that the coordinator takes beyond TTL",
		Must:    "L6.bound L6.cut",
		May:     "L5.done L6 G7.margin L9",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lenient{s} },
	},
	{
		Name:    "from the answer",
		Breaks:  "L6: the deadline counts from when an answer came",
		Must:    "L6.old-answer",
		session: func(b *Backend, s backend.Session) backend.Session { return newFromTheAnswer(b, s) },
	},
	{
		Name:    "leader alone",
		Breaks:  "L6: the deadline is kept ahead for who stands first, and not for the next",
		Must:    "L6.advances L6.gate",
		session: func(_ *Backend, s backend.Session) backend.Session { return &leaderAlone{Session: s} },
	},
	{
		Name:    "not traced",
		Breaks:  "L6: heartbeats are told to nobody",
		Must:    "L6.heartbeats",
		session: func(_ *Backend, s backend.Session) backend.Session { return &notTraced{s} },
	},
	{
		Name:    "traced on",
		Breaks:  "L6: heartbeats are told also when nobody asks any more",
		Must:    "L6.heartbeats",
		session: func(_ *Backend, s backend.Session) backend.Session { return &tracedOn{s} },
	},
	{
		Name:    "any margin",
		Breaks:  "L6: MaxMargin is all of TTL, and the deadline is at most so far ahead",
		Must:    "G7.longest",
		session: func(_ *Backend, s backend.Session) backend.Session { return &anyMargin{s} },
	},
	{
		Name:    "suspended is lost",
		Breaks:  "L6: a session that is not heard of for a moment is given up",
		Must:    "L6.kept",
		May:     "Fault.compacted",
		session: func(b *Backend, s backend.Session) backend.Session { return newSuspended(b, s) },
	},
	{
		Name:    "deadline of the client",
		Breaks:  "L6: the deadline is the client's, and the next session's is that of the last",
		Must:    "L5.done L6.late L6.gate",
		session: func(b *Backend, s backend.Session) backend.Session { return &ofTheClient{s, b} },
	},
	{
		Name:    "left standing",
		Breaks:  "L6: the deadline of a session that was closed stays where it was",
		Must:    "L5.done L6.ended",
		session: func(b *Backend, s backend.Session) backend.Session { return newLeftStanding(b, s) },
	},
	{
		Name:    "unaware",
		Breaks:  "L6, G1: a session that is cut off goes on for ever",
		Must:    "L5.done L6.cut L6.late L6.gate G1.cut G1.late G7.expired G7.cut Fault.cut Fault.mute Fault.deaf Fault.late Fault.severed Fault.hidden Fault.paused Queue.cut Queue.expired Group.cut Barrier.cut Task.cut Group.expired Group.assign-expired Task.expired Task.workers-expired Task.workers-cut Lock.slots-cut Lock.slots-expired Barrier.leave-cut",
		May:     "L4.ended L5 L6 Pin.closed Pin.expired G1 G3.expired G3.late G7 G8 G9 Run.lost Fault L9 L10.ended L7.fence-expired",
		session: func(_ *Backend, s backend.Session) backend.Session { return &unaware{s} },
	},
}

type askedFor struct{ backend.Session }

func (s *askedFor) TTL() time.Duration { return 2 * s.Session.TTL() }

type anyMargin struct{ backend.Session }

func (s *anyMargin) MaxMargin() time.Duration { return s.TTL() }

type notTraced struct{ backend.Session }

func (s *notTraced) TraceHeartbeats(func(backend.Heartbeat)) (stop func()) { return func() {} }

type tracedOn struct{ backend.Session }

func (s *tracedOn) TraceHeartbeats(f func(backend.Heartbeat)) (stop func()) {
	s.Session.TraceHeartbeats(f)
	return func() {}
}

type lenient struct{ backend.Session }

func (s *lenient) Deadline() time.Time { return s.Session.Deadline().Add(s.TTL() / 2) }

type fromTheAnswer struct {
	backend.Session
	mu       sync.Mutex
	sent     time.Time // what the deadline should be
	deadline time.Time
}

// newFromTheAnswer looks often whether an answer has come, so that it knows when it came.
func newFromTheAnswer(b *Backend, inner backend.Session) backend.Session {
	s := &fromTheAnswer{Session: inner}
	s.Deadline()
	b.often(inner, func() { s.Deadline() })
	return s
}

func (s *fromTheAnswer) Deadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.Session.Deadline()
	if d.Before(s.sent) { // the session was ended before its time
		return d
	}
	if d.After(s.sent) {
		s.sent, s.deadline = d, time.Now().Add(s.TTL())
	}
	return s.deadline
}

type leaderAlone struct {
	backend.Session
	leads atomic.Bool
}

func (s *leaderAlone) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if p.First {
		s.leads.Store(true)
	}
	return p, err
}

func (s *leaderAlone) Deadline() time.Time {
	if s.leads.Load() {
		return s.Session.Deadline()
	}
	return time.Now()
}

// often calls f a hundred times in a TTL until the session ends.
func (b *Backend) often(s backend.Session, f func()) {
	go func() {
		tick := time.NewTicker(s.TTL() / 100)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f()
			case <-s.Done():
				return
			case <-b.release:
				return
			}
		}
	}()
}

// newSuspended returns s, which is closed when a heartbeat, of which there are three in a
// TTL, is overdue.
func newSuspended(b *Backend, s backend.Session) backend.Session {
	b.often(s, func() {
		if time.Until(s.Deadline()) < s.TTL()*13/20 {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_ = s.Close(ended)
		}
	})
	return s
}

type ofTheClient struct {
	backend.Session
	b *Backend
}

func (s *ofTheClient) Deadline() time.Time {
	s.b.mu.Lock()
	newest := s.b.newest
	s.b.mu.Unlock()
	return newest.Deadline()
}

type leftStanding struct {
	backend.Session
	mu   sync.Mutex
	last time.Time // Deadline while the session lived
}

func newLeftStanding(b *Backend, inner backend.Session) backend.Session {
	s := &leftStanding{Session: inner}
	s.Deadline()
	b.often(inner, func() { s.Deadline() })
	return s
}

func (s *leftStanding) Deadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.Session.Deadline(); s.Err() == nil {
		s.last = d
	}
	return s.last
}

type unaware struct{ backend.Session }

func (s *unaware) Deadline() time.Time             { return time.Now().Add(s.TTL()) }
func (s *unaware) Done() <-chan struct{}           { return nil }
func (s *unaware) OnEnd(func(error)) (stop func()) { return func() {} }
func (s *unaware) Err() error                      { return nil }

func (s *unaware) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	return p, unlessEnded(ctx, err)
}

func (s *unaware) Gone(ctx context.Context, m backend.Member) error {
	return unlessEnded(ctx, s.Session.Gone(ctx, m))
}

func (s *unaware) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	r, err := s.Session.Watch(ctx, name, after)
	return r, unlessEnded(ctx, err)
}

func (s *unaware) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	v, err := s.Session.Put(ctx, name, value, cond)
	return v, unlessEnded(ctx, err)
}

// unlessEnded returns err. If err says that the session has ended, it instead waits for the end of
// ctx and returns the cause.
func unlessEnded(ctx context.Context, err error) error {
	if errors.Is(err, backend.ErrSessionEnded) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return err
}
