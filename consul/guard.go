package consul

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// A waiter is a call of WatchPlace.
type waiter struct {
	m, watched backend.Member // watched is the member in front, or m itself if it is first
	own, key   string         // their keys
	wake       chan struct{}  // says that one of them may have gone

	lost context.CancelCauseFunc // ends the call of a first member that has gone; nil for others
}

// enlist adds the waiter. It wakes the waiter if that would not be told any more, because one of its members has already left or, if it
// is the one in front, was pinned.
func (s *session) enlist(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := func(key string, m backend.Member) bool { return s.owns(m) && s.members[key].position != m.Position }
	if left(w.own, w.m) || left(w.key, w.watched) || w.key != w.own && s.members[w.key].pinned && !w.watched.Pinned {
		kit.Notify(w.wake)
	}
	s.waiters[w.own] = append(s.waiters[w.own], w)
	if w.key != w.own {
		s.waiters[w.key] = append(s.waiters[w.key], w)
	}
}

func (s *session) delist(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range []string{w.own, w.key} {
		rest := slices.DeleteFunc(s.waiters[key], func(o *waiter) bool { return o == w })
		if s.waiters[key] = rest; len(rest) == 0 {
			delete(s.waiters, key)
		}
	}
}

// tell wakes the waiters that stand at the key, or wait for the member there.
func (s *session) tell(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.waiters[key] {
		kit.Notify(w.wake)
	}
}

// proven wakes the waiters for the member at that position, which is now proved to have gone. A
// leader learns of its removal by this alone, whatever it reads meanwhile, because the next one
// leads after a single read.
func (s *session) proven(key string, position uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.waiters[key] {
		switch {
		case w.watched.Position != position:
		case w.lost == nil:
			kit.Notify(w.wake)
		default:
			w.lost(backend.ErrNotMember)
			if at := s.members[key]; at.position == position && !at.leaves {
				kit.Notify(s.doubted)
			}
		}
	}
}

// watched is called when a watch of m has ended, or a look where m stands, which began at begun. If m is of this session, and all of
// them were denied for a whole TTL, watched ends the session; see [kit.Denial].
func (s *session) watched(ctx context.Context, key string, m backend.Member, begun time.Time, err error) {
	tooLong := false
	s.know(key, m.Position, func(at *standing) { tooLong = at.unseen.Lasts(ctx, begun, err, s.b.o.TTL) })
	if tooLong {
		s.End(fmt.Errorf("for %v it was denied to watch its member %w", s.b.o.TTL, kit.About(m, err)))
	}
}

// About once in a session time, guard looks for all waiters together whether their own members, and
// those they wait for, still stand. So a query that has died unseen delays a waiter for no longer
// than that. If a query ended before its time, a snapshot may have been restored; then guard looks
// at once, and also looks for members that have left and stand again.
func (s *session) guard() {
	tick := time.NewTicker(s.b.o.TTL)
	defer tick.Stop()
	quiet := s.b.o.quiet()
	for n := 1; ; n++ {
		unheard := false
		select {
		case <-s.Context().Done():
			return
		case <-tick.C:
			quiet.Reset()
		case <-s.unheard:
			unheard = true
		}
		err := s.lookAround(unheard, unheard || n%4 == 0)
		if s.Context().Err() != nil {
			return
		}
		if err != nil {
			s.b.o.Logger.Warn("could not look whether those who wait still stand in line", "err", err)
		}
		if unheard && quiet.Sleep(s.Context()) != nil {
			return
		}
	}
}

// An entry is what a key was read to have: nothing if pair is nil, or why the token may not read it.
type entry struct {
	pair   *api.KVPair
	denied error
}

// readEach reads keys, as many as one request may read, by send, which is [session.attempt] or [session.retry]. Consul refuses the request
// if the token may not read one of them: then that one is denied, and the others are read.
func (s *session) readEach(ctx context.Context, send func(context.Context, func(context.Context) error) error, keys []string, into map[string]entry) error {
	var r *result
	err := send(ctx, func(ctx context.Context) (err error) {
		r, err = s.b.c.read(ctx, gets(keys...)...)
		return err
	})
	switch half := len(keys) / 2; {
	case errors.Is(err, backend.ErrDenied) && half > 0:
		return errors.Join(s.readEach(ctx, send, keys[:half], into), s.readEach(ctx, send, keys[half:], into))
	case errors.Is(err, backend.ErrDenied):
		into[keys[0]] = entry{denied: err}
		return nil
	case err != nil:
		return err
	}
	for _, key := range keys {
		into[key] = entry{pair: r.find(key)}
	}
	return nil
}

func (s *session) lookAround(lines, verify bool) error {
	s.mu.Lock()
	var all []*waiter
	keys, names := make([]string, 0, len(s.waiters)), make(map[string]bool)
	for key, ws := range s.waiters {
		keys = append(keys, key)
		for _, w := range ws {
			names[w.m.Line] = true
		}
		all = append(all, ws...)
	}
	s.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	ctx := urgent(s.Context())
	if verify {
		if err := s.verify(ctx); err != nil && !errors.Is(err, backend.ErrDenied) {
			return err
		}
	}
	if lines {
		for name := range names {
			if _, err := s.Line(ctx, name); err != nil && !errors.Is(err, backend.ErrDenied) { // Line disowns such members
				return err
			}
		}
	}
	entries := make(map[string]entry, len(keys))
	for some := range slices.Chunk(keys, maxOps) {
		if err := s.readEach(ctx, s.retry, some, entries); err != nil {
			return err
		}
	}
	for _, w := range all {
		own, ahead := entries[w.own].pair, entries[w.key].pair
		switch {
		case entries[w.own].denied != nil || entries[w.key].denied != nil: // its own look fails, and says why
			kit.Notify(w.wake)
		case ahead == nil || ahead.CreateIndex != w.watched.Position:
			s.proven(w.key, w.watched.Position)
		case own == nil || own.CreateIndex != w.m.Position, w.own != w.key && ahead.Session == "" && !w.watched.Pinned:
			kit.Notify(w.wake)
		}
	}
	return nil
}
