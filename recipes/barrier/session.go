package barrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/recipes/internal/recipe"
)

// errCounted says that the barrier has opened with a member that this call has lost.
var errCounted = errors.New("the barrier has opened with this call, and its session has ended before it knew")

// A participant is one call that waits for a barrier. If its session ends, it stands in line as
// another member.
type participant struct {
	b *Barrier
	part
	round round // in which it was counted; nil before
}

// A session is the session of a participant. In it a member is first when the barrier has opened
// for it.
//
// Of the members for which it has not opened, the first in line counts: it watches the line, and
// writes the record. Each of the others waits for the record, and for the nearest of them in front,
// so that there is always one that counts.
type session struct {
	view.Shared
	*participant
	record backend.Record  // as last read, before the join or later; its Version is 0 if it has to be read again
	line   *backend.Line   // as last read; nil if it has to be read again
	front  *backend.Member // the member to wait for; nil if this one counts
}

func (p *participant) session(s backend.Session) backend.Session {
	return &session{Shared: view.Shared{Session: s, Instead: "another coordinator"}, participant: p}
}

// open returns the rounds of the record that was read last.
func (s *session) open(ctx context.Context) (opening, error) {
	if s.record.Version == 0 {
		r, err := s.Get(ctx, s.b.record())
		if errors.Is(err, errors.ErrUnsupported) {
			return opening{}, fmt.Errorf("%s cannot be a barrier on this backend, which has no records; use another coordinator: %w", s.b.name, err)
		}
		if err != nil {
			return opening{}, err
		}
		s.record = r
	}
	return parse(s.record)
}

// Ahead says First if the barrier has opened for m. Otherwise it names the member to wait for,
// which is m itself if m counts.
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
	case err != nil:
		return p, err
	case s.round != nil && !s.round.has(m): // the session has ended since
		return p, s.lost(p, s.round[s.id], errCounted)
	case s.round != nil:
		return p, nil
	case !p.First:
		return p, s.behind(ctx, p.Ahead)
	}
	open, err := s.open(ctx)
	if err != nil {
		return p, err
	}
	if r := open.of(s.id); r != nil {
		if !r.has(m) {
			return p, s.lost(p, r[s.id], errCounted)
		}
		s.round = r
		return p, nil
	}
	if s.first != m.Position && open.forgotten(s.part) {
		return p, s.lost(p, s.first, fmt.Errorf("%d have passed the barrier since its join was not answered, or its session ended, so that nobody knows whether this call was one of them", remembered))
	}
	if s.line == nil {
		l, err := s.Line(ctx, m.Line)
		if err != nil {
			return p, err
		}
		s.line = &l
	}
	if err := s.agrees(m); err != nil {
		return p, err
	}
	waiting := open.waiting(s.line.Members)
	if i := index(waiting, m); i > 0 {
		s.front = &waiting[i-1]
		return backend.Place{Ahead: *s.front, Header: p.Header}, nil
	}
	s.front = nil
	r := make(round)
	for _, o := range waiting {
		if part, _ := partOf(o); part.n == s.n && len(r) < s.n {
			r[part.id] = o.Position
		}
	}
	if _, other := recipe.In(*s.line); len(r) < s.n || recipe.Paused(*s.line, other) {
		return backend.Place{Ahead: m, Header: p.Header}, nil
	}
	opened := open.with(r, s.line.Members).encode()
	if len(opened) > backend.MaxRecord { // there is room when some of those inside have left
		return backend.Place{Ahead: m, Header: p.Header}, nil
	}
	_, err = s.Put(ctx, s.record.Name, opened, &backend.If{Version: s.record.Version, Member: m})
	if err != nil { // it may have been written: the record says so, and members may have gone meanwhile
		s.record, s.line = backend.Record{}, nil
		return p, err
	}
	s.round = r
	return p, nil
}

// lost returns the error of a call whose member at that position has gone. p is the place of a later one.
func (s *session) lost(p backend.Place, position uint64, why error) error {
	token := backend.Line{Header: p.Header}.Token(backend.Member{Position: position})
	return fmt.Errorf("barrier: %s: %w", s.b.name, &elect.LostError{Election: s.b.line(), Token: token, Err: why})
}

// agrees fails if m has gone, or if a member in front of it waits for another number. So the first
// in line decides.
func (s *session) agrees(m backend.Member) error {
	i := index(s.line.Members, m)
	if i < 0 {
		return fmt.Errorf("%w: %s has gone from %s", backend.ErrNotMember, m.Key, m.Line)
	}
	for _, front := range s.line.Members[:i] {
		switch o, ok := partOf(front); {
		case !ok:
			return aBarrier.Misused(s.b.name, &front)
		case o.n != s.n:
			return fmt.Errorf("barrier: %w number of participants of %s: %d, and %s, which stands in front, says %d; all must give the same", backend.ErrInvalid, s.b.name, s.n, front.Key, o.n)
		}
	}
	return nil
}

// behind has the participant wait for ahead, which is the gate of a pause. It fails if somebody stands in the line who does not
// belong there.
func (s *session) behind(ctx context.Context, ahead backend.Member) error {
	l, err := s.Line(ctx, ahead.Line)
	if err != nil {
		return err
	}
	if _, other := recipe.In(l); other != nil && !recipe.Paused(l, other) {
		return aBarrier.Misused(s.b.name, other)
	}
	s.front, s.line = &ahead, nil
	return nil
}

// Join returns no place, because Ahead has to find that out. If the call may have joined before, its
// new member says so: the member that counts then knows whether the call may have been counted.
//
// Join reads the record first. If the answer is lost, the member may have stood, and nobody knows
// where. But it did not stand before those that the record names.
func (s *session) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	open, err := s.open(ctx)
	if err != nil {
		return backend.Joined{}, err
	}
	if s.first != 0 {
		value = strings.Replace(value, part{n: s.n, id: s.id}.String(), s.part.String(), 1)
	}
	j, err := view.Unplaced(s.Shared.Join(ctx, line, value, record))
	s.first = cmp.Or(s.first, j.Position, open.largest()+1)
	return j, err
}

// WatchPlace implements [backend.Session].
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	return view.WatchPlace(ctx, s, s.Session, m, p)
}

// Gone returns when there may be news for m or, if the barrier has opened for the participant, when
// m has gone.
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	if s.round != nil {
		return s.Session.Gone(ctx, m)
	}
	return patiently(ctx, func() error { return s.news(ctx, m.Line) })
}

// news waits until the record changes. It returns sooner if front has gone or, for the member that
// counts, if the line changes.
func (s *session) news(ctx context.Context, line string) error {
	var r backend.Record
	l := s.line
	err := again.Either(ctx, func(ctx context.Context) (err error) {
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

// patiently calls f again if the coordinator could not be reached, or if somebody wrote at the same
// time. A member that left the line for such a reason might already have been counted.
func patiently(ctx context.Context, f func() error) error {
	return again.Try(ctx, func(err error) bool {
		return again.Passing(err) && !errors.Is(err, backend.ErrSessionEnded) && !errors.Is(err, backend.ErrNotMember)
	}, f)
}

func index(line []backend.Member, m backend.Member) int {
	return slices.IndexFunc(line, func(o backend.Member) bool { return o.Position == m.Position })
}
