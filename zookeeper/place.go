package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// WatchPlace implements [backend.PlaceWatcher]. It watches the znode of m and that of the member
// in front. For the leader and the heir it also watches the header: an heir then knows it when
// its turn comes, and needs to read the list alone.
//
// It never looks again by the clock, because no watch dies alone: a server drops it only with the
// connection, and the session's pings prove that the connection lives. When that breaks, package
// wire lets every watch fire, and WatchPlace looks again on the next connection. The library
// would set its watches again by itself (sendSetWatches in conn.go of go-zookeeper/zk), but those
// that have fired are no longer among them.
func (s *session) WatchPlace(ctx context.Context, m backend.Member, after backend.Place) (backend.Place, error) {
	var none backend.Place
	path, err := s.options.member(m)
	if err != nil {
		return none, err
	}
	o := s.owner(path, m)
	own := &view{key: dataOf(path)}
	front, header := new(view), new(view)
	if !after.First {
		ahead, err := s.options.member(after.Ahead)
		if err != nil {
			return none, err
		}
		front.key = dataOf(ahead)
	}
	if after.First || s.isHeir(o) {
		header.key = dataOf(s.options.path(m.Line))
	}
	position := after.Ahead.Position // 0 until it is known
	for stirred := false; ; {
		breaks := s.link.Breaks()
		if err := s.lookAll(ctx, own, front, header); err != nil {
			return none, err
		}
		if own.missing || own.position() != m.Position {
			if o != nil {
				s.forget(o)
			}
			return none, fmt.Errorf("%w: %s has gone", backend.ErrNotMember, m.Key)
		}
		h := after.Header
		if header.fired != nil {
			if h, err = backend.ParseHeader(decode(header.data)); err != nil {
				return none, err
			}
		}
		switch {
		case after.First && h != after.Header:
			// Who joins stands behind, so m is still first.
			m.Pinned = own.pinned()
			return backend.PlaceOf(m, nil, h)
		case !after.First && (front.missing || position != 0 && front.position() != position):
			s.advances(o)
			return s.Ahead(ctx, m)
		case stirred, h.Sealed != after.Header.Sealed, h.Migration != after.Header.Migration:
			return s.Ahead(ctx, m)
		case !after.First:
			position = front.position()
		}
		select {
		case <-own.fired: // it has gone, or was pinned
			stirred = breaks == s.link.Breaks()
		case <-front.fired:
			if breaks == s.link.Breaks() {
				s.advances(o)
				return s.Ahead(ctx, m)
			}
		case <-header.fired:
		case <-o.removed():
		case <-ctx.Done():
			return none, context.Cause(ctx)
		}
	}
}

// A view is what somebody sees of one znode, and watches. It is of nothing if key is zero: its
// channel is then nil.
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

// isHeir reports whether o, which may be nil, stood second at the last Ahead.
func (s *session) isHeir(o *member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o != nil && o.index == 1
}

// advances notes that the member in front of o, which may be nil, has gone: o may be first.
func (s *session) advances(o *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o != nil {
		s.place(o, -1)
	}
}
