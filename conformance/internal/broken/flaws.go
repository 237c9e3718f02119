package broken

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

// Flaws are all flaws, by the law that they break.
var Flaws = []Flaw{
	{Name: "join twice", Law: "L1: after a lost answer it creates another member without looking for the first",
		wrap: func(b *Backend, s backend.Session) backend.Session { return &joinTwice{s, b} }},
	{Name: "orphan", Law: "L1: a cancelled Join goes on in the background, and nobody owns its member",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &orphan{s} }},
	{Name: "stale place", Law: "L2: the first Ahead after Gone answers from what was read before",
		wrap: func(_ *Backend, s backend.Session) backend.Session {
			return &stalePlace{Session: s, places: make(map[backend.Member]backend.Place)}
		}},
	{Name: "stale line", Law: "L2: every third Line is the one before the last",
		wrap: func(_ *Backend, s backend.Session) backend.Session {
			return &staleLine{Session: s, lines: make(map[string][]backend.Line)}
		}},
	{Name: "zombie", Law: "L2: a member that is not in line is taken for the first",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &zombie{s} }},
	{Name: "behind the leader", Law: "L2: everybody is told to wait for the first",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &behindLeader{s} }},
	{Name: "herd", Law: "L3: Gone wakes for every departure from the line",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &herd{s} }},
	{Name: "late watch", Law: "L3: Gone of a member that has gone waits for its departure",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &lateWatch{s} }},
	{Name: "nil on cancel", Law: "L3: a cancelled Gone returns nil, which means that the member has gone",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &nilOnCancel{s} }},
	{Name: "leave by key", Law: "L4: Leave takes out whoever stands under the key",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &leaveByKey{s} }},
	{Name: "next session", Law: "L5: a Join whose session has ended is done under the next one",
		wrap: func(b *Backend, s backend.Session) backend.Session { return &nextSession{s, b} }},
	{Name: "silent end", Law: "L5: Done is not closed when the session ends",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &silentEnd{s} }},
	{Name: "late deadline", Law: "L6: the deadline counts from when answers come, half a TTL late",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &lateDeadline{s} }},
	{Name: "unaware", Law: "L6, G1: a session that is cut off goes on for ever",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &unaware{s} }},
	{Name: "litter", Law: "L7: it keeps a record of its own in the election's folder",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &litter{s} }},
	{Name: "forgiving", Law: "L7: a header that is damaged is taken for none",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &forgiving{s} }},
	{Name: "trim", Law: "L8: values are stored without surrounding space",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &trim{s} }},
	{Name: "pin anyway", Law: "Pin: the header is written whatever version it has",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &pinAnyway{s} }},
	{Name: "read, then write", Law: "Records: the version is compared before the write and not with it",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &readThenWrite{s} }},
	{Name: "lossy watch", Law: "Records: Watch that is called late waits for a change to come",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &lossyWatch{s} }},
	{Name: "key token", Law: "G2: the token is the number in the key, which begins again with the path",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &keyToken{s} }},
	{Name: "mortal fence", Law: "G2: the record that keeps a raised fence goes with the election",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &mortalFence{s} }},
	{Name: "no guard", Law: "G3: the member in the condition of a write is not looked at",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &noGuard{s} }},
	{Name: "leak", Law: "G9: each Gone leaves a goroutine",
		wrap: func(b *Backend, s backend.Session) backend.Session { return &leak{s, b} }},
	{Name: "no context", Law: "G9: Get does not look at its context",
		wrap: func(_ *Backend, s backend.Session) backend.Session { return &noContext{s} }},
	{Name: "stays", Law: "G9: Close does not end the session", stays: true,
		wrap: func(_ *Backend, s backend.Session) backend.Session { return s }},
}

type joinTwice struct {
	backend.Session
	b *Backend
}

func (s *joinTwice) Join(ctx context.Context, line, value string) (backend.Member, error) {
	if s.b.takeLost() {
		if m, err := s.Session.Join(ctx, line, value); err != nil {
			return m, err
		}
	}
	return s.Session.Join(ctx, line, value)
}

type orphan struct{ backend.Session }

func (s *orphan) Join(ctx context.Context, line, value string) (backend.Member, error) {
	type outcome struct {
		m   backend.Member
		err error
	}
	if ctx.Err() != nil {
		return backend.Member{}, context.Cause(ctx)
	}
	result := make(chan outcome, 1)
	go func() {
		m, err := s.Session.Join(context.WithoutCancel(ctx), line, value)
		result <- outcome{m, err}
	}()
	select {
	case o := <-result:
		return o.m, o.err
	case <-ctx.Done():
		return backend.Member{}, context.Cause(ctx)
	}
}

type stalePlace struct {
	backend.Session
	mu     sync.Mutex
	places map[backend.Member]backend.Place // what Ahead said last
	woken  bool
}

func (s *stalePlace) Gone(ctx context.Context, m backend.Member) error {
	err := s.Session.Gone(ctx, m)
	if err == nil {
		s.mu.Lock()
		s.woken = true
		s.mu.Unlock()
	}
	return err
}

func (s *stalePlace) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	s.mu.Lock()
	old, known := s.places[m]
	delete(s.places, m)
	known = known && s.woken && !old.First
	s.woken = false
	s.mu.Unlock()
	if known {
		return old, nil
	}
	p, err := s.Session.Ahead(ctx, m)
	if err == nil {
		s.mu.Lock()
		s.places[m] = p
		s.mu.Unlock()
	}
	return p, err
}

type staleLine struct {
	backend.Session
	mu    sync.Mutex
	lines map[string][]backend.Line // those since the last that was stale
}

func (s *staleLine) Line(ctx context.Context, line string) (backend.Line, error) {
	s.mu.Lock()
	seen := s.lines[line]
	if len(seen) == 2 {
		delete(s.lines, line)
	}
	s.mu.Unlock()
	if len(seen) == 2 {
		return seen[0], nil
	}
	l, err := s.Session.Line(ctx, line)
	if err == nil {
		s.mu.Lock()
		s.lines[line] = append(s.lines[line], l)
		s.mu.Unlock()
	}
	return l, err
}

type zombie struct{ backend.Session }

func (s *zombie) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if errors.Is(err, backend.ErrNotMember) {
		return backend.Place{First: true, Token: m.Position}, nil
	}
	return p, err
}

type behindLeader struct{ backend.Session }

func (s *behindLeader) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || p.First {
		return p, err
	}
	line, err := s.Session.Line(ctx, m.Line)
	if err != nil || len(line.Members) == 0 || line.Members[0] == m {
		return p, err
	}
	return backend.Place{Ahead: line.Members[0]}, nil
}

type herd struct{ backend.Session }

func (s *herd) Gone(ctx context.Context, m backend.Member) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	line, err := s.Session.Line(ctx, m.Line)
	if err != nil {
		return err
	}
	var waits sync.WaitGroup
	defer waits.Wait()
	defer cancel(nil)
	gone := make(chan error, len(line.Members)+1)
	for _, other := range append(line.Members, m) {
		waits.Go(func() { gone <- s.Session.Gone(ctx, other) })
	}
	return <-gone
}

type lateWatch struct{ backend.Session }

func (s *lateWatch) Gone(ctx context.Context, m backend.Member) error {
	line, err := s.Session.Line(ctx, m.Line)
	if err != nil {
		return err
	}
	for _, o := range line.Members {
		if o.Key == m.Key {
			return s.Session.Gone(ctx, m)
		}
	}
	select { // nothing will come
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Done():
		return s.Err()
	}
}

type nilOnCancel struct{ backend.Session }

func (s *nilOnCancel) Gone(ctx context.Context, m backend.Member) error {
	err := s.Session.Gone(ctx, m)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type leaveByKey struct{ backend.Session }

func (s *leaveByKey) Leave(ctx context.Context, m backend.Member) error {
	line, err := s.Session.Line(ctx, m.Line)
	if err != nil && !errors.Is(err, backend.ErrHeader) {
		return err
	}
	for _, o := range line.Members {
		if o.Key == m.Key {
			m = o
		}
	}
	return s.Session.Leave(ctx, m)
}

type nextSession struct {
	backend.Session
	b *Backend
}

func (s *nextSession) Join(ctx context.Context, line, value string) (backend.Member, error) {
	m, err := s.Session.Join(ctx, line, value)
	if !errors.Is(err, backend.ErrSessionEnded) {
		return m, err
	}
	next, err := s.b.Backend.Session(ctx)
	if err != nil {
		return m, err
	}
	return next.Join(ctx, line, value)
}

type silentEnd struct{ backend.Session }

func (s *silentEnd) Done() <-chan struct{} { return nil }

type lateDeadline struct{ backend.Session }

// Deadline is as late as it can become where an answer takes the half of TTL.
func (s *lateDeadline) Deadline() time.Time { return s.Session.Deadline().Add(s.TTL() / 2) }

type unaware struct{ backend.Session }

func (s *unaware) Deadline() time.Time   { return time.Now().Add(s.TTL()) }
func (s *unaware) Done() <-chan struct{} { return nil }
func (s *unaware) Err() error            { return nil }

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

// unlessEnded returns err, and waits for the end of ctx where it is that of the session.
func unlessEnded(ctx context.Context, err error) error {
	if errors.Is(err, backend.ErrSessionEnded) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return err
}

type litter struct{ backend.Session }

func (s *litter) Join(ctx context.Context, line, value string) (backend.Member, error) {
	m, err := s.Session.Join(ctx, line, value)
	if err == nil {
		_, err = s.Session.Put(ctx, line+"/owner", []byte(m.Key), nil)
	}
	return m, err
}

type forgiving struct{ backend.Session }

func (s *forgiving) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if errors.Is(err, backend.ErrHeader) {
		return backend.Place{First: true, Token: m.Position}, nil
	}
	return p, err
}

type trim struct{ backend.Session }

func (s *trim) Join(ctx context.Context, line, value string) (backend.Member, error) {
	return s.Session.Join(ctx, line, strings.TrimSpace(value))
}

type pinAnyway struct{ backend.Session }

func (s *pinAnyway) Pin(ctx context.Context, m backend.Member, h backend.Header, _ backend.Version) error {
	r, err := s.Get(ctx, m.Line)
	if err != nil {
		return err
	}
	return s.Session.Pin(ctx, m, h, r.Version)
}

type readThenWrite struct{ backend.Session }

func (s *readThenWrite) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if cond == nil || cond.Version == 0 {
		return s.Session.Put(ctx, name, value, cond)
	}
	r, err := s.Get(ctx, name)
	if err != nil {
		return 0, err
	}
	if r.Version != cond.Version {
		return 0, backend.ErrVersion
	}
	return s.Session.Put(ctx, name, value, &backend.If{Member: cond.Member})
}

type lossyWatch struct{ backend.Session }

func (s *lossyWatch) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	r, err := s.Get(ctx, name)
	if err != nil || after == 0 {
		return r, err
	}
	return s.Session.Watch(ctx, name, r.Version)
}

type mortalFence struct{ backend.Session }

func (s *mortalFence) Get(ctx context.Context, name string) (backend.Record, error) {
	r, err := s.Session.Get(ctx, name)
	if election, ok := strings.CutSuffix(name, header.Suffix); ok && err == nil {
		var of backend.Record
		if of, err = s.Session.Get(ctx, election); err == nil && of.Version == backend.Absent {
			r = backend.Record{Name: name, Version: backend.Absent}
		}
	}
	return r, err
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

type noGuard struct{ backend.Session }

func (s *noGuard) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if cond != nil {
		cond = &backend.If{Version: cond.Version}
	}
	return s.Session.Put(ctx, name, value, cond)
}

type leak struct {
	backend.Session
	b *Backend
}

func (s *leak) Gone(ctx context.Context, m backend.Member) error {
	go func() { <-s.b.release }()
	return s.Session.Gone(ctx, m)
}

type noContext struct{ backend.Session }

func (s *noContext) Get(ctx context.Context, name string) (backend.Record, error) {
	return s.Session.Get(context.WithoutCancel(ctx), name)
}
