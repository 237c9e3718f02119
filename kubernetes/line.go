package kubernetes

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// mostAsked is of how many sessions a list asks by name. Beyond that it asks for all.
const mostAsked = 40

// standing returns what counts of a line, in order, and its record, read no earlier; nil for none. accept says what of the
// members. The record is whole.
func (s *session) standing(ctx context.Context, line, accept string) (members []*object, record *object, err error) {
	l, err := s.list(ctx, lineLabel+"="+s.b.lineLabel(line), accept)
	if err != nil {
		return nil, nil, err
	}
	alive, err := s.sessionsOf(ctx, l.items)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range l.items {
		if !o.has(memberLabel) {
			record = o
			continue
		}
		stands, err := s.countsBy(ctx, o, alive)
		if err != nil {
			return nil, nil, err
		}
		if stands {
			members = append(members, o)
		}
	}
	slices.SortFunc(members, byPosition)
	if record != nil || len(members) != len(l.items) {
		// A member that has gone, or one that stands, may have written it since.
		record, err = s.record(ctx, line, whole)
	}
	return members, record, err
}

// sessionsOf returns the sessions of members that are there, by UID, but for this one: one list, after the members were listed.
func (s *session) sessionsOf(ctx context.Context, members []*object) (map[string]*object, error) {
	names := make(map[string]bool)
	for _, o := range members {
		if name, uid := o.session(); o.has(memberLabel) && !o.isItem() && uid != s.uid && isLabelValue(name) {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	selector := sessionLabel + "=" + s.b.space
	if len(names) <= mostAsked {
		selector += "," + in(ofLabel, slices.Collect(maps.Keys(names)))
	}
	l, err := s.list(ctx, selector, metadata)
	if err != nil {
		return nil, err
	}
	byUID := make(map[string]*object, len(l.items))
	for _, o := range l.items {
		byUID[o.Metadata.UID] = o
		if o.Metadata.UID != s.uid {
			s.observe(event{object: o})
			s.due(o.Metadata.UID)
		}
	}
	return byUID, nil
}

// countsBy is stands with sessions that were listed after the member.
func (s *session) countsBy(ctx context.Context, o *object, alive map[string]*object) (bool, error) {
	name, uid := o.session()
	s.mu.Lock()
	left := s.past.members.has(o.Metadata.Name)
	s.mu.Unlock()
	switch {
	case left:
		return false, nil
	case o.isItem():
		return true, nil
	case name == "" || uid == "":
		return false, nil // somebody else has made it
	case uid == s.uid:
		return s.joined(o), s.Alive()
	}
	if counts, living := s.counts(o, alive[uid], uid); living {
		return counts, nil
	}
	return s.outlives(ctx, o)
}

// Line returns the whole line in order; see [backend.Session].
func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	members, record, err := s.standing(ctx, line, whole)
	if err != nil {
		return backend.Line{}, err
	}
	l, err := lineOf(line, members, record)
	if err == nil {
		err = s.withHolder(ctx, line, &l)
	}
	return l, err
}

func lineOf(line string, members []*object, record *object) (l backend.Line, err error) {
	for _, o := range members {
		m, err := o.member(line, record)
		if err != nil {
			return backend.Line{}, err
		}
		l.Members = append(l.Members, m)
	}
	l.Version = record.recordVersion()
	l.Header, err = record.header()
	return l, err
}

// Head returns the line with its first member alone; see [backend.Session]. What the others say is not read.
func (s *session) Head(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.head(ctx, line)
	if err == nil {
		if err = s.withHolder(ctx, line, &l); err == nil && len(l.Members) > 1 {
			l.Members = l.Members[:1]
		}
	}
	return l, err
}

func (s *session) head(ctx context.Context, line string) (backend.Line, error) {
	for {
		members, record, err := s.standing(ctx, line, metadata)
		if err != nil {
			return backend.Line{}, err
		}
		if len(members) == 0 {
			return lineOf(line, nil, record)
		}
		first, err := s.get(ctx, members[0].Metadata.Name, whole)
		if err != nil {
			return backend.Line{}, err
		}
		if first != nil {
			return lineOf(line, []*object{first}, record)
		}
		s.mu.Lock()
		s.past.member(members[0].Metadata.Name)
		s.mu.Unlock()
	}
}

// WatchLine blocks until other members stand in the line than in after; see [backend.Session]. It watches the line. The members
// of a session that has ended are deleted by whoever has ended it. After one and a half TTL it looks again, at the sessions too: those that
// watch over all may have crashed with the one that nobody waits for.
func (s *session) WatchLine(ctx context.Context, line string, after backend.Line) (l backend.Line, err error) {
	known := make(map[string]bool)
	for _, m := range after.Members {
		known[m.Key] = true
	}
	about := []subject{{lineLabel, s.b.lineLabel(line)}}
	lock, holder := "", ""
	if name, err := s.b.lockName(line); err == nil && s.b.beside() {
		lock = name
		about = append(about, subject{nameField, name})
		if len(after.Members) > 0 && strings.HasPrefix(after.Members[0].Key, lockAhead) {
			holder = after.Members[0].Value
		}
	}
	w := newWaiter(func(e event) bool {
		if lock != "" && e.Metadata.Name == lock {
			return e.deleted || s.b.stranger(line, e.object) != holder
		}
		return e.has(memberLabel) && (e.deleted && known[e.Metadata.Name] || e.added && !known[e.Metadata.Name])
	})
	err = s.hub.await(ctx, w, about, 0, func() (bool, error) {
		l, err = s.Line(ctx, line)
		return err == nil && !kit.SameMembers(l, after), err
	}, w.every(s.b.o.TTL*3/2))
	return l, err
}

// Lines returns the names of the lines in which somebody stands; see [backend.Session].
func (s *session) Lines(ctx context.Context) (map[string]int, error) {
	all, err := s.everyone(ctx, metadata)
	if err != nil {
		return nil, err
	}
	lines := make(map[string]int, len(all))
	for name, members := range all {
		lines[name] = len(members)
	}
	return lines, nil
}

// everyone returns what counts of all lines, by name, in order.
func (s *session) everyone(ctx context.Context, accept string) (map[string][]*object, error) {
	l, err := s.list(ctx, memberLabel+"="+s.b.space, accept)
	if err != nil {
		return nil, err
	}
	alive, err := s.sessionsOf(ctx, l.items)
	if err != nil {
		return nil, err
	}
	lines := make(map[string][]*object)
	for _, o := range l.items {
		name := o.note(nameNote)
		if backend.CheckName(name) != nil || o.Metadata.Labels[lineLabel] != s.b.lineLabel(name) {
			continue // somebody else has made it
		}
		stands, err := s.countsBy(ctx, o, alive)
		if err != nil {
			return nil, err
		}
		if stands {
			lines[name] = append(lines[name], o)
		}
	}
	for _, members := range lines {
		slices.SortFunc(members, byPosition)
	}
	return lines, nil
}

// Survey returns what is at each name; see [backend.Session]. It lists members, sessions and records, in this order.
func (s *session) Survey(ctx context.Context) (map[string]backend.Standing, error) {
	lines, err := s.everyone(ctx, whole)
	if err != nil {
		return nil, err
	}
	records, err := s.list(ctx, recordLabel+"="+s.b.space, whole)
	if err != nil {
		return nil, err
	}
	all := make(map[string]backend.Standing)
	byName := make(map[string]*object)
	for _, o := range records.items {
		name := o.note(nameNote)
		if backend.CheckName(name) != nil || o.Metadata.Name != s.b.recordName(name) {
			continue
		}
		byName[name] = o
		value, err := o.value()
		if err != nil {
			return nil, err
		}
		if v := o.recordVersion(); v != backend.Absent {
			all[name] = backend.Standing{Record: backend.Record{Name: name, Value: value, Version: v}}
		}
	}
	for name, members := range lines {
		at, there := all[name]
		if !there {
			at.Record = backend.Record{Name: name, Version: backend.Absent}
		}
		at.Stand = len(members)
		if at.First, err = members[0].member(name, byName[name]); err != nil {
			return nil, err
		}
		all[name] = at
	}
	return all, nil
}

// backward sorts members by position, the last first. Records come after them.
func backward(l []*object) []*object {
	slices.SortStableFunc(l, func(a, b *object) int {
		if a.has(memberLabel) != b.has(memberLabel) {
			if a.has(memberLabel) {
				return -1
			}
			return 1
		}
		return byPosition(b, a)
	})
	return l
}
