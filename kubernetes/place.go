package kubernetes

import (
	"context"
	"time"

	"github.com/succession-dev/succession/backend"
)

// WatchPlace blocks until m stands otherwise than p says; see [backend.Session]. It watches the session of the member in front with all its members, and the
// record of the line if m is first or the one in front stays when the election moves. While it waits it sends nothing.
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	selectors := []string{ofLabel + "=" + s.name}
	uid, of := "", "" // of the session in front
	var front *object
	if !p.First {
		var err error
		if front, err = s.get(ctx, p.Ahead.Key, metadata); err != nil {
			return err
		}
		if front == nil || front.position() != p.Ahead.Position {
			return s.placeNow(ctx, m, p, true)
		}
		if of, uid = front.session(); of != s.name {
			selectors = append(selectors, ofLabel+"="+of)
		}
	}
	record := s.b.recordName(m.Line)
	if p.First || p.Ahead.Pinned {
		selectors = append(selectors, ofLabel+"="+record)
	}
	w := newWaiter(func(e event) bool {
		switch e.Metadata.Name {
		case m.Key, of:
			return e.deleted
		case p.Ahead.Key:
			return e.deleted || e.isItem() && !p.Ahead.Pinned
		}
		return e.Metadata.Name == record
	})
	var due func() time.Duration
	if !p.First && !p.Ahead.Pinned && uid != s.uid {
		due = func() time.Duration { return s.due(uid) }
	}
	return s.hub.await(ctx, w, selectors, func() (bool, error) {
		was := *p
		if err := s.placeNow(ctx, m, p, false); err != nil {
			return false, err
		}
		if was.First {
			return *p != was, nil
		}
		a, b := p.Ahead, was.Ahead
		return p.First || a.Key != b.Key || a.Position != b.Position || a.Pinned != b.Pinned, nil
	}, due)
}

// placeNow sets p to where m stands now. left says that the one in front is known to have gone.
func (s *session) placeNow(ctx context.Context, m backend.Member, p *backend.Place, left bool) error {
	if left {
		s.mu.Lock()
		s.past.member(p.Ahead.Key)
		s.mu.Unlock()
	}
	now, _, err := s.ahead(ctx, m)
	*p = now
	return err
}

// Gone blocks until m has gone, or was pinned; see [backend.Session].
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	o, err := s.get(ctx, m.Key, metadata)
	if err != nil || o == nil || o.position() != m.Position {
		return err
	}
	of, uid := o.session()
	w := newWaiter(func(e event) bool {
		return e.deleted && (e.Metadata.Name == m.Key || e.Metadata.Name == of) || e.Metadata.Name == m.Key && e.isItem() && !m.Pinned
	})
	var due func() time.Duration
	if uid != s.uid && !o.isItem() {
		due = func() time.Duration { return s.due(uid) }
	}
	return s.hub.await(ctx, w, []string{ofLabel + "=" + of}, func() (bool, error) {
		now, err := s.get(ctx, m.Key, metadata)
		switch {
		case err != nil:
			return false, err
		case now == nil || now.Metadata.UID != o.Metadata.UID:
			s.mu.Lock()
			s.past.member(m.Key)
			s.mu.Unlock()
			return true, nil
		case now.isItem():
			return !m.Pinned, nil
		}
		stands, err := s.stands(ctx, now)
		return !stands, err
	}, due)
}
