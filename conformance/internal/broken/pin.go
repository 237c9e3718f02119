package broken

import (
	"context"
	"errors"
	"sync"

	"github.com/succession-dev/succession/backend"
)

var pinFlaws = []Flaw{
	{
		Name:    "pin anyway",
		Breaks:  "Pin: the header is written whatever version it has",
		Must:    "Pin.version",
		session: func(_ *Backend, s backend.Session) backend.Session { return &pinAnyway{s} },
	},
	{
		Name:    "pin, then header",
		Breaks:  "Pin: the member is pinned before it is known whether the header can be written",
		Must:    "Pin.version",
		session: func(_ *Backend, s backend.Session) backend.Session { return &pinFirst{s} },
	},
	{
		Name:    "header, then pin",
		Breaks:  "Pin: the header is written before it is known whether the member can be pinned",
		Must:    "Pin.gone Pin.foreign",
		May:     "Pin.lost-answer Pin.lost-written L3.place-sealed",
		session: func(_ *Backend, s backend.Session) backend.Session { return &headerFirst{s} },
	},
	{
		Name:   "pin of the session",
		Breaks: "Pin: a pinned member goes with its session",
		Must:   "Pin.closed Pin.expired Pin.left Pin.gate",
		May:    "Pin L8.kept L3.place-sealed",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &pinOfSession{Session: s, pinned: make(map[uint64]bool)}
		},
	},
	{
		Name:    "skip the pinned",
		Breaks:  "Pin: who stands behind pinned members alone is taken for the first",
		Must:    "Pin.closed Pin.expired Pin.gate",
		May:     "L6.gate",
		session: func(_ *Backend, s backend.Session) backend.Session { return &skipPinned{s} },
	},
	{
		Name:   "owner alone",
		Breaks: "Pin: only who joined a member can take it out",
		Must:   "Pin.left Pin.gate",
		May:    "L9 L10",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &ownerAlone{Session: s, own: make(map[uint64]bool)}
		},
	},
	{
		Name:   "pin once",
		Breaks: "Pin: a pinned member is its session's no more, and cannot be pinned again",
		Must:   "Pin.header",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &pinOnce{Session: s, pinned: make(map[backend.Member]bool)}
		},
	},
	{
		Name:    "pin again",
		Breaks:  "Pin: after a lost answer it is sent again, and refused at the version that it has made",
		Must:    "Pin.lost-answer",
		May:     "Pin.lost-written",
		session: func(b *Backend, s backend.Session) backend.Session { return &pinAgain{s, b} },
	},
	{
		Name:    "pin looks at the header alone",
		Breaks:  "Pin: after a lost answer it is refused if somebody has written the header since",
		Must:    "Pin.lost-written",
		session: func(b *Backend, s backend.Session) backend.Session { return &pinByHeader{s, b} },
	},
	{
		Name:    "wait behind a seal",
		Breaks:  "Pin: who stands behind a seal is told to wait",
		Must:    "Pin.sealed Run.sealed",
		May:     "L9.sealed L3.place-sealed L3.place-gate L3.place-late-gate Run.sealed-gate",
		session: func(_ *Backend, s backend.Session) backend.Session { return &waitBehindSeal{s} },
	},
	{
		Name:    "pass the seal",
		Breaks:  "Pin: who is first when the seal's member was taken out leads",
		Must:    "Pin.sealed",
		session: func(_ *Backend, s backend.Session) backend.Session { return &passSeal{s} },
	},
}

type pinAnyway struct{ backend.Session }

func (s *pinAnyway) Pin(ctx context.Context, m backend.Member, h backend.Header, _ backend.Version) error {
	r, err := s.Get(ctx, m.Line)
	if err != nil {
		return err
	}
	return s.Session.Pin(ctx, m, h, r.Version)
}

type pinFirst struct{ backend.Session }

func (s *pinFirst) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	l, err := s.Session.Line(ctx, m.Line)
	if err != nil {
		return err
	}
	if at == l.Version {
		return s.Session.Pin(ctx, m, h, at)
	}
	if err := s.Session.Pin(ctx, m, l.Header, l.Version); err != nil {
		return err
	}
	return backend.ErrVersion
}

type headerFirst struct{ backend.Session }

func (s *headerFirst) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	v, err := s.Put(ctx, m.Line, h.Encode(), &backend.If{Version: at})
	if err != nil {
		return err
	}
	return s.Session.Pin(ctx, m, h, v)
}

type pinOfSession struct {
	backend.Session
	mu     sync.Mutex
	pinned map[uint64]bool // by position
}

func (s *pinOfSession) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	_, err := s.Put(ctx, m.Line, h.Encode(), &backend.If{Version: at, Member: m})
	if err == nil {
		s.mu.Lock()
		s.pinned[m.Position] = true
		s.mu.Unlock()
	}
	return err
}

func (s *pinOfSession) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range l.Members {
		l.Members[i].Pinned = m.Pinned || s.pinned[m.Position]
	}
	return l, err
}

type skipPinned struct{ backend.Session }

func (s *skipPinned) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || p.First {
		return p, err
	}
	l, err := s.Session.Line(ctx, m.Line)
	if err != nil {
		return p, err
	}
	for _, o := range l.Members {
		if o.Position < m.Position && !o.Pinned {
			return p, nil
		}
	}
	return backend.Place{First: true, Token: l.Token(m), Header: l.Header}, nil
}

type ownerAlone struct {
	backend.Session
	mu  sync.Mutex
	own map[uint64]bool // by position
}

func (s *ownerAlone) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	if err == nil {
		s.mu.Lock()
		s.own[m.Position] = true
		s.mu.Unlock()
	}
	return m, err
}

func (s *ownerAlone) Leave(ctx context.Context, m backend.Member) error {
	s.mu.Lock()
	own := s.own[m.Position]
	s.mu.Unlock()
	if own {
		return s.Session.Leave(ctx, m)
	}
	if _, err := s.Session.Line(ctx, m.Line); err != nil {
		return err
	}
	return backend.ErrDenied
}

type pinOnce struct {
	backend.Session
	mu     sync.Mutex
	pinned map[backend.Member]bool
}

func (s *pinOnce) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	s.mu.Lock()
	pinned := s.pinned[m]
	s.mu.Unlock()
	if pinned {
		return backend.ErrDenied
	}
	err := s.Session.Pin(ctx, m, h, at)
	if err == nil {
		s.mu.Lock()
		s.pinned[m] = true
		s.mu.Unlock()
	}
	return err
}

type pinAgain struct {
	backend.Session
	b *Backend
}

func (s *pinAgain) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	err := s.Session.Pin(ctx, m, h, at)
	if err == nil && s.b.takeLost() {
		return backend.ErrVersion
	}
	return err
}

type pinByHeader struct {
	backend.Session
	b *Backend
}

func (s *pinByHeader) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	err := s.Session.Pin(ctx, m, h, at)
	if err != nil || !s.b.takeLost() {
		return err
	}
	// It asks again late, as one does that waits for an answer first.
	ctx, cancel := context.WithTimeout(ctx, s.TTL()/4)
	defer cancel()
	if _, err := s.Watch(ctx, m.Line, versionAfter(ctx, s, m.Line, h)); err == nil {
		return backend.ErrVersion
	}
	return nil
}

// versionAfter returns the version of the record if it is still h, and otherwise none, so that a watch behind it returns at once.
func versionAfter(ctx context.Context, s backend.Session, name string, h backend.Header) backend.Version {
	r, err := s.Get(ctx, name)
	if err != nil || string(r.Value) != string(h.Encode()) {
		return backend.Any
	}
	return r.Version
}

type waitBehindSeal struct{ backend.Session }

func (s *waitBehindSeal) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if !errors.Is(err, backend.ErrSealed) {
		return p, err
	}
	return inFront(ctx, s.Session, m)
}

type passSeal struct{ backend.Session }

func (s *passSeal) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if errors.Is(err, backend.ErrSealed) {
		if unsealed, _ := inFront(ctx, s.Session, m); unsealed.First {
			return unsealed, nil
		}
	}
	return p, err
}

// inFront is Ahead by the line alone.
func inFront(ctx context.Context, s backend.Session, m backend.Member) (backend.Place, error) {
	l, err := s.Line(ctx, m.Line)
	if err != nil {
		return backend.Place{}, err
	}
	p := backend.Place{First: true, Token: l.Token(m), Header: l.Header}
	for _, o := range l.Members {
		if o.Position < m.Position {
			p = backend.Place{Ahead: o, Header: l.Header}
		}
	}
	return p, nil
}
