package etcd

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// WatchPlace blocks until m stands otherwise than p says, and sets p to where it then stands;
// see [backend.Session]. It watches m, the member in front, and the header if m is first or
// the one in front stays when the election moves. While it waits it sends nothing.
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	if err := kit.BeforeWatch(ctx, p); err != nil {
		return err
	}
	begun, first, removed := time.Now(), p.First, false
	err := s.await(ctx, s.placeWatch(m, p, &removed))
	if first {
		s.watched(ctx, m, begun, err)
	}
	if err == nil && removed {
		s.follow(m)
		return backend.ErrNotMember
	}
	return err
}

// placeWatch returns what WatchPlace waits for: it sets p to where m stands, or removed if m has gone.
func (s *session) placeWatch(m backend.Member, p *backend.Place, removed *bool) watching {
	own, header, front := s.b.member(m), s.b.record(m.Line), int64(p.Ahead.Position)
	create := []*pb.WatchCreateRequest{watchKey(own)}
	if !p.First {
		create = append(create, watchKey(s.b.member(p.Ahead)))
	}
	if p.First || stays(p.Ahead) {
		create = append(create, watchKey(header))
	}
	pinned, left := false, false
	return watching{
		create: create,
		look: func(ctx context.Context) (bool, int64, error) {
			now, revision, err := s.lookAgain(ctx, m, p, left)
			if err != nil || now == *p && !pinned {
				return false, revision, err
			}
			*p = now
			return true, revision, nil
		},
		seen: func(ev *mvccpb.Event) verdict {
			position := front
			switch string(ev.Kv.Key) {
			case header:
				if h, err := backend.ParseHeader(ev.Kv.Value); !p.First && err == nil && h.Sealed == "" {
					return ignore // it is written in every term
				}
				return look
			case own:
				position = int64(m.Position)
				if *removed = ev.Kv.CreateRevision != position; *removed { // m stood at the last look
					return done
				}
			}
			switch {
			case position == 0: // it is not known
			case ev.Kv.CreateRevision != position:
				left = true // the one in front
			case ev.Kv.Lease != 0:
				return ignore // it was moved to another lease
			default:
				pinned = true
			}
			return look
		},
	}
}

// lookAgain is Ahead for a member that stood as after says when the session looked last. It
// also returns the revision at which it has read. It reads m, the header, and the member that
// stood in front. That is enough in three cases:
//
//   - The one in front still stands. Nobody joins between two members, because every key that
//     is created is younger than all that there are: its create revision is the revision of
//     the log, which only grows.
//   - m was first. For the same reason nobody comes to stand in front of it.
//   - The one in front has gone, and was the head of the line, or somebody behind it was. So
//     nobody is left in front, and nobody comes.
//
// In all three, one revision tells that m itself still stands, and what the header says. left
// says that the one in front is known to have gone.
func (s *session) lookAgain(ctx context.Context, m backend.Member, after *backend.Place, left bool) (p backend.Place, revision int64, err error) {
	nobody := after.First || s.hadHead(m.Line, after.Ahead.Position) // no other member than that one stands in front
	if left && !nobody {
		return s.ahead(ctx, m)
	}
	var front []clientv3.Op
	if !after.First && !left {
		front = append(front, clientv3.OpGet(s.b.member(after.Ahead)))
	}
	heartbeat, resp, err := s.ask(ctx, m, front...)
	if err != nil {
		return p, 0, err
	}
	var ahead *backend.Member
	if len(front) > 0 {
		if kvs := rangeOf(resp, 2).Kvs; len(kvs) > 0 && kvs[0].CreateRevision == int64(after.Ahead.Position) {
			stands := after.Ahead
			stands.Pinned = kvs[0].Lease == 0
			ahead = &stands
		}
	}
	if ahead == nil && !nobody {
		return s.ahead(ctx, m)
	}
	p, err = s.judge(ctx, m, ahead, heartbeat, resp)
	return p, resp.Header.Revision, err
}

// stays reports whether a member stays in line when the election moves: it is pinned, or of another
// library.
func stays(m backend.Member) bool { return m.Pinned || !ourMember.MatchString(m.Key) }

// maxHeads is for how many lines a session remembers the head.
const maxHeads = 1 << 14

// sawHead notes that the member at the position stood at the head of the line.
func (s *session) sawHead(line string, position uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heads) >= maxHeads {
		clear(s.heads)
	}
	s.heads[line] = max(s.heads[line], position)
}

// hadHead reports whether nobody stands in front of the position, and nobody ever will: a
// member there or behind it was seen at the head of the line.
func (s *session) hadHead(line string, position uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return position > 0 && s.heads[line] >= position // 0 stands for a position that is not known
}
