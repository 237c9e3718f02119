package consul

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Free returns the first item that nobody claims; see [backend.Session]. Of a long line of items the
// session remembers the first ones, as [session.Head] does, and reads the nearest of them with the
// claims. Only when all remembered items have gone or are taken, it reads the whole line of the
// items, with their values. It blocks for a round trip or two.
func (s *session) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	folder := s.b.o.folder(items)
	s.mu.Lock()
	known := s.heads[items]
	s.mu.Unlock()
	for more := maxNear; len(known) > 0; {
		some := known[:min(len(known), more)]
		keys := make([]string, len(some))
		for i, m := range some {
			keys[i] = folder + m.Key
		}
		r, taken, err := s.withClaims(ctx, claims, gets(keys...)...)
		if err != nil {
			return backend.Member{}, err
		}
		var standing []backend.Member
		for i, m := range some {
			switch p := r.find(keys[i]); {
			case p != nil && p.CreateIndex == m.Position:
				standing = append(standing, memberOf(items, folder, p))
			case len(standing) == 0:
				s.heading(items, known[i+1:])
			}
		}
		if item, free, err := kit.FirstFree(standing, taken); free || err != nil {
			return item, err
		}
		known, more = known[len(some):], min(len(taken)+1, maxOps/2)
	}
	r, taken, err := s.withClaims(ctx, claims, &api.KVTxnOp{Verb: api.KVGetTree, Key: folder})
	if err != nil {
		return backend.Member{}, err
	}
	standing := membersOf(items, folder, r.pairs)
	s.heading(items, standing)
	item, free, err := kit.FirstFree(standing, taken)
	if err == nil && !free {
		err = backend.ErrTaken
	}
	return item, err
}

// withClaims runs the operations, which must be reads, and reads the claims, at one instant.
func (s *session) withClaims(ctx context.Context, claims string, ops ...*api.KVTxnOp) (*result, []backend.Member, error) {
	folder := s.b.o.folder(claims)
	r, _, err := s.read(ctx, claims, append(ops, &api.KVTxnOp{Verb: api.KVGetTree, Key: folder})...)
	if err != nil {
		return nil, nil, err
	}
	taken := membersOf(claims, folder, r.pairs)
	s.disown(taken)
	return r, taken, nil
}

// Claim is JoinShared for a member that claims the item; see [backend.Session]. It reads the item
// and the other claims when the member stands. So it blocks for two round trips.
func (s *session) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	at, err := s.b.o.memberPath(item)
	if err != nil {
		return backend.Joined{}, err
	}
	var claim backend.Joined
	_, err = s.joining.Do(ctx, func() (backend.Member, func(), error) {
		made, err := s.add(ctx, backend.Member{Line: line, Key: s.nextKey(true), Value: value, Shared: true})
		if err != nil {
			return made, nil, err
		}
		if claim, err = s.claimed(s.Context(), made, record, at, item.Position); err != nil {
			return made, func() { s.joining.Discard(made) }, err
		}
		return made, nil, nil
	})
	if err != nil {
		return backend.Joined{}, err
	}
	return claim, nil
}

// claimed returns the place of the claim m, if no claim in front is for the same item, and if the
// item stands at its key.
func (s *session) claimed(ctx context.Context, m backend.Member, record, item string, position uint64) (j backend.Joined, err error) {
	ctx = urgent(ctx)
	folder := s.b.o.folder(m.Line)
	key, ops := folder+m.Key, []*api.KVTxnOp{{Verb: api.KVGetTree, Key: folder}}
	ops = append(ops, gets(item)...)
	if record != "" {
		ops = append(ops, gets(s.b.o.key(record))...)
	}
	r, l, err := s.read(ctx, m.Line, ops...)
	if err != nil {
		return j, err
	}
	claims := membersOf(m.Line, folder, r.pairs)
	i := slices.IndexFunc(claims, func(o backend.Member) bool { return o.Position == m.Position && o.Key == m.Key })
	if i < 0 {
		return j, s.missing(ctx, m)
	}
	if p := r.find(item); p == nil || p.CreateIndex != position || kit.ClaimedBefore(m, claims) {
		return j, fmt.Errorf("%w: %s", backend.ErrTaken, item)
	}
	s.faces(key, m, frontOf(claims, i))
	p, err := kit.PlaceOf(m, nil, l.Header)
	j = backend.Joined{Member: m, Place: &p}
	if record != "" && r.find(s.b.o.key(record)) == nil {
		j.Record = &backend.Record{Name: record, Version: backend.Absent}
	}
	return j, err
}
