package broken

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
)

var tokenFlaws = []Flaw{
	{
		Name:    "key token",
		Breaks:  "G2: the token is the number in the key, which begins again with the path",
		Must:    "L7.fence G2.known G2.drop G2.fence-drop Fault.dropped",
		May:     "L2.order L7.fence-cut L7.foreign G1.promoted G1.promoted-beside Pin.gate G7.asked G10 L9 L3.place-fence L7.later L7.fence-closed L7.fence-expired", // these compare tokens with positions
		session: func(_ *Backend, s backend.Session) backend.Session { return &keyToken{s} },
	},
	{
		Name:    "mortal fence",
		Breaks:  "G2: the record that keeps a raised fence goes with the election",
		Must:    "G2.fence-drop",
		session: func(_ *Backend, s backend.Session) backend.Session { return &mortalFence{s} },
	},
	{
		Name:    "request number",
		Breaks:  "G2: the token is a number that begins again with each connection, and so with each session",
		Must:    "G2.sessions G2.clients G2.restart Lock.alone Group.assign",
		May:     "L2.order L7 Pin G1 G2 G7.asked G10 Run.lost Fault L9 L3.place L3.place-late L3.place-fence",
		session: func(b *Backend, s backend.Session) backend.Session { return &requestNumber{Session: s, b: b} },
	},
	{
		Name:     "token of now",
		Breaks:   "G2: a term's token changes with the election's fence",
		Must:     "G2.known G2.fence",
		election: terms(func(b backend.Backend, t election.Term) election.Term { return newTokenOfNow(b, t) }),
	},
	{
		Name:   "lowered fence",
		Breaks: "G2: RaiseFence writes its floor, whatever the fence is",
		Must:   "G2.fence",
		May:    "G2.fence-drop",
		election: elections(func(e election.Election, b backend.Backend, name string) election.Election {
			return &loweredFence{e, b, name}
		}),
	},
	{
		Name:    "server that lags",
		Breaks:  "G2: a log that went back is taken for that of a server that lags behind",
		Must:    "G2.reset",
		May:     "Fault.rewound",
		session: func(_ *Backend, s backend.Session) backend.Session { return &serverThatLags{s} },
		opens: func(ctx context.Context, b *Backend) (backend.Session, error) {
			s, err := b.Backend.Session(ctx)
			if errors.Is(err, backend.ErrReset) {
				err = backend.ErrUnavailable
			}
			return s, err
		},
	},
}

type keyToken struct{ backend.Session }

func (s *keyToken) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err == nil && p.First {
		n, _ := strconv.ParseUint(m.Key[strings.LastIndexByte(m.Key, '_')+1:], 10, 64)
		p.Token += n + 1 - m.Position
	}
	return p, err
}

type mortalFence struct{ backend.Session }

func (s *mortalFence) Get(ctx context.Context, name string) (backend.Record, error) {
	r, err := s.Session.Get(ctx, name)
	if election, ok := strings.CutSuffix(name, naming.Fence); ok && err == nil {
		var of backend.Record
		if of, err = s.Session.Get(ctx, election); err == nil && of.Version == backend.Absent {
			r = backend.Record{Name: name, Version: backend.Absent}
		}
	}
	return r, err
}

type serverThatLags struct{ backend.Session }

func (s *serverThatLags) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	if errors.Is(err, backend.ErrReset) {
		err = backend.ErrSessionEnded
	}
	return m, err
}

type requestNumber struct {
	backend.Session
	b *Backend

	mu         sync.Mutex
	connection <-chan struct{}
	requests   uint64
}

func (s *requestNumber) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.b.connected(); s.connection != now {
		s.connection, s.requests = now, 0
	}
	s.requests++
	if p.First {
		p.Token += s.requests - m.Position
	}
	return p, err
}

type tokenOfNow struct {
	election.Term
	token atomic.Uint64
}

func newTokenOfNow(b backend.Backend, t election.Term) *tokenOfNow {
	now := &tokenOfNow{Term: t}
	now.token.Store(t.Token())
	go now.follow(b)
	return now
}

func (t *tokenOfNow) Token() uint64 { return t.token.Load() }

// follow keeps the token up with the election's record until the term ends.
func (t *tokenOfNow) follow(b backend.Backend) {
	s, err := b.Session(t.Context())
	for r := (backend.Record{}); err == nil; {
		if r, err = s.Watch(t.Context(), t.Member().Line, r.Version); err != nil {
			return
		}
		var h backend.Header
		h, err = backend.ParseHeader(r.Value)
		t.token.Store(h.Fence + t.Member().Position)
	}
}

type loweredFence struct {
	election.Election
	b    backend.Backend
	name string
}

func (e *loweredFence) RaiseFence(ctx context.Context, floor uint64) error {
	s, err := e.b.Session(ctx)
	if err != nil {
		return err
	}
	return header.Update(ctx, s, e.name, backend.Member{}, func(h *header.Header) bool {
		h.Fence = floor
		return true
	})
}
