package broken

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
)

var faultFlaws = []Flaw{
	{
		Name:   "one connection",
		Breaks: "G8: a client whose connection has broken is closed and makes no other",
		Must:   "Fault.severed Fault.hidden Fault.restarted Fault.rolling Fault.leader-killed Fault.quorum",
		May:    "G2.restart",
		opens: func(ctx context.Context, b *Backend) (backend.Session, error) {
			s, err := b.Backend.Session(ctx)
			if b.disconnected() && !b.isClosed() {
				return nil, backend.ErrUnavailable
			}
			return s, err
		},
		session: func(_ *Backend, s backend.Session) backend.Session { return s },
		breaks:  (*Backend).endSessions,
	},
	{
		Name:   "one session",
		Breaks: "G8: a client whose session has ended asks for no other",
		Must:   "L5.next G8.waiter-expired G8.cut Fault.cut Fault.mute Fault.deaf Fault.late Fault.severed Fault.hidden Fault.expired Fault.paused Fault.leader-killed Fault.leader-paused Fault.leader-cut Fault.follower-cut Fault.quorum Lock.expired Value.expired Value.cut Group.cut Group.expired Group.assign-expired Task.expired Task.workers-expired",
		May:    "L4.ended L5 L6.late L6.gate Pin.gate G1.cut G1.late G1.promoted G1.promoted-beside G2.sessions G9.cut-session G9.ended-goroutines G10.expired Run.lost Fault.rewound Fault.server-silent L7.fence-closed L7.fence-expired",
		opens: func(ctx context.Context, b *Backend) (backend.Session, error) {
			if b.hadSession() && !b.isClosed() {
				return nil, backend.ErrUnavailable
			}
			return b.Backend.Session(ctx)
		},
		session: func(_ *Backend, s backend.Session) backend.Session { return s },
	},
	{
		Name:    "own server",
		Breaks:  "G1: the answers of a server that is isolated keep a session",
		Must:    "Fault.leader-cut Fault.follower-cut Fault.quorum",
		session: func(b *Backend, s backend.Session) backend.Session { return ownServerOf(b, s) },
	},
	{
		Name:     "faithful",
		Breaks:   "G8: a client that knows several servers waits for its own, however long that is silent",
		Must:     "Fault.server-silent",
		faithful: true,
	},
	{
		Name:     "trusting",
		Breaks:   "G1: a client leads on a server that has taken over as soon as that says so, and not after the sessions that it may not know of",
		Must:     "G1.promoted G1.promoted-beside",
		trusting: true,
	},
	{
		Name:     "agent's session",
		Breaks:   "G8: the session is that of an agent on the machine, and outlives the process that crashes",
		Must:     "L3.kill G4.crash Fault.killed-candidate Lock.crash Lock.slots-crash Group.crash Task.standby Task.cold Task.workers",
		May:      "L3.line-crash",
		session:  func(b *Backend, s backend.Session) backend.Session { return agentsSessionOf(b, s) },
		outlives: true,
	},
	{
		Name:    "next heartbeat",
		Breaks:  "G7: that the coordinator has ended the session is learnt from the next heartbeat alone",
		Must:    "G7.expired Fault.expired",
		Short:   true,
		session: func(b *Backend, s backend.Session) backend.Session { return nextHeartbeat(b, s) },
	},
	{
		Name:    "resumed watch",
		Breaks:  "L3: Gone goes on in the log where it was, and takes a log that was compacted for one without news",
		Must:    "Fault.compacted",
		session: func(b *Backend, s backend.Session) backend.Session { return &resumedWatch{s, b} },
	},
	{
		Name:    "dated",
		Breaks:  "L6: the deadline is an instant of the coordinator's wall clock",
		Must:    "Fault.clock",
		session: func(b *Backend, s backend.Session) backend.Session { return &dated{s, b} },
	},
	{
		Name:   "passing reset",
		Breaks: "G2: a log that has gone back is taken for a coordinator that cannot be reached",
		Must:   "G2.reset Fault.rewound",
		opens: func(ctx context.Context, b *Backend) (backend.Session, error) {
			s, err := b.Backend.Session(ctx)
			return s, unlessReset(err, backend.ErrUnavailable)
		},
		session: func(_ *Backend, s backend.Session) backend.Session { return &silentReset{s} },
	},
	{
		Name:    "forgetful",
		Breaks:  "G2: how far the log had come is forgotten with the connection",
		Must:    "G2.reset Fault.rewound",
		opens:   func(ctx context.Context, b *Backend) (backend.Session, error) { return b.forgets(ctx) },
		session: func(_ *Backend, s backend.Session) backend.Session { return &silentReset{s} },
		closes:  func(b *Backend) error { return errors.Join(b.anew(false).Close(), b.Backend.Close()) },
	},
}

// endSessions ends the sessions of the client, of which one lives at most.
func (b *Backend) endSessions() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, s := range b.had() {
		s.Close(ctx)
	}
}

// hadSession reports whether a session of the client has ended.
func (b *Backend) hadSession() bool {
	return slices.ContainsFunc(b.had(), func(s backend.Session) bool { return s.Err() != nil })
}

// had returns all sessions that the client has had.
func (b *Backend) had() []backend.Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.sessions))
}

func (b *Backend) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// forgets is Session of a client that begins anew if the log has gone back.
func (b *Backend) forgets(ctx context.Context) (backend.Session, error) {
	s, err := b.anew(false).Session(ctx)
	if errors.Is(err, backend.ErrReset) {
		return b.anew(true).Session(ctx)
	}
	return s, err
}

// anew returns the newest client, or another.
func (b *Backend) anew(another bool) backend.Backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case another:
		b.another = b.Anew()
	case b.another == nil:
		return b.Backend
	}
	return b.another
}

// ownServer is a session that the client believes alive as long as its server says so.
type ownServer struct {
	lateEnd
	b *Backend
}

func ownServerOf(b *Backend, s backend.Session) backend.Session {
	return &ownServer{*endsLate(s, func() {
		<-s.Done()
		select {
		case <-b.inQuorum():
		case <-b.release:
		}
	}), b}
}

func (s *ownServer) Deadline() time.Time {
	select {
	case <-s.b.inQuorum():
		return s.lateEnd.Deadline()
	default:
		return time.Now().Add(s.TTL())
	}
}

// agentsSession is kept by the coordinator when the client crashes.
type agentsSession struct {
	lateEnd
	b *Backend
}

func agentsSessionOf(b *Backend, s backend.Session) backend.Session {
	return &agentsSession{*endsLate(s, func() {
		select {
		case <-s.Done():
		case <-b.killed:
		}
	}), b}
}

func (s *agentsSession) Leave(ctx context.Context, m backend.Member) error {
	select {
	case <-s.b.killed: // nothing more is sent
		return backend.ErrSessionEnded
	default:
		return s.lateEnd.Leave(ctx, m)
	}
}

// nextHeartbeat returns a session whose heartbeats are a third of TTL apart.
func nextHeartbeat(b *Backend, s backend.Session) backend.Session {
	return endsLate(s, func() {
		<-s.Done()
		if !b.takeExpired() {
			return
		}
		select {
		case <-time.After(s.TTL() / 3):
		case <-b.release:
		}
	})
}

type resumedWatch struct {
	backend.Session
	b *Backend
}

func (s *resumedWatch) Gone(ctx context.Context, m backend.Member) error {
	from := s.b.compacted()
	err := s.Session.Gone(ctx, m)
	if err != nil || s.b.compacted() == from {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Done():
		return s.Err()
	}
}

type dated struct {
	backend.Session
	b *Backend
}

func (s *dated) Deadline() time.Time { return s.Session.Deadline().Add(s.b.shifted()) }

// silentReset does not say that the session has ended because the log has gone back.
type silentReset struct{ backend.Session }

func (s *silentReset) Err() error { return unlessReset(s.Session.Err(), backend.ErrSessionEnded) }

func (s *silentReset) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	return m, unlessReset(err, backend.ErrSessionEnded)
}

func (s *silentReset) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	return p, unlessReset(err, backend.ErrSessionEnded)
}

func (s *silentReset) Gone(ctx context.Context, m backend.Member) error {
	return unlessReset(s.Session.Gone(ctx, m), backend.ErrSessionEnded)
}

// unlessReset returns err, or said in its place if the log has gone back.
func unlessReset(err, said error) error {
	if errors.Is(err, backend.ErrReset) {
		return said
	}
	return err
}
