package etcd

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Free returns the first item that nobody claims; see [backend.Session]. It is one transaction, which
// reads the claims and some items, in the order of their keys. That is nearly the order in which
// they were appended, see [itemKey]. An item that was not read has a larger number in its key than
// all that were, and so a larger position than that number. So the first free one of those read is
// the first of all, unless its position is larger than the last number that was read. Then Free
// reads again, and more.
func (s *session) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	folder := s.b.folder(items)
	s.mu.Lock()
	r, known := s.reaches[items]
	s.mu.Unlock()
	r.limit = max(r.limit, 2)
	for {
		within := clientv3.WithPrefix()
		if known {
			within = clientv3.WithRange(folder + itemMark(r.upTo))
		}
		resp, err := s.read(ctx, clientv3.OpGet(s.b.folder(claims), clientv3.WithPrefix()),
			clientv3.OpGet(folder, within, clientv3.WithLimit(r.limit)))
		if err != nil {
			return backend.Member{}, err
		}
		taken, some := s.b.membersOf(claims, rangeOf(resp, 0).Kvs), rangeOf(resp, 1)
		first := s.b.membersOf(items, some.Kvs)
		end := uint64(math.MaxUint64) // the least number of those that were not read
		switch {
		case some.More:
			end = appendedAfter(string(some.Kvs[len(some.Kvs)-1].Key[len(folder):]))
		case known:
			end = r.upTo
		}
		slices.SortFunc(first, func(a, b backend.Member) int { return cmp.Compare(a.Position, b.Position) })
		item, free, err := kit.FirstFree(first, taken)
		switch {
		case err != nil:
			return item, err
		case free && item.Position <= end:
			s.reach(items, first, item, len(taken))
			return item, nil
		case !some.More && !known:
			return item, backend.ErrTaken
		case !some.More:
			known = false
		default:
			r.limit = max(2*r.limit, int64(len(taken)+2))
		}
	}
}

// A reach is how far a session reads the items of a line, to find the first that is free: as far as
// would have been enough the last time, and as much again. etcd counts all keys of a range, also if
// it is to return the first few. So the range has an end.
type reach struct {
	limit int64
	upTo  uint64 // the number in the key at which the range ends
}

// maxReaches is for how many lines a session remembers how far it reads.
const maxReaches = 1 << 10

// reach notes that item was found among those read, in order, when so many were claimed.
func (s *session) reach(items string, read []backend.Member, item backend.Member, claimed int) {
	needed := 1
	first, last := uint64(math.MaxUint64), uint64(0)
	for _, m := range read {
		n := appendedAfter(m.Key)
		if n < item.Position {
			needed++
		}
		first, last = min(first, n), max(last, n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.reaches) >= maxReaches {
		clear(s.reaches)
	}
	s.reaches[items] = reach{int64(max(needed, claimed+2)), last + max(2*(last-first), 256)}
}

// Claim is JoinShared for a member that claims the item; see [backend.Session]. The transaction that
// creates the key demands that the item stands, and reads the other claims before. So it tells
// whether one of them is for the same item.
func (s *session) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	if err := s.checkNesting(ctx, line); err != nil {
		return backend.Joined{}, err
	}
	look := &firstLook{record: record, item: &item, ops: []clientv3.Op{
		clientv3.OpGet(s.b.folder(line), clientv3.WithPrefix()),
		clientv3.OpGet(s.b.record(line)),
	}}
	if record != "" {
		look.ops = append(look.ops, clientv3.OpGet(s.b.record(record)))
	}
	return s.joining.Do(ctx, func() (j backend.Joined, undo func(), err error) {
		name := ""
		for {
			name, _ = s.take(line, true)
			if j, err = s.create(ctx, line, name, value, look); err != errTaken {
				break
			}
		}
		if err == nil && j.Place == nil {
			if j.Place, err = s.judgeClaim(ctx, j.Member, item); err != nil {
				made := j
				return backend.Joined{}, func() { s.joining.Discard(made) }, err
			}
		}
		return j, func() { s.ghosts.settle(s.b.folder(line) + name) }, err
	})
}

// judgeClaim returns the place of a claim if that is not known, because the answer to its creation
// was lost, or because others have claimed the same item.
func (s *session) judgeClaim(ctx context.Context, m, item backend.Member) (*backend.Place, error) {
	heartbeat, resp, err := s.ask(ctx, m, clientv3.OpGet(s.b.folder(m.Line), clientv3.WithPrefix()),
		clientv3.OpGet(s.b.member(item), clientv3.WithKeysOnly()))
	if err != nil {
		return nil, err
	}
	now := rangeOf(resp, 3).Kvs
	if len(now) == 0 || now[0].CreateRevision != int64(item.Position) ||
		kit.ClaimedBefore(m, s.b.membersOf(m.Line, rangeOf(resp, 2).Kvs)) {
		return nil, fmt.Errorf("%w: %s", backend.ErrTaken, item.Key)
	}
	p, err := s.judge(ctx, m, nil, heartbeat, resp)
	return &p, err
}
