package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// WatchPlace implements [backend.Session]. It watches the znode of m and that of the member
// in front. For the first few of a line it also watches the header: then the heir knows it when its
// turn comes, and needs to read only the list. It also watches the header for a member behind one
// that stays when the election moves.
//
// It never looks again by the clock, because no watch dies alone: a server drops it only with the
// connection, and the session's pings prove that the connection lives. When that breaks, package
// wire lets every watch fire, and WatchPlace looks again on the next connection. The library
// would set its watches again by itself (sendSetWatches in conn.go of go-zookeeper/zk), but those
// that have fired are no longer among them.
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	w, err := s.newPlaceWatch(ctx, m, p)
	if err != nil {
		return err
	}
	for stirred := false; ; {
		breaks := s.link.Breaks()
		if moved, err := s.lookAgain(ctx, w, stirred, p); moved || err != nil {
			return err
		}
		select {
		case <-w.own.fired: // it has gone, or was pinned
			stirred = breaks == s.link.Breaks()
		case <-w.front.fired:
			if breaks == s.link.Breaks() {
				s.advances(w.o)
				return again.Ahead(ctx, s, m, p)
			}
		case <-w.header.fired:
		case <-w.o.removed():
			stirred = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A placeWatch is what a call of WatchPlace watches.
type placeWatch struct {
	m                  backend.Member
	o                  *member // nil if the session has not joined m
	own, front, header view
	position           uint64 // of the member in front; 0 until it is known
}

// newPlaceWatch returns what to watch for a member that stands as p says. Nothing is sent yet, unless another session
// joined m: then this server may be behind.
func (s *session) newPlaceWatch(ctx context.Context, m backend.Member, p *backend.Place) (*placeWatch, error) {
	path, err := s.options.member(m)
	if err != nil {
		return nil, err
	}
	w := &placeWatch{m: m, o: s.owner(path, m), position: p.Ahead.Position}
	if w.o == nil {
		if _, err := s.stranger(ctx, path, m); err != nil {
			return nil, err
		}
	}
	w.own.key = dataOf(path)
	if !p.First {
		ahead, err := s.options.member(p.Ahead)
		if err != nil {
			return nil, err
		}
		w.front.key = dataOf(ahead)
	}
	if p.First || s.options.mayStay(p.Ahead.Key) || s.heedsHeader(w.o) {
		w.heed(s)
	}
	return w, nil
}

// heed has the header watched from the next look on.
func (w *placeWatch) heed(s *session) { w.header.key = dataOf(s.options.path(w.m.Line)) }

// lookAgain reports whether the member may stand otherwise than p says, and then sets p. stirred says
// that its own znode may have changed since the last look.
func (s *session) lookAgain(ctx context.Context, w *placeWatch, stirred bool, p *backend.Place) (moved bool, err error) {
	if err := s.lookAll(ctx, &w.own, &w.front, &w.header); err != nil {
		return false, err
	}
	if w.header.key == (wire.WatchKey{}) && !w.front.missing && w.front.pinned() {
		w.heed(s)
		if err := s.lookAll(ctx, &w.header); err != nil {
			return false, err
		}
	}
	m := w.m
	if w.own.missing || w.own.position() != m.Position {
		if w.o != nil {
			s.forget(w.o)
		}
		return false, fmt.Errorf("%w: %s has gone", backend.ErrNotMember, m.Key)
	}
	h := p.Header
	if w.header.fired != nil {
		if h, err = backend.ParseHeader(decode(w.header.data)); err != nil {
			return false, err
		}
	}
	switch {
	case p.First && h != p.Header:
		// New members stand behind, so m is still first.
		m.Pinned = w.own.pinned()
		*p, err = kit.PlaceOf(m, nil, h)
		return true, err
	case !p.First && (w.front.missing || w.position != 0 && w.front.position() != w.position):
		s.advances(w.o)
		return true, again.Ahead(ctx, s, m, p)
	case stirred, decides(h) != decides(p.Header):
		return true, again.Ahead(ctx, s, m, p)
	case !p.First:
		w.position = w.front.position()
	}
	return false, nil
}

// decides returns what in the header concerns also members that are not first.
func decides(h backend.Header) backend.Header {
	h.Notes = ""
	return h
}

// A view is what a call has seen of one znode, with a watch on it. If key is zero, it is empty, and
// its channel is nil.
type view struct {
	key wire.WatchKey
	watched
}

// lookAll looks at all of these at the same time. It sends nothing for what is known.
func (s *session) lookAll(ctx context.Context, views ...*view) error {
	errs := make([]error, len(views))
	var looks sync.WaitGroup
	for i, v := range views {
		if v.key == (wire.WatchKey{}) {
			continue
		}
		var known bool
		if v.watched, known = s.watches.known(v.key); !known {
			looks.Go(func() { v.sight, v.fired, errs[i] = s.look(ctx, v.key) })
		}
	}
	looks.Wait()
	return errors.Join(errs...)
}

// heedful is how many members of a line, from the first on, watch the header. They are more than
// the leader and the heir, because a member does not notice that it has become the heir.
const heedful = 8

// heedsHeader reports whether o, which may be nil, stood among the first few at the last Ahead.
func (s *session) heedsHeader(o *member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o != nil && 0 <= o.index && o.index < heedful
}

// advances notes that the member in front of o, which may be nil, has gone: o may be first.
func (s *session) advances(o *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o != nil {
		s.place(o, -1)
	}
}
