package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
)

// A place is what the session joined as one member: a member on one coordinator or
// one on each. What the caller knows it by is the first of them.
type place struct {
	line, value string
	as          backend.Member // as the caller knows it

	take   mutex // for what changes the place: taking To, the cutover, leaving
	writes mutex // for guarded writes, of which none may be under way when From is sealed, and for the seal

	mu     sync.Mutex
	at     [2]backend.Member // by side; the zero Member where it has none
	marks  [2]backend.Member // that say of those that they are a composite's
	onlyTo bool              // it joined To alone, or it has sealed From; guarded by the session's lock

	first    [2]bool   // by side; it leads, and the coordinator's deadline is the term's
	quitting bool      // it is being given up; guarded by the session's lock
	alone    bool      // it leads, or waits, on one coordinator, and needs no place on the other
	aborted  string    // the ID of the migration after whose abort it needs no place on To
	outdated bool      // it leads by From alone, and another migration was begun
	until    time.Time // until when it tries to get To; zero where it is not first on From, or has To
	lost     bool      // its member on To has gone
	dropping bool      // it gives that up itself, and goes on by From alone
	unsure   bool      // it has sent a seal and may not leave From by its own hand
}

func newPlace(line, value string, sd side, m backend.Member) *place {
	p := &place{line: line, value: value, as: sd.tag(m), take: make(mutex, 1), writes: make(mutex, 1)}
	p.at[sd] = m
	p.onlyTo = sd == sideTo
	p.alone = p.onlyTo
	return p
}

func (p *place) member(sd side) backend.Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at[sd]
}

func (p *place) set(sd side, m backend.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[sd] = m
}

// leads notes by which coordinators p leads.
func (p *place) leads(from, to bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first = [2]bool{from, to}
}

func (p *place) isLeader() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first != [2]bool{}
}

func (p *place) isAlone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alone
}

// lose notes that p's member on To has gone, unless p gave that up itself.
func (p *place) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = !p.dropping && p.at[sideTo].Key != ""
}

func (p *place) isLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// outdate notes that p leads by From alone, and needs both by now.
func (p *place) outdate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outdated = true
}

func (p *place) isOutdated() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outdated
}

// A mutex has room for one.
type mutex chan struct{}

// lock takes it for the caller, unless ctx ends first.
func (m mutex) lock(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m mutex) unlock() { <-m }

// owned returns the session's own place that m is, or nil.
func (s *session) owned(m backend.Member) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[identity(m)]
}

func identity(m backend.Member) backend.Member {
	return backend.Member{Line: m.Line, Key: m.Key, Position: m.Position}
}

// isOnlyTo reports whether p hangs on To alone.
func (s *session) isOnlyTo(p *place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.onlyTo
}

// Join adds a member where the election is, as the records of both coordinators say;
// see [backend.Session]. It takes two round trips more than that coordinator's own Join.
// It fails with [ErrNotBegun] or [ErrOther] where the records have no place for this
// process, and with [Options] Begin begins a migration first, where nobody has.
func (s *session) Join(ctx context.Context, line, value string) (backend.Member, error) {
	m, err := s.join(ctx, line, value)
	return m, s.told("join", line, err)
}

func (s *session) join(ctx context.Context, line, value string) (backend.Member, error) {
	err := backend.CheckName(line)
	if err == nil {
		err = backend.CheckValue(value)
	}
	if err != nil {
		return backend.Member{}, err
	}
	r, err := s.find(ctx, line)
	if errors.Is(err, ErrNotBegun) && s.b.o.Begin {
		r, err = s.begin(ctx, line, err)
	}
	if err != nil && !errors.Is(err, backend.ErrSealed) { // that is for Ahead to say
		return backend.Member{}, err
	}
	sd := sideFrom
	if r.alone == sideTo && !r.both {
		sd = sideTo
	}
	half, err := s.half(sd)
	if err != nil {
		return backend.Member{}, err
	}
	m, err := half.Join(ctx, line, value)
	if err != nil {
		return backend.Member{}, err
	}
	p := newPlace(line, value, sd, m)
	s.mu.Lock()
	err = half.Err()
	if err == nil { // else that of From may be another one by now
		s.places[identity(p.as)] = p
	}
	s.mu.Unlock()
	if err != nil {
		return backend.Member{}, err
	}
	s.mark(ctx, p, sd)
	return p.as, nil
}

// begin begins the migration that nobody has begun, as why says, and finds where the
// election is then. It refuses where the election seems to be on To: such a process may
// have been started with the two exchanged.
func (s *session) begin(ctx context.Context, line string, why error) (ruling, error) {
	for wait := backoff.New(ctx); ; {
		k, err := s.b.look(ctx, line)
		if err != nil {
			return ruling{}, err
		}
		from, to := k.line[sideFrom], k.line[sideTo]
		if to.Version != backend.Absent && !gated(to.Header) && from.Version == backend.Absent && len(from.Members) == 0 {
			return ruling{}, fmt.Errorf("%w; it is not begun from here, as %s knows the election and %s does not: are they exchanged?", why, s.b.o.To, s.b.o.From)
		}
		again, err := s.b.begin(ctx, line, s.b.newID(), k)
		switch {
		case errors.Is(err, ErrRefused):
			return ruling{}, fmt.Errorf("%w; it cannot be begun from here: %w", why, err)
		case again && err == nil:
			continue
		case errors.Is(err, backend.ErrVersion): // somebody else was faster
			if err := wait.Sleep(ctx); err != nil {
				return ruling{}, err
			}
			continue
		case err != nil:
			return ruling{}, err
		}
		s.b.log.Info("began the migration", "election", line, "from", s.b.o.From, "to", s.b.o.To)
		return s.find(ctx, line)
	}
}

// find says where the election is. It takes a migration that has been decided to its
// end first.
func (s *session) find(ctx context.Context, line string) (ruling, error) {
	h, errs := s.headers(ctx, line)
	if err := errs[sideTo]; err != nil {
		return ruling{}, err
	}
	if errs[sideFrom] != nil {
		// From is not needed where To's record is enough.
		if r, err := s.b.rule(backend.Header{}, h[sideTo]); err == nil && r.alone == sideTo && !r.both {
			s.setMoved(line)
			return r, nil
		}
		if _, err := s.half(sideFrom); err != nil {
			return ruling{}, err
		}
		return ruling{}, errs[sideFrom]
	}
	r, err := s.b.rule(h[sideFrom], h[sideTo])
	if err != nil {
		return r, err
	}
	if r.half {
		if err := s.b.finish(ctx, s.sub[sideTo], line, h[sideFrom]); err != nil {
			return r, err
		}
	}
	if r.alone == sideTo && !r.both {
		s.setMoved(line)
	} else {
		s.forgetMoved(line)
	}
	return r, nil
}

// Leave removes a member; see [backend.Session]. A place on both coordinators is left on
// To first. A place that has sealed From leaves To alone: the seal stays.
func (s *session) Leave(ctx context.Context, m backend.Member) error {
	return s.told("leave", m.Line, s.leave(ctx, m))
}

func (s *session) leave(ctx context.Context, m backend.Member) error {
	p := s.owned(m)
	if p == nil {
		return s.leaveStranger(ctx, m)
	}
	if err := p.take.lock(ctx); err != nil {
		return err
	}
	defer p.take.unlock()
	return s.quit(ctx, p)
}

// leaveStranger removes a member that this session did not join. What holds a
// migration together is not anybody's to remove.
func (s *session) leaveStranger(ctx context.Context, m backend.Member) error {
	m, sd := untag(m)
	half, err := s.half(sd)
	if err != nil {
		return err
	}
	l, err := half.Line(ctx, m.Line)
	if err != nil {
		return err
	}
	if i := index(l, m); i >= 0 && l.Members[i].Pinned {
		if g, ok := gate(l); l.Header.Sealed != "" || ok && same(g, m) {
			return fmt.Errorf("%w: %s is the gate or the seal of a migration; abort that instead", backend.ErrDenied, m.Key)
		}
	}
	return half.Leave(ctx, m)
}

// quit gives up the whole place. The caller holds it.
func (s *session) quit(ctx context.Context, p *place) error {
	if err := s.quitSide(ctx, p, sideTo); err != nil {
		return err
	}
	defer s.unmark(ctx, p)
	switch {
	case s.isOnlyTo(p) && p.member(sideFrom).Key != "":
		return nil // it stays known, so that nobody takes the seal for a member
	case s.isOnlyTo(p):
	case p.unsure:
		// Perhaps the member is the seal. The end of its session takes it away if it
		// is not.
		err := fmt.Errorf("%w: its seal on %s may be under way, so the session had to end", backend.ErrSessionEnded, s.b.o.From)
		s.end(err)
		return err
	default:
		if err := s.quitSide(ctx, p, sideFrom); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.places, identity(p.as))
	return nil
}

func (s *session) quitSide(ctx context.Context, p *place, sd side) error {
	m := p.member(sd)
	if m.Key == "" {
		return nil
	}
	half, err := s.half(sd)
	if err != nil {
		return err
	}
	if err := half.Leave(ctx, m); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first[sd] = false
	if sd == sideTo {
		p.at[sd] = backend.Member{}
	}
	return nil
}

// Pin makes a member permanent where it stands; see [backend.Session].
func (s *session) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	sd := sideFrom
	if p := s.owned(m); p != nil {
		if s.isOnlyTo(p) {
			sd = sideTo
		}
		m = p.member(sd)
	} else {
		m, sd = untag(m)
	}
	plain, ok := sd.plain(at)
	half, err := s.half(sd)
	if err == nil && !ok {
		err = fmt.Errorf("%w: it is kept by the other coordinator by now", backend.ErrVersion)
	}
	if err == nil {
		err = half.Pin(ctx, m, h, plain)
	}
	return s.told("pin", m.Line, err)
}
