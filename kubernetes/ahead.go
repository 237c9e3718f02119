package kubernetes

import (
	"cmp"
	"context"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// maxNear is how many members a session remembers of those in front of one of its own. Of all, many members of one line would take
// memory by the square of their number.
const maxNear = 4

// A front is what stands in front of a member, the nearest last, at one version, also what does not count any more.
type front struct {
	members []*object
	beyond  bool    // others may stand in front of these
	record  *object // whole or metadata; nil for none
}

// Ahead says where m stands; see [backend.Session]. Nobody joins in front of m. So the first look shows all
// who will ever stand there, and later ones ask for the nearest of these alone, and for all when these have gone.
//
// A list shows the line at one version, no earlier than that of m's creation and of each departure that this session knows of.
// Meanwhile it asks etcd whether m itself stands and, if somebody stands in front, for the record and the session of that one.
func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, _, err := s.stand(ctx, m)
	return p, err
}

// stand is Ahead that also returns what the record of the line said; see [object.said].
func (s *session) stand(ctx context.Context, m backend.Member) (p backend.Place, said string, err error) {
	since := s.b.wire.seen.Load()
	p, said, err = s.ahead(ctx, m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if mine := s.mine(m); mine != nil {
		mine.place, mine.said, mine.since = p, said, since
		if err != nil {
			mine.since = 0
		}
	}
	return p, said, err
}

// ahead does the work of stand.
func (s *session) ahead(ctx context.Context, m backend.Member) (p backend.Place, said string, err error) {
	if s.hasGone(m.Key) {
		return p, "", backend.ErrNotMember
	}
	var self, nearest *object
	var f front
	if err = both(func() (err error) { self, err = s.get(ctx, m.Key, metadata); return err },
		func() (err error) { f, err = s.inFront(ctx, m); return err }); err != nil {
		return p, "", err
	}
	switch {
	case self == nil || self.position() != m.Position:
		s.strayed(m, self)
		return p, "", backend.ErrNotMember
	case self.isShared() != m.Shared:
		m.Shared = self.isShared()
	}
	if stands, err := s.stands(ctx, self); err != nil || !stands {
		return p, "", cmp.Or(err, backend.ErrNotMember)
	}
	for len(f.members) > 0 || f.beyond {
		if len(f.members) > 0 {
			if nearest, f.record, err = s.nearest(ctx, m.Line, f.members); err != nil {
				return p, "", err
			}
		}
		if nearest != nil || !f.beyond {
			break
		}
		if f, err = s.allInFront(ctx, m); err != nil {
			return p, "", err
		}
	}
	s.remember(m, f, nearest)
	return s.judge(ctx, m, self, nearest, f.record)
}

// nearest returns the last of the members that counts, or nil if none does, and the whole record of their line. The record is read no
// earlier than the later ones were found not to count. Of a session that has ended with many members it asks a few times, and not for each.
func (s *session) nearest(ctx context.Context, line string, members []*object) (nearest, record *object, err error) {
	settled := make(map[string]*object) // the record of the line, by the UID of a session that had ended before
	for _, o := range slices.Backward(members) {
		_, uid := o.session()
		s.mu.Lock()
		ended := s.past.sessions.has(uid)
		s.mu.Unlock()
		if ended && !o.isItem() {
			r, known := settled[uid]
			if !known {
				if r, err = s.settled(ctx, line); err != nil {
					return nil, nil, err
				}
				settled[uid] = r
			}
			if !s.survives(o, r) {
				continue
			}
		}
		var stands bool
		if err = both(func() (err error) { stands, err = s.stands(ctx, o); return err },
			func() (err error) { record, err = s.record(ctx, line, whole); return err }); err != nil || stands {
			return o, record, err
		}
	}
	record, err = s.record(ctx, line, whole)
	return nil, record, err
}

// inFront returns what may stand in front of m, as far as this session remembers that, and otherwise all; and the record of the line. If
// nothing does, the record is whole.
func (s *session) inFront(ctx context.Context, m backend.Member) (f front, err error) {
	s.mu.Lock()
	mine := s.mine(m)
	looked := mine != nil && mine.looked
	var known []*object
	if looked {
		f.beyond = mine.beyond
		for _, o := range mine.front {
			if !s.past.members.has(o.Metadata.Name) {
				known = append(known, o)
			}
		}
	}
	s.mu.Unlock()
	switch {
	case !looked || len(known) == 0 && f.beyond:
		return s.allInFront(ctx, m)
	case len(known) == 0:
		f.record, err = s.record(ctx, m.Line, whole)
		return f, err
	}
	record := s.b.recordName(m.Line)
	names := []string{record}
	for _, o := range known {
		names = append(names, o.Metadata.Name)
	}
	l, err := s.list(ctx, in(idLabel, names), whole)
	if err != nil {
		return f, err
	}
	f.take(l, m, record)
	there := make(map[string]bool)
	for _, o := range l.items { // also one that was rewritten, and is not in front any more
		there[o.Metadata.Name] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range known {
		if !there[o.Metadata.Name] {
			s.past.member(o.Metadata.Name)
		}
	}
	return f, nil
}

// allInFront is inFront that asks for the whole line.
func (s *session) allInFront(ctx context.Context, m backend.Member) (f front, err error) {
	l, err := s.list(ctx, lineLabel+"="+s.b.lineLabel(m.Line), metadata)
	if err != nil {
		return f, err
	}
	f.take(l, m, s.b.recordName(m.Line))
	if len(f.members) == 0 && f.record != nil {
		f.record, err = s.record(ctx, m.Line, whole)
	}
	return f, err
}

// take takes from a list what stands in front of m, and the record with the name.
func (f *front) take(l listing, m backend.Member, record string) {
	for _, o := range l.items {
		switch {
		case o.Metadata.Name == record:
			f.record = o
		case o.has(memberLabel) && o.position() < m.Position && o.Metadata.Name != m.Key && !(m.Shared && o.isShared()):
			f.members = append(f.members, o)
		}
	}
	slices.SortFunc(f.members, byPosition)
}

// strayed notes what a look has shown that did not find m: o is what has its name, or nil. If something has rewritten the object before its
// position was noted, it stands elsewhere in the line, where nobody has joined. So if this session has made it, Leave is to remove it.
func (s *session) strayed(m backend.Member, o *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o == nil {
		s.past.member(m.Key)
	} else if mine := s.mine(m); mine != nil {
		mine.doubtful = true
	}
}

func byPosition(a, b *object) int { return cmp.Compare(a.position(), b.position()) }

// remember notes who stands in front of m: nearest, who may be nil, and some of those before.
func (s *session) remember(m backend.Member, f front, nearest *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := s.mine(m)
	if mine == nil {
		return
	}
	mine.looked, mine.front, mine.beyond = true, nil, false
	if nearest != nil {
		all := f.members[:slices.Index(f.members, nearest)+1]
		near := all[max(0, len(all)-maxNear):]
		mine.front, mine.beyond = slices.Clone(near), f.beyond || len(near) < len(all)
	}
}

// judge decides where m stands, whose object is self. nearest is the object of the member in front, or nil. record is that of the
// line, read no earlier.
func (s *session) judge(ctx context.Context, m backend.Member, self, nearest, record *object) (p backend.Place, said string, err error) {
	if nearest == nil {
		if _, err := s.noted(ctx, m, self); err != nil {
			return p, "", err
		}
		if record, err = s.fence(ctx, m, record); err != nil {
			return p, "", err
		}
	}
	m.Pinned = self.isPinned(record)
	h, err := record.header()
	if err != nil {
		return p, "", err
	}
	var ahead *backend.Member
	if nearest != nil {
		o := *nearest
		o.Spec.HolderIdentity = encode(nil)
		one, err := o.member(m.Line, record)
		if err != nil {
			return p, "", err
		}
		ahead = &one
	}
	if p, err = kit.PlaceOf(m, ahead, h); err != nil {
		return p, "", err
	}
	if p.First && s.b.beside() {
		if ahead, err = s.takeLock(ctx, m); err != nil {
			return p, "", err
		}
		if ahead != nil {
			p = backend.Place{Ahead: *ahead, Header: h}
		}
	}
	return p, record.said(), s.Alive()
}
