package consul

import (
	"context"
	"slices"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// A front says which members may still stand in front of a member, among those for which it waits.
// Consul cannot tell the member just in front, only the whole line. But a front that was read once
// stays true, whatever happens in the line afterwards:
//
//   - Positions only grow, so a member that joins later stands behind.
//   - A key is never used twice. So a member that was seen to be missing is missing for
//     good, and an entry under its key that has another position is another member.
//   - A member that is pinned, or moves to another session of Consul, keeps its position.
//
// A restored snapshot contradicts the second point. It ends all blocking queries before
// their time, and then the session forgets its fronts; see [session.ask].
//
// A front is never changed once it is made, because several calls may use it.
type front struct {
	near   []backend.Member // the nearest members, the very nearest first, without values
	beyond uint64           // the position of the nearest of the others; 0 if there are none
}

// maxNear is how many members a front names. A line of so many needs no mark.
const maxNear = 4

// frontOf returns the front of the i-th in line.
func frontOf(line []backend.Member, i int) *front {
	f := new(front)
	for _, o := range slices.Backward(line[:i]) {
		switch {
		case line[i].Shared && o.Shared:
			continue
		case len(f.near) == maxNear:
			f.beyond = o.Position
			return f
		}
		o.Value, o.Pinned = "", false
		f.near = append(f.near, o)
	}
	return f
}

// step is Ahead for a member whose front is known. It reads the member itself, those in the
// front, the header and the mark, all at one instant: as many keys in a long line as in a
// short one. It reports false if these do not decide the place.
func (s *session) step(ctx context.Context, m backend.Member, key string, f *front) (p backend.Place, decided bool, err error) {
	folder, mark := s.b.o.folder(m.Line), s.b.o.mark(m.Line)
	keys := []string{key}
	for _, o := range f.near {
		keys = append(keys, folder+o.Key)
	}
	if f.beyond != 0 {
		keys = append(keys, mark)
	}
	r, l, err := s.read(ctx, m.Line, gets(keys...)...)
	if err != nil {
		return p, true, err
	}
	own := r.find(key)
	if own == nil || own.CreateIndex != m.Position {
		return p, true, s.missing(ctx, m)
	}
	m = memberOf(m.Line, folder, own)
	for i, o := range f.near {
		if e := r.find(folder + o.Key); e != nil && e.CreateIndex == o.Position {
			s.faces(key, m, &front{f.near[i:], f.beyond})
			ahead := memberOf(m.Line, folder, e)
			s.disown([]backend.Member{ahead})
			p, err = kit.PlaceOf(m, &ahead, l.Header)
			return p, true, err
		}
	}
	if f.beyond != 0 && emptyUpTo(r.find(mark)) < f.beyond {
		return p, false, nil
	}
	s.faces(key, m, new(front))
	p, err = kit.PlaceOf(m, nil, l.Header)
	return p, true, err
}

// faces stores the front of a member that this session has joined.
func (s *session) faces(key string, m backend.Member, f *front) {
	s.know(key, m.Position, func(at *standing) {
		at.front = f
		at.marks = at.marks || len(f.near) == maxNear
	})
}

// frontAt returns the front of the member at that position, or nil if it is not known.
func (s *session) frontAt(key string, position uint64) *front {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.members[key]; at.position == position {
		return at.front
	}
	return nil
}

// forget makes the session read lines again before it relies on what it knows of them.
func (s *session) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.heads)
	for key, at := range s.members {
		at.front = nil
		s.members[key] = at
	}
}

// mark returns the key of the election's mark, which says how far the line is known to be
// empty: no member stands at a position up to the flags of the mark. A member that is first and
// leaves writes it in the transaction that removes it. The mark goes with the session that has
// written it. If there is no mark, members only need one more read of the whole line. No election
// or record has a name with a tilde.
func (o *Options) mark(line string) string { return o.key(line) + "~" }

// emptyUpTo returns the position in the mark, or 0 if there is no mark that a leader of this line
// can have written. A mark that was imported, or written by hand, has positions of another log, and
// nobody would ever remove it. A leader's mark is locked by its session, which no import does; it
// was written once, when it was created; and its leader stood before that.
func emptyUpTo(mark *api.KVPair) uint64 {
	switch {
	case mark == nil, mark.Session == "", mark.ModifyIndex != mark.CreateIndex, mark.Flags >= mark.CreateIndex:
		return 0
	}
	return mark.Flags
}

// removal returns the operations that remove the member whose key was last changed at the
// index. They write the mark if m stands first and the line is so long that others need the
// mark, but never without removing m, because a late request, perhaps to a cluster that was
// rebuilt, must not write it. A shared member may be first although others stand in front.
func (s *session) removal(m backend.Member, key string, index uint64) []*api.KVTxnOp {
	// It is not an error of this operation that there is no such key.
	ops := []*api.KVTxnOp{{Verb: api.KVDeleteCAS, Key: key, Index: index}}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.members[key]
	if at.position == m.Position && at.marks && at.front != nil && len(at.front.near) == 0 && !isShared(key) {
		mark := s.b.o.mark(m.Line)
		ops = append(ops,
			&api.KVTxnOp{Verb: api.KVDelete, Key: mark}, // the session of an earlier leader has locked it
			&api.KVTxnOp{Verb: api.KVLock, Key: mark, Flags: m.Position, Session: s.tenancy.id})
		ops = slices.Insert(ops, 0, &api.KVTxnOp{Verb: api.KVCheckIndex, Key: key, Index: index})
	}
	return ops
}
