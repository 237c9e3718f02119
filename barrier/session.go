package barrier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/backoff"
	"github.com/succession-dev/succession/internal/view"
)

// errCounted says that the barrier has opened with a member that this call had, and has lost.
var errCounted = errors.New("the barrier has opened with this call, and its session has ended before it knew")

// A participant is one call that waits for a barrier. If its session ends, it stands in line as
// another member.
type participant struct {
	n      int
	member backend.Member // the newest; the zero Member before it has joined
	former backend.Member // the one before that
	round  []uint64       // in which it was counted; nil before
}

// A session is that of a participant. In it a member is first when the barrier has opened for it.
//
// Of those for whom it has not opened the first in line counts: it watches the line, and writes
// the record. Each other waits for the nearest of them in front, so that there is always one who
// counts, and for the record.
type session struct {
	view.Shared
	*participant
	record backend.Record  // as last read; its Version is 0 before
	line   *backend.Line   // as last read; nil if it has to be read again
	front  *backend.Member // who is waited for; nil for whoever counts
}

func (p *participant) session(s backend.Session) backend.Session {
	return &session{Shared: view.Shared{Session: s, Instead: "another coordinator"}, participant: p}
}

// Join joins the line if the member that the participant had before was not counted. It waits
// until that has gone: the two would be counted as two.
func (s *session) Join(ctx context.Context, line, value string) (backend.Member, error) {
	for stands := s.member.Position != 0; stands; {
		l, err := s.Line(ctx, line)
		if err != nil {
			return backend.Member{}, err
		}
		stands = index(l, s.member) >= 0
		open, err := s.open(ctx, line)
		switch {
		case err != nil:
			return backend.Member{}, err
		case open.of(s.member) != nil:
			return backend.Member{}, errCounted
		case stands:
			s.record = backend.Record{} // read it again
			wait := backoff.New(ctx)
			if err := again.ForAWhile(ctx, s, wait.Jitter, func(ctx context.Context) error { return s.Session.Gone(ctx, s.member) }); err != nil {
				return backend.Member{}, err
			}
		}
	}
	m, err := s.Shared.Join(ctx, line, value)
	if err == nil {
		s.former, s.member = s.member, m
	}
	return m, err
}

// open returns for whom the barrier has opened, as the record says that was read last.
func (s *session) open(ctx context.Context, name string) (rounds, error) {
	if s.record.Version == 0 {
		r, err := s.Get(ctx, name+suffix)
		if errors.Is(err, errors.ErrUnsupported) {
			return nil, fmt.Errorf("%s cannot be a barrier on this backend, which has no records; use another coordinator: %w", name, err)
		}
		if err != nil {
			return nil, err
		}
		s.record = r
	}
	return parse(s.record)
}

// Ahead says First if the barrier has opened for m. Otherwise it names who is waited for, which is
// m itself if m counts.
func (s *session) Ahead(ctx context.Context, m backend.Member) (p backend.Place, err error) {
	err = patiently(ctx, func() (err error) {
		p, err = s.look(ctx, m)
		return err
	})
	return p, err
}

func (s *session) look(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	switch {
	case err != nil, s.round != nil:
		return p, err
	case !p.First:
		return p, foreign(p.Ahead)
	}
	open, err := s.open(ctx, m.Line)
	if err != nil {
		return p, err
	}
	if open.of(s.former) != nil { // by one who has counted it while it stood, and was slow to write
		return p, errCounted
	}
	if s.round = open.of(m); s.round != nil {
		return p, nil
	}
	if s.line == nil {
		l, err := s.Line(ctx, m.Line)
		if err != nil {
			return p, err
		}
		s.line = &l
	}
	i := index(*s.line, m)
	if i < 0 {
		return p, fmt.Errorf("%w: %s has gone from %s", backend.ErrNotMember, m.Key, m.Line)
	}
	if i > 0 {
		if err := s.agrees(s.line.Members[i-1]); err != nil {
			return p, err
		}
	}
	s.front = nil
	for _, o := range s.line.Members[:i] {
		if open.of(o) == nil {
			s.front = &o
		}
	}
	if s.front != nil {
		return backend.Place{Ahead: *s.front, Header: p.Header}, nil
	}
	return s.count(ctx, m, p, open)
}

// count opens the barrier for the first n for whom it has not opened, m among them, or says that m
// has to wait: then fewer stand in line.
func (s *session) count(ctx context.Context, m backend.Member, first backend.Place, open rounds) (backend.Place, error) {
	var round []uint64
	for _, o := range s.line.Members {
		if n, ok := sizeOf(o); ok && int(n) == s.n && open.of(o) == nil && len(round) < s.n {
			round = append(round, o.Position)
		}
	}
	if len(round) < s.n {
		return backend.Place{Ahead: m, Header: first.Header}, nil
	}
	_, err := s.Put(ctx, s.record.Name, open.with(round, s.line.Members).encode(), &backend.If{Version: s.record.Version, Member: m})
	if err != nil { // perhaps it was written: the record tells, and meanwhile others may have gone
		s.record, s.line = backend.Record{}, nil
		return first, err
	}
	s.round = round
	return first, nil
}

// agrees fails if o, just in front, waits for another number than this participant. So the first
// in line decides.
func (s *session) agrees(o backend.Member) error {
	n, ok := sizeOf(o)
	switch {
	case !ok:
		return foreign(o)
	case int(n) != s.n:
		return fmt.Errorf("barrier: %w number of participants of %s: %d, and %s, which stands in front, says %d; all must give the same", backend.ErrInvalid, o.Line, s.n, o.Key, n)
	}
	return nil
}

func foreign(o backend.Member) error {
	return fmt.Errorf("barrier: %w line %s: %s stands in it, which waits for no barrier; choose a name that nothing else uses", backend.ErrInvalid, o.Line, o.Key)
}

// Gone returns when there may be news for m or, if the barrier has opened for the participant, when
// m has gone.
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	if s.round != nil {
		return s.Session.Gone(ctx, m)
	}
	return patiently(ctx, func() error { return s.news(ctx, m.Line) })
}

// news waits until the record changes or, if that is sooner, who is waited for has gone or, for
// whoever counts, the line changes.
func (s *session) news(ctx context.Context, line string) error {
	var r backend.Record
	l := s.line
	err := either(ctx, func(ctx context.Context) (err error) {
		r, err = s.Watch(ctx, s.record.Name, s.record.Version)
		return err
	}, func(ctx context.Context) error {
		if s.front != nil {
			return s.Session.Gone(ctx, *s.front)
		}
		changed, err := s.WatchLine(ctx, line, *s.line)
		if err == nil {
			l = &changed
		}
		return err
	})
	if err != nil {
		return err
	}
	if r.Version != 0 {
		s.record = r
	}
	if s.line = l; s.front != nil {
		s.line = nil
	}
	return nil
}

// either calls f and g at the same time until one of them has returned, and returns its error.
func either(ctx context.Context, f, g func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var both sync.WaitGroup
	defer both.Wait()
	defer cancel()
	first := make(chan error, 2)
	both.Go(func() { first <- f(ctx) })
	both.Go(func() { first <- g(ctx) })
	return <-first
}

// patiently calls f until it succeeds, or fails for another reason than that the coordinator could
// not be reached, or that somebody wrote at the same time. A member that left the line for such a
// reason might have been counted already.
func patiently(ctx context.Context, f func() error) error {
	wait := backoff.New(ctx)
	for {
		err := f()
		if err == nil || !again.Passing(err) || errors.Is(err, backend.ErrSessionEnded) || errors.Is(err, backend.ErrNotMember) {
			return err
		}
		if err := wait.After(ctx, err); err != nil {
			return err
		}
	}
}

func index(l backend.Line, m backend.Member) int {
	return slices.IndexFunc(l.Members, func(o backend.Member) bool { return o.Position == m.Position })
}
