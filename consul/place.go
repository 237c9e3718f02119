package consul

import (
	"context"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/again"
)

// WatchPlace blocks until m stands otherwise than p says; see [backend.Session]. It
// has a blocking query on the key of the member in front or, if m is first, on its own key,
// and one on the header if m is first or behind a pinned member. The session notices the rest for
// all waiters: that m has gone while it waits, and changes that a query has missed; see
// [session.guard].
//
// If this session has joined the member in front, m needs no query, unless that member may be first
// in line. The session knows when it removes the member itself; if that is a leader, it finds out
// by its own call that an operator has removed it; and if an operator removes it from the middle of
// the line, the guard notices soon enough. So one process can have many waiters.
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	if err := kit.BeforeWatch(ctx, p); err != nil {
		return err
	}
	w := &waiter{m: m, watched: p.Ahead, wake: make(chan struct{}, 1)}
	if p.First {
		w.watched = m
	}
	var err error
	if w.own, err = s.b.o.memberPath(m); err == nil {
		w.key, err = s.b.o.memberPath(w.watched)
	}
	if err != nil {
		return err
	}
	if p.First {
		ctx, w.lost = context.WithCancelCause(ctx)
		defer w.lost(nil)
	}
	ctx = urgent(ctx)
	s.enlist(w)
	defer s.delist(w)

	on, index := topic{key: w.key, member: w.watched.Position}, s.changeOf(w.key, w.watched.Position)
	heeds := p.First || p.Ahead.Pinned // on Consul no other library stands in our lines
	asks := p.First || !s.owns(w.watched) || s.mayBeHeir(w.own, m.Position)
	wait, quiet := s.b.o.patience(), s.b.o.quiet()
	var member, header *query                     // the query under way, or nil
	var memberPause, headerPause <-chan time.Time // the pause before the next query, or nil
	defer func() {
		s.detach(member)
		s.detach(header)
	}()
	for {
		if asks && member == nil && memberPause == nil {
			member = s.attach(on, max(index, 1), true)
		}
		if heeds && header == nil && headerPause == nil {
			q, err := s.attachHeader(ctx, m.Line, &p.Header)
			if err != nil {
				return err
			}
			if q == nil {
				return again.Ahead(ctx, s, m, p)
			}
			header = q
		}
		look := false
		select {
		case <-member.ended():
			q := member
			member = nil
			s.detach(q)
			switch pair := q.pair; {
			case q.err != nil || q.unheard:
				memberPause = time.After(wait.Next())
			case q.proves(w.watched.Position):
				look = true
			case pair != nil:
				wait.Reset()
				index = max(index, pair.ModifyIndex)
				look = !p.First && pair.Session == "" && !p.Ahead.Pinned
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
			return context.Cause(ctx)
		}
		if look {
			// If m has left, it must not send requests while the next one needs the connections.
			if s.owns(m) && s.hasLeft(w.own, m.Position) {
				return backend.ErrNotMember
			}
			if stays, err := s.lookAgain(ctx, m, p); !stays {
				return err
			}
		}
	}
}

// attachHeader begins to wait for a header other than h. It returns nil if the header is already
// another one, or cannot be understood.
func (s *session) attachHeader(ctx context.Context, line string, h *backend.Header) (*query, error) {
	r, at, err := s.get(ctx, line)
	if err != nil {
		return nil, err
	}
	if now, err := backend.ParseHeader(r.Value); err != nil || now != *h {
		return nil, nil
	}
	return s.attach(topic{key: s.b.o.key(line)}, max(at, 1), r.Version != backend.Absent), nil
}

// lookAgain reports whether m stands as p says. If not, it sets p to where m stands.
func (s *session) lookAgain(ctx context.Context, m backend.Member, p *backend.Place) (stays bool, err error) {
	now, err := s.Ahead(ctx, m)
	if err != nil {
		return false, err
	}
	a, b := now.Ahead, p.Ahead
	if now.First {
		stays = p.First && now.Header == p.Header
	} else {
		stays = !p.First && a.Key == b.Key && a.Position == b.Position && a.Pinned == b.Pinned
	}
	if !stays {
		*p = now
	}
	return stays, nil
}

// mayBeHeir reports whether, as far as known, at most one other member stands in front.
func (s *session) mayBeHeir(key string, position uint64) bool {
	f := s.frontAt(key, position)
	return f == nil || len(f.near) <= 1 && f.beyond == 0
}
