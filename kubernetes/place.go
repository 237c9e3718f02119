package kubernetes

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
)

// WatchPlace blocks until m stands otherwise than p says; see [backend.Session]. It watches the session of the member in front
// with all its members, and the record of the line if m is first or the one in front stays when the election moves. While it
// waits it sends nothing.
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	if !p.First && strings.HasPrefix(p.Ahead.Key, lockAhead) {
		return s.watchLock(ctx, m, p)
	}
	about := []subject{{ofLabel, s.name}}
	front, said, since, err := s.standsBehind(ctx, m, p)
	if err != nil {
		return err
	}
	uid, of := "", "" // of the session in front
	if front != nil {
		if of, uid = front.session(); of != s.name {
			about = append(about, subject{ofLabel, of})
		}
	} else if !p.First { // it has gone
		*p, err = s.Ahead(ctx, m)
		return err
	}
	record := s.b.recordName(m.Line)
	if p.First || p.Ahead.Pinned {
		about = append(about, subject{idLabel, record})
	}
	ahead := p.Ahead
	var heard atomic.Pointer[string] // what the record said when this call looked last
	heard.Store(&said)
	w := newWaiter(func(e event) bool {
		switch e.Metadata.Name {
		case m.Key, of:
			return e.deleted
		case ahead.Key:
			return e.deleted || e.isItem() && !ahead.Pinned
		}
		// A leader that writes under guard changes the record too, and nothing that concerns a place.
		return e.Metadata.Name == record && e.now().said() != *heard.Load()
	}, m.Key, ahead.Key)
	var due func() time.Duration
	if !p.First && !ahead.Pinned && uid != s.uid {
		due = func() time.Duration { return s.due(uid) }
	}
	return s.hub.await(ctx, w, about, since, func() (bool, error) {
		was := *p
		now := ""
		if *p, now, err = s.stand(ctx, m); err != nil {
			return false, err
		}
		heard.Store(&now)
		if was.First {
			return *p != was, nil
		}
		a, b := p.Ahead, was.Ahead
		return p.First || a.Key != b.Key || a.Position != b.Position || a.Pinned != b.Pinned, nil
	}, due)
}

// standsBehind returns the object of the member in front that p names, or nil if it has gone. If p is what this session has said
// last, since is the version of which it had seen all then, and said is what the record said; otherwise they are 0 and empty.
func (s *session) standsBehind(ctx context.Context, m backend.Member, p *backend.Place) (front *object, said string, since int64, err error) {
	s.mu.Lock()
	mine := s.mine(m)
	if mine != nil && mine.place == *p {
		said, since = mine.said, mine.since
		if n := len(mine.front); n > 0 {
			front = mine.front[n-1]
		}
	}
	s.mu.Unlock()
	if p.First || front != nil && front.Metadata.Name == p.Ahead.Key {
		return front, said, since, nil
	}
	front, err = s.get(ctx, p.Ahead.Key, metadata)
	if err == nil && (front == nil || front.position() != p.Ahead.Position) {
		s.strayed(p.Ahead, front)
		front = nil
	}
	return front, "", 0, err
}

// Gone blocks until m has gone, or was pinned; see [backend.Session].
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	if strings.HasPrefix(m.Key, lockAhead) {
		return s.goneLock(ctx, m)
	}
	since := s.b.wire.seen.Load()
	of, uid := "", ""
	look := func() (bool, error) {
		o, err := s.get(ctx, m.Key, metadata)
		switch {
		case err != nil:
			return false, err
		case o == nil || o.position() != m.Position:
			s.strayed(m, o)
			return true, nil
		}
		of, uid = o.session()
		if o.isItem() {
			uid = ""
			return !m.Pinned, nil
		}
		stands, err := s.stands(ctx, o)
		return !stands, err
	}
	if done, err := look(); done || err != nil {
		return err
	}
	session := of
	w := newWaiter(func(e event) bool {
		return e.deleted && (e.Metadata.Name == m.Key || e.Metadata.Name == session) || e.Metadata.Name == m.Key && e.isItem() && !m.Pinned
	}, m.Key)
	var due func() time.Duration
	if uid != "" && uid != s.uid {
		due = func() time.Duration { return s.due(uid) }
	}
	return s.hub.await(ctx, w, []subject{{ofLabel, session}}, since, look, due)
}
