package consul

import (
	"context"
	"time"

	"github.com/succession-dev/succession/backend"
)

// WatchPlace blocks until m stands otherwise than after says; see [backend.PlaceWatcher]. It
// has a blocking query on the key of the member in front or, if m is first, on its own key
// and one on the header. All else the session notices for all who wait: that m has gone
// while it waits, and what a query has missed; see [session.guard].
//
// A member in front that this session has joined needs no query unless it may be first in
// line: the session knows when it removes one itself, a leader that waits here finds out
// that it was removed, and what an operator removes from the middle of a line the guard
// notices soon enough. So one process can have many waiters.
func (s *session) WatchPlace(ctx context.Context, m backend.Member, after backend.Place) (backend.Place, error) {
	w := &waiter{m: m, watched: after.Ahead, wake: make(chan struct{}, 1)}
	if after.First {
		w.watched = m
	}
	var err error
	if w.own, err = s.b.o.memberPath(m); err == nil {
		w.key, err = s.b.o.memberPath(w.watched)
	}
	if err != nil {
		return backend.Place{}, err
	}
	s.enlist(w)
	defer s.delist(w)

	on, index := topic{key: w.key, member: w.watched.Position}, s.changeOf(w.key, w.watched.Position)
	asks := after.First || !s.owns(w.watched) || s.mayBeHeir(w.own, m.Position)
	wait, quiet := s.b.o.patience(), s.b.o.quiet()
	var member, header *query                     // under way, or nil
	var memberPause, headerPause <-chan time.Time // until the next one, or nil
	defer func() {
		s.detach(member)
		s.detach(header)
	}()
	for {
		if asks && member == nil && memberPause == nil {
			member = s.attach(on, max(index, 1))
		}
		if after.First && header == nil && headerPause == nil {
			r, at, err := s.get(ctx, m.Line)
			if err != nil {
				return backend.Place{}, err
			}
			if h, err := backend.ParseHeader(r.Value); err != nil || h != after.Header {
				return s.Ahead(ctx, m)
			}
			header = s.attach(topic{key: s.b.o.key(m.Line)}, max(at, 1))
		}
		look, proven := false, false
		select {
		case <-member.ended():
			q := member
			member = nil
			s.detach(q)
			switch p := q.pair; {
			case q.err != nil || q.unheard:
				memberPause = time.After(wait.Next())
			case q.proves(w.watched):
				s.tell(w.key)
				look, proven = true, after.First
			case p != nil:
				wait.Reset()
				index = max(index, p.ModifyIndex)
				look = !after.First && p.Session == "" && !after.Ahead.Pinned
			}
		case <-header.ended():
			q := header
			header = nil
			s.detach(q)
			switch {
			case q.err != nil || q.unheard:
				headerPause = time.After(wait.Next())
			case q.pair == nil: // see Watch
				headerPause = time.After(quiet.Next())
			default:
				wait.Reset()
			}
		case <-memberPause:
			memberPause = nil
		case <-headerPause:
			headerPause = nil
		case <-w.wake:
			look = true
		case <-ctx.Done():
			return backend.Place{}, context.Cause(ctx)
		}
		if look {
			// Who leaves must not ask in the way of who comes next.
			if s.owns(m) && s.hasLeft(w.own, m.Position, proven) {
				return backend.Place{}, backend.ErrNotMember
			}
			p, err := s.Ahead(ctx, m)
			if err != nil || !stays(p, after) {
				return p, err
			}
		}
	}
}

// stays reports whether a member that stands at p has no news since it stood at after.
func stays(p, after backend.Place) bool {
	if p.First {
		return after.First && p.Header == after.Header
	}
	a, b := p.Ahead, after.Ahead
	return !after.First && a.Key == b.Key && a.Position == b.Position && a.Pinned == b.Pinned
}

// mayBeHeir reports whether at most one other stands in front of the member, as far as known.
func (s *session) mayBeHeir(key string, position uint64) bool {
	f := s.frontAt(key, position)
	return f == nil || len(f.near) <= 1 && f.beyond == 0
}
