package zookeeper

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// Ahead implements [backend.Session]. It sends its requests at the same time, on one
// connection: for the list, for the header unless that is known, and a heartbeat if m may be
// first and the deadline is near.
func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	var none backend.Place
	path, err := s.options.member(m)
	if err != nil {
		return none, err
	}
	o := s.owner(path, m)
	if o == nil {
		if o, err = s.stranger(ctx, path, m); err != nil {
			return none, err
		}
	}
	if err := s.unpinning(ctx, o); err != nil {
		return none, err
	}
	return kit.Retry(ctx, pauses(), passing, func(ctx context.Context) (backend.Place, error) { return s.placeOnce(ctx, o) })
}

// stranger returns a stand-in for a member that this session did not join. Ahead can return its
// place, but this session's deadline does not count for it.
func (s *session) stranger(ctx context.Context, path string, m backend.Member) (*member, error) {
	n, err := sure(ctx, s, func(ctx context.Context) (node, error) {
		n, err := retry(ctx, s, get(path))
		if err == zk.ErrNoNode || err == nil && n.position() != m.Position {
			err = fmt.Errorf("%w: %s has gone", backend.ErrNotMember, m.Key)
		}
		return n, err
	})
	if err != nil {
		return nil, err
	}
	return &member{path: path, joined: m, pinned: n.pinned(), stranger: true, index: warm, gone: make(chan struct{})}, nil
}

// placeOnce says where o stands, as one reading of the line tells. If o leads, or may lead behind a
// gate, then from that moment on the session ends when its deadline passes. placeOnce fails with
// errChanged if it has passed already.
func (s *session) placeOnce(ctx context.Context, o *member) (p backend.Place, err error) {
	var beat <-chan error
	r, err := s.reading(ctx, o.joined.Line, func() { beat = s.beatIfDue(ctx, o) })
	if err == nil && r.made != o.parent && !o.stranger {
		err = zk.ErrNoNode // the line was made anew under the same name: o went with the old one
	}
	if err == zk.ErrNoNode {
		s.forget(o)
		return p, fmt.Errorf("%w: %s was deleted", backend.ErrNotMember, s.options.path(o.joined.Line))
	}
	if err != nil {
		return p, err
	}
	return s.placed(ctx, o, r, beat)
}

// reading reads a line, together with others of this session that read it at the same time if they are many. It
// calls sent when it has sent requests of its own.
func (s *session) reading(ctx context.Context, line string, sent func()) (reading, error) {
	r, alone, err := s.lookout.Enter(ctx, line)
	if alone {
		r, err = s.readPlaces(ctx, line, sent)
		s.lookout.Leave(line)
	}
	return r, err
}

// placed says where o stands, as a reading of its line tells. beat is the heartbeat that was sent
// with it; nil for none.
func (s *session) placed(ctx context.Context, o *member, r reading, beat <-chan error) (p backend.Place, err error) {
	standing, h := r.standing, r.header
	index := r.find(o.key())
	if index < 0 {
		s.forget(o)
		return p, fmt.Errorf("%w: %s was deleted", backend.ErrNotMember, o.path)
	}
	var ahead *backend.Member
	front := kit.Awaited(index, func(i int) bool { return isShared(standing[i].key) })
	if front >= 0 {
		key := standing[front].key
		ahead = &backend.Member{Line: o.joined.Line, Key: key, Shared: isShared(key)}
	}
	s.mu.Lock()
	m := o.member()
	s.mu.Unlock()
	if p, err = kit.PlaceOf(m, ahead, h); err != nil {
		return p, err
	}
	// A list of names has no positions. So if there is a gate, the second member may stand just
	// behind it, and lead.
	leads := p.First || front == 0 && h.Gate != 0
	s.stands(o, front+1, p.Ahead.Key, leads)
	if o.stranger || !leads {
		return p, nil
	}
	if beat == nil && s.link.Lease.Left() <= 0 {
		beat = s.beatNow(ctx, o)
	}
	if beat != nil {
		if err := <-beat; err != nil {
			return backend.Place{}, err
		}
	}
	if !s.lead(o) {
		if s.owner(o.path, o.joined) == nil {
			return backend.Place{}, fmt.Errorf("%w: %s was deleted", backend.ErrNotMember, o.path)
		}
		return backend.Place{}, errChanged
	}
	return p, nil
}

// A reading is the places of a line, with its header.
type reading struct {
	made     int64 // czxid of the line's znode
	changed  int64 // its pzxid: the last join or exit
	standing []place
	header   backend.Header
}

// find returns the index of the member called key, or -1.
func (r *reading) find(key string) int {
	seq, _, _ := sequence(key)
	i, _ := slices.BinarySearchFunc(r.standing, seq, func(p place, seq int32) int { return cmp.Compare(p.seq, seq) })
	for ; i < len(r.standing) && r.standing[i].seq == seq; i++ {
		if r.standing[i].key == key {
			return i
		}
	}
	return -1
}

// readPlaces reads a line. It calls sent when the requests have been sent. If the line does not
// exist it fails with zk.ErrNoNode.
func (s *session) readPlaces(ctx context.Context, name string, sent func()) (r reading, err error) {
	line := s.options.path(name)
	list, record, err := s.startPlace(ctx, line)
	if err != nil {
		return r, err
	}
	sent()
	all, err := list.wait(ctx)
	if err != nil {
		return r, err
	}
	r.made, r.changed = all.stat.Czxid, all.stat.Pzxid
	if r.standing, err = places(all.names); err != nil {
		return r, err
	}
	r.header, err = s.fence(ctx, record, all, line)
	return r, err
}

// startPlace sends the requests for the list of children and, unless a watch on the header shows
// that it is as it was, for the header.
func (s *session) startPlace(ctx context.Context, line string) (list call[listing], record call[node], err error) {
	if _, known := s.watches.known(dataOf(line)); known {
		list, err = start(ctx, s, children(line))
		return list, record, err
	}
	return startInOrder(ctx, s, children(line), get(line))
}

func dataOf(path string) wire.WatchKey { return wire.WatchKey{Path: path, Kind: wire.WatchData} }

// fence returns the header, read no earlier than the list of children. If a watch shows it now,
// after the list's answer, it is the newest. Otherwise the server may have answered record before
// the list: it has, if record's answer has a smaller pzxid (the last change of the list of
// children). Then fence reads the header again. It also does so if the header was not requested.
func (s *session) fence(ctx context.Context, record call[node], all listing, line string) (backend.Header, error) {
	var err error
	v, ok := s.watches.known(dataOf(line))
	n := v.node
	if !ok && record.answer != nil {
		n, err = record.wait(ctx)
		ok = err != nil || n.stat.Czxid == all.stat.Czxid && n.stat.Pzxid >= all.stat.Pzxid
	}
	if !ok {
		n, err = do(ctx, s, get(line))
	}
	if err == zk.ErrNoNode {
		err = fmt.Errorf("%w: %s was deleted", backend.ErrNotMember, line)
	}
	if err != nil {
		return backend.Header{}, err
	}
	return backend.ParseHeader(decode(n.data))
}

// beatIfDue sends a heartbeat if o may stand first and the deadline is near. It returns
// the channel for the answer, or nil if it sent none.
func (s *session) beatIfDue(ctx context.Context, o *member) <-chan error {
	s.mu.Lock()
	near := o.index < warm
	s.mu.Unlock()
	// The heartbeats of keep leave more than a third, so an heir need not wait for one.
	if !near || s.link.Lease.Left() > s.TTL()/3 {
		return nil
	}
	return s.beatNow(ctx, o)
}

func (s *session) beatNow(ctx context.Context, o *member) <-chan error {
	ch := make(chan error, 1)
	if !s.spawn(func() { ch <- s.beat(ctx, []string{o.path}) }) {
		ch <- s.link.Ended()
	}
	return ch
}
