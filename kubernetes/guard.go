package kubernetes

import (
	"context"
	"errors"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// The API server has no write to several objects. A write that a member guards is conditional on the version of what it writes,
// and on nothing else. So before it is sent, the record of the member's line lists the object that it may reach. Whoever becomes
// first in the line stamps all that is listed: a stamp changes the version, and what is still on its way is refused. What is
// listed is
//
//	KEY OBJECT   a write that the member KEY guards may reach the object
//
// If the object is the record itself, each write has an entry of its own, which the write takes away.

// grown reports whether who lists something in a guard list of n entries takes out those whose members have gone. The next one to lead does it, too, but
// a leader may stay for months, while others that guard something come and go behind it. Each time the list has doubled a few do it, of whom some
// may crash, and each once: so it costs an entry a few requests, however many of those listed stand.
func grown(n int) bool { return n >= 32 && n-1<<(bits.Len(uint(n))-1) < 4 }

// maxGuarded is how many objects are listed for a member, but for those that a write is on its way to.
const maxGuarded = 8

// entry is how a guard list says that the member guards a write to the object.
func entry(key, object string) string { return key + " " + object }

// objectOf returns the object of an entry.
func objectOf(entry string) (key, object string) {
	key, object, _ = strings.Cut(entry, " ")
	return key, object
}

// recordName returns the name of the object that a record is.
func (b *Backend) recordName(name string) string { return "record-" + hash("record", b.o.Prefix, name) }

// record reads a record, or returns nil if there is no such object. accept is whole or metadata.
func (s *session) record(ctx context.Context, name, accept string) (*object, error) {
	return s.get(ctx, s.b.recordName(name), accept)
}

// newRecord returns a record without a value that is to be created.
func (s *session) newRecord(name string) *object {
	id := s.b.recordName(name)
	o := newLease(id, id, map[string]string{recordLabel: s.b.space, idLabel: id, lineLabel: s.b.lineLabel(name), dirLabel: s.b.dirLabel(dirOf(name))})
	o.Metadata.Annotations[nameNote] = name
	o.Metadata.Annotations[absentNote] = "true"
	return o
}

func (b *Backend) dirLabel(dir string) string { return hash("dir", b.o.Prefix, dir) }

// changed reports whether err says that an object is not as it was read, so that it must be read again.
func changed(err error) bool {
	return errors.Is(err, errConflict) || errors.Is(err, errExists) || errors.Is(err, errMissing)
}

// editRecord changes a record until that is done, and returns its metadata. change returns nil if nothing needs to be changed;
// then the record may be nil. The value keeps its version. If there is no such record, change is called with one that is to be
// created.
func (s *session) editRecord(ctx context.Context, name string, change func(o *object) *patch) (*object, error) {
	return kit.Retry(ctx, s.b.o.backoff(), func(err error) bool { return lost(err) || changed(err) }, func(ctx context.Context) (*object, error) {
		o, err := s.record(ctx, name, metadata)
		if err != nil {
			return nil, err
		}
		fresh := o == nil
		if fresh {
			o = s.newRecord(name)
		}
		p := change(o)
		switch {
		case p == nil && fresh:
			return nil, nil
		case p == nil:
			return o, nil
		case fresh:
			maps.DeleteFunc(p.Metadata.Annotations, func(_ string, v *string) bool { return v == nil })
			for key, v := range p.Metadata.Annotations {
				o.Metadata.Annotations[key] = *v
			}
			return s.b.wire.create(ctx, s.b.o.attempt(), o)
		}
		p.stamp()
		now, err := s.b.wire.patch(ctx, s.b.o.attempt(), o.Metadata.Name, p)
		if err == nil {
			s.dropEmpty(now)
		}
		return now, err
	})
}

// dropEmpty deletes a record that says nothing any more, unless it was changed since it was read; otherwise one would stay for each name that was ever
// used. Nobody misses it: a guarded write that was about to be made on it is refused, and is made anew on another.
// A deletion tells no version, so a list might still show what it has deleted. What is deleted here is in none any more.
// That goes on for an attempt when the session ends: a process that pins, or was refused, may close next.
func (s *session) dropEmpty(o *object) {
	if o == nil || o.recordVersion() != backend.Absent || len(o.list(pinsNote)) > 0 || len(o.list(guardsNote)) > 0 {
		return
	}
	remove := func() {
		_ = s.b.wire.remove(context.WithoutCancel(s.Context()), s.b.o.attempt(), o.Metadata.Name, o.Metadata.UID, o.Metadata.ResourceVersion)
	}
	if !s.Go(remove) {
		remove()
	}
}

// settled returns the record of a line, when no guarded write to it can be on its way any more. It may be nil.
func (s *session) settled(ctx context.Context, line string) (*object, error) {
	self := s.b.recordName(line)
	return s.editRecord(ctx, line, func(o *object) *patch { return withoutEntries(o, self) })
}

// withoutEntries returns a patch that takes all entries for an object from the guard list, or nil if there are none.
func withoutEntries(o *object, of string) *patch {
	all := o.list(guardsNote)
	rest := slices.DeleteFunc(slices.Clone(all), func(e string) bool { _, object := objectOf(e); return base(object) == of })
	if len(rest) == len(all) {
		return nil
	}
	p := patchOf(o)
	p.note(guardsNote, listed(rest))
	return p
}

// base returns the name of an object in an entry, without what tells several writes apart.
func base(object string) string {
	name, _, _ := strings.Cut(object, "#")
	return name
}

// stamp changes the version of an object, so that whoever has read it before can write it no more.
func (s *session) stamp(ctx context.Context, name string) error {
	_, err := kit.Retry(ctx, s.b.o.backoff(), func(err error) bool { return lost(err) || errors.Is(err, errConflict) }, func(ctx context.Context) (struct{}, error) {
		o, err := s.b.wire.get(ctx, s.b.o.attempt(), name, metadata)
		if err != nil {
			return struct{}{}, gone(err)
		}
		p := patchOf(o)
		p.stamp()
		now, err := s.b.wire.patch(ctx, s.b.o.attempt(), name, p)
		if err == nil {
			s.dropEmpty(now) // it was made for a write that is refused from now on
		}
		return struct{}{}, gone(err)
	})
	return err
}

// fence invalidates, before m is first, what those who were first before may still have on its way. record is that of the line,
// read when they had gone; it may be nil. fence returns it as it is then.
func (s *session) fence(ctx context.Context, m backend.Member, record *object) (*object, error) {
	s.mu.Lock()
	mine := s.mine(m)
	fenced := mine != nil && mine.fenced
	s.mu.Unlock()
	if fenced || record == nil {
		return record, nil
	}
	self := record.Metadata.Name
	objects := make(map[string]bool)
	var stale []string
	for _, e := range record.list(guardsNote) {
		if key, object := objectOf(e); key != m.Key {
			objects[base(object)] = true
			stale = append(stale, e)
		}
	}
	errs := make(chan error, len(objects))
	for name := range objects {
		if name == self {
			errs <- nil
			continue
		}
		go func() { errs <- s.stamp(ctx, name) }()
	}
	var failed error
	for range objects {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	if failed != nil {
		return nil, failed
	}
	var err error
	if objects[self] {
		if record, err = s.settledWhole(ctx, m.Line); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	if mine != nil {
		mine.fenced = true
	}
	s.mu.Unlock()
	if len(stale) > 0 {
		s.Go(func() { s.prune(m.Line, stale) })
	}
	return record, nil
}

// settledWhole is settled with the value of the record.
func (s *session) settledWhole(ctx context.Context, line string) (*object, error) {
	if _, err := s.settled(ctx, line); err != nil {
		return nil, err
	}
	return s.record(ctx, line, whole)
}

// prune takes entries from the guard list of a line whose members have gone. Their objects are stamped again: only now is it known that
// the members have gone.
func (s *session) prune(line string, stale []string) {
	ctx := s.Context()
	dead := make(map[string]bool)
	for _, e := range stale {
		key, object := objectOf(e)
		stands, err := s.inLine(ctx, key)
		if err == nil && !stands {
			err = s.stamp(ctx, base(object))
			dead[e] = err == nil
		}
		if err != nil {
			return
		}
	}
	if len(dead) == 0 {
		return
	}
	_, _ = s.editRecord(ctx, line, func(o *object) *patch {
		all := o.list(guardsNote)
		rest := slices.DeleteFunc(slices.Clone(all), func(e string) bool { return dead[e] })
		if len(rest) == len(all) {
			return nil
		}
		p := patchOf(o)
		p.note(guardsNote, listed(rest))
		return p
	})
}

// inLine reports whether there is a member with that key, and it counts.
func (s *session) inLine(ctx context.Context, key string) (bool, error) {
	o, err := s.get(ctx, key, metadata)
	if err != nil || o == nil {
		return false, err
	}
	return s.stands(ctx, o)
}

// enlist has the record of m's line list an object, before a write that m guards is sent to it. The caller calls settle when it knows
// that no such write is on its way any more.
func (s *session) enlist(ctx context.Context, m backend.Member, target string) (settle func(), err error) {
	s.mu.Lock()
	mine := s.mine(m)
	s.mu.Unlock()
	known := false
	if mine != nil {
		mine.listing.Lock()
		defer mine.listing.Unlock()
		s.mu.Lock()
		known = slices.Contains(mine.guarded, target)
		mine.pending[target]++
		mine.listed = true
		s.mu.Unlock()
	}
	settle = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if mine == nil {
			return
		}
		if mine.pending[target]--; mine.pending[target] == 0 {
			delete(mine.pending, target)
		}
	}
	if known {
		return settle, nil
	}
	// Should the answer to what follows be lost, or the record be deleted meanwhile, it is not known what is listed.
	var relists int
	if mine != nil {
		s.mu.Lock()
		relists, mine.guarded = s.relists, nil
		s.mu.Unlock()
	}
	var now, all []string
	_, err = s.editRecord(ctx, m.Line, func(o *object) *patch {
		all = o.list(guardsNote)
		var rest []string
		now, rest = s.keepFew(m, mine, all)
		if slices.Contains(all, entry(m.Key, target)) {
			return nil
		}
		now = append(now, target)
		p := patchOf(o)
		p.note(guardsNote, listed(append(rest, entry(m.Key, target))))
		return p
	})
	if err != nil {
		settle()
		return nil, err
	}
	if mine != nil {
		s.mu.Lock()
		if s.relists == relists {
			mine.guarded = now
		}
		s.mu.Unlock()
	}
	if mine != nil && len(all) > mine.seen && grown(len(all)) {
		others := slices.DeleteFunc(slices.Clone(all), func(e string) bool { key, _ := objectOf(e); return key == m.Key })
		s.Go(func() { s.prune(m.Line, others) })
	}
	if mine != nil {
		mine.seen = len(all)
	}
	return settle, nil
}

// keepFew returns what is to stay of a guard list, so that there is room for one more, and which objects it then lists for m. If
// this session has joined m, it knows which of them no write is on its way to.
func (s *session) keepFew(m backend.Member, mine *own, all []string) (objects, rest []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := 0
	for _, e := range slices.Backward(all) {
		key, object := objectOf(e)
		if mine != nil && key == m.Key && base(object) == object {
			if of++; of >= maxGuarded && mine.pending[object] == 0 {
				continue
			}
			objects = append(objects, object)
		}
		rest = append(rest, e)
	}
	slices.Reverse(objects)
	slices.Reverse(rest)
	return objects, rest
}

// unlist takes what is listed for m from the record of its line, before m leaves, so that the next one need not stamp it. What a
// write may be on its way to stays.
func (s *session) unlist(ctx context.Context, m backend.Member, mine *own) {
	mine.listing.Lock()
	defer mine.listing.Unlock()
	s.mu.Lock()
	none := !mine.listed
	mine.guarded = nil // a write that begins before m has gone is listed anew
	s.mu.Unlock()
	if none {
		return
	}
	_, _ = s.editRecord(ctx, m.Line, func(o *object) *patch {
		s.mu.Lock()
		defer s.mu.Unlock()
		all := o.list(guardsNote)
		rest := slices.DeleteFunc(slices.Clone(all), func(e string) bool {
			key, object := objectOf(e)
			return key == m.Key && base(object) == object && mine.pending[object] == 0
		})
		if len(rest) == len(all) {
			return nil
		}
		p := patchOf(o)
		p.note(guardsNote, listed(rest))
		return p
	})
}

// stillIn returns nil if m stands, and [backend.ErrNotMember] if it does not, as of some moment after the call.
func (s *session) stillIn(ctx context.Context, m backend.Member) error {
	s.mu.Lock()
	mine, left := s.mine(m) != nil, s.past.members.has(m.Key)
	s.mu.Unlock()
	if left {
		return backend.ErrNotMember
	}
	var o, x *object
	err := both(func() (err error) { o, err = s.get(ctx, m.Key, metadata); return err }, func() (err error) {
		if mine {
			x, err = s.get(ctx, s.name, metadata)
		}
		return err
	})
	if err == nil && o != nil && !mine && !o.isItem() {
		name, _ := o.session()
		x, err = s.get(ctx, name, metadata)
	}
	if err != nil {
		return err
	}
	if o == nil || o.position() != m.Position {
		return backend.ErrNotMember
	}
	if o.isItem() {
		return nil
	}
	_, uid := o.session()
	if x != nil && x.Metadata.UID == uid && x.Metadata.DeletionTimestamp == "" {
		if slices.Contains(x.list(burntNote), m.Key) {
			return backend.ErrNotMember
		}
		return nil
	}
	record, err := s.record(ctx, m.Line, metadata)
	if err == nil && !o.isPinned(record) {
		err = backend.ErrNotMember
	}
	return err
}
