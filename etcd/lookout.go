package etcd

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
)

// A lookout has many members of one line look together. For each that looks alone etcd looks
// through all keys of the line. If ten thousand join at once, that is a hundred million keys.
// So beyond a few, they share views of the whole line.
type lookout struct {
	s *session

	mu    sync.Mutex
	lines map[string]*looks // those that somebody looks at
}

// maxAlone is how many members of one line look alone at the same time.
const maxAlone = 8

// looks are what is under way in one line.
type looks struct {
	alone   int
	reading bool
	next    *view // for those who came after the present one was asked for; nil for nobody
}

// A view is a whole line at one revision. Its fields may be read once ready is closed.
type view struct {
	ready     chan struct{}
	err       error
	keys      []*mvccpb.KeyValue // without values and leases, the oldest first
	header    backend.Header
	revision  int64
	heartbeat ack // the newest answered one before
	term      uint64
}

// enter returns a view that was asked for after the call, or nil if the caller may look alone.
// It must then call leave.
func (l *lookout) enter(ctx context.Context, line string) (*view, error) {
	l.mu.Lock()
	now := l.lines[line]
	if now == nil {
		now = new(looks)
		l.lines[line] = now
	}
	if !now.reading && now.alone < maxAlone {
		now.alone++
		l.mu.Unlock()
		return nil, nil
	}
	if now.next == nil {
		now.next = &view{ready: make(chan struct{})}
	}
	v := now.next
	l.goOn(line, now)
	l.mu.Unlock()
	select {
	case <-v.ready:
		return v, v.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// leave says that a member that looked alone has done so.
func (l *lookout) leave(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines[line].alone--
	l.goOn(line, l.lines[line])
}

// goOn begins to read the next view, if somebody waits for it and no other is being read.
func (l *lookout) goOn(line string, now *looks) {
	v := now.next
	switch {
	case now.reading:
	case v != nil:
		now.next = nil
		now.reading = l.s.Go(func() {
			v.err = l.s.view(line, v)
			close(v.ready)
			l.mu.Lock()
			defer l.mu.Unlock()
			now.reading = false
			l.goOn(line, now)
		})
		if !now.reading {
			v.err = l.s.Ended()
			close(v.ready)
		}
	case now.alone == 0:
		delete(l.lines, line)
	}
}

// view reads the line.
func (s *session) view(line string, v *view) error {
	v.heartbeat = s.proof.last()
	resp, err := s.read(s.Context(),
		clientv3.OpGet(s.b.folder(line), clientv3.WithPrefix(), clientv3.WithKeysOnly(),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)),
		clientv3.OpGet(s.b.record(line)),
	)
	if err != nil {
		return err
	}
	v.keys, v.revision, v.term = rangeOf(resp, 0).Kvs, resp.Header.Revision, resp.Header.RaftTerm
	if len(v.keys) > 0 {
		if head, ok := s.b.memberOf(line, v.keys[0]); ok {
			s.sawHead(line, head.Position)
		}
	}
	v.header, err = headerOf(rangeOf(resp, 1))
	return err
}

// aheadIn says where m stands in the view. known is false if the view does not tell: who is
// pinned, and whether a key with a strange name is that of a member.
func (s *session) aheadIn(ctx context.Context, m backend.Member, v *view) (p backend.Place, known bool, err error) {
	i, stands := slices.BinarySearchFunc(v.keys, int64(m.Position), func(kv *mvccpb.KeyValue, position int64) int {
		return cmp.Compare(kv.CreateRevision, position)
	})
	switch {
	case !stands:
		s.follow(m)
		return p, true, backend.ErrNotMember
	case string(v.keys[i].Key) != s.b.member(m) || v.header.Sealed != "":
		return p, false, nil
	}
	var ahead *backend.Member
	if i > 0 {
		if ahead = s.b.nearest(m.Line, v.keys[i-1:i], false); ahead == nil {
			return p, false, nil
		}
	}
	p, err = s.place(ctx, m, ahead, v.header, v.heartbeat, v.term)
	return p, true, err
}
