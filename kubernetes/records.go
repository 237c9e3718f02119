package kubernetes

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Get returns the record; see [backend.Session].
func (s *session) Get(ctx context.Context, name string) (backend.Record, error) {
	o, err := s.record(ctx, name, whole)
	if err != nil {
		return backend.Record{}, err
	}
	value, err := o.value()
	return backend.Record{Name: name, Value: value, Version: o.recordVersion()}, err
}

// Watch blocks until the record has another version than after; see [backend.Session].
func (s *session) Watch(ctx context.Context, name string, after backend.Version) (r backend.Record, err error) {
	if after == backend.Any {
		return s.Get(ctx, name)
	}
	w := newWaiter(func(e event) bool { return e.now().recordVersion() != after })
	err = s.hub.await(ctx, w, []subject{{idLabel, s.b.recordName(name)}}, 0, func() (bool, error) {
		r, err = s.Get(ctx, name)
		return err == nil && r.Version != after, err
	}, nil)
	return r, err
}

// Put writes the record if the condition holds; see [backend.Session].
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	return s.writeRecord(ctx, name, cond, &value)
}

// Delete removes the record if the condition holds; see [backend.Session].
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	_, err := s.writeRecord(ctx, name, cond, nil)
	return err
}

// A writing is a write of a record.
type writing struct {
	name  string
	cond  backend.If
	value *[]byte // nil deletes it
	own   string  // the entry in the guard list, if the record is that of the guard's line; empty otherwise
}

func (s *session) writeRecord(ctx context.Context, name string, cond *backend.If, value *[]byte) (backend.Version, error) {
	q := writing{name: name, value: value}
	if cond != nil {
		q.cond = *cond
	}
	caller := ctx
	return kit.Await(ctx, s.Life, func() (v backend.Version, err error) {
		ctx := s.Context()
		if q.guarded() {
			ctx = ranked(ctx, urgent)
			id := s.b.recordName(name)
			if q.cond.Member.Line == name {
				q.own = entry(q.cond.Member.Key, id+"#"+strings.TrimPrefix(randomName(""), "-"))
			} else {
				var settle func()
				if settle, err = s.enlist(ctx, q.cond.Member, id); err != nil {
					return 0, err
				}
				defer func() { // reads err as it is then
					if !lost(err) && s.Alive() == nil {
						settle()
					}
				}()
			}
		}
		return kit.Retry(ctx, s.b.o.backoff(), changed, func(ctx context.Context) (backend.Version, error) { return s.put(ctx, caller, q) })
	})
}

func (q *writing) guarded() bool { return q.cond.Member != backend.Member{} }

// put writes a record once, at the version that it reads. A guarded one reads it before it looks whether its guard stands. If the caller
// has given up by then, nothing is written: a later version may be one of which its writer has been told.
func (s *session) put(ctx, caller context.Context, q writing) (backend.Version, error) {
	o, err := s.record(ctx, q.name, metadata)
	if err != nil {
		return 0, err
	}
	if caller.Err() != nil {
		s.giveUp(q, o)
		return 0, context.Cause(caller)
	}
	if q.guarded() {
		if o, err = s.underGuard(ctx, q, o); err != nil {
			return 0, err
		}
	}
	if v := o.recordVersion(); q.cond.Version != backend.Any && v != q.cond.Version {
		s.giveUp(q, o)
		return 0, backend.ErrVersion
	}
	switch {
	case q.value == nil:
		return 0, s.erase(ctx, q, o)
	case o == nil:
		o = s.newRecord(q.name)
		delete(o.Metadata.Annotations, absentNote)
		o.Spec.HolderIdentity = encode(*q.value)
		made, err := s.b.wire.create(ctx, s.b.o.TTL, o)
		if err != nil {
			return 0, err
		}
		return made.recordVersion(), nil
	}
	p := patchOf(o)
	p.note(absentNote, "")
	p.note(versionNote, "")
	p.stamp()
	p.Spec = &spec{HolderIdentity: encode(*q.value)}
	q.takeBack(p, o)
	now, err := s.b.wire.patch(ctx, s.b.o.TTL, o.Metadata.Name, p)
	if err != nil {
		return 0, err
	}
	return now.recordVersion(), nil
}

// underGuard returns the record that a guarded write is to be made on, when its guard stands after it was read. There must be
// one: a creation could not be stamped.
func (s *session) underGuard(ctx context.Context, q writing, o *object) (*object, error) {
	p := (*patch)(nil)
	fresh := o == nil
	if fresh {
		o = s.newRecord(q.name)
	}
	if q.own != "" && !slices.Contains(o.list(guardsNote), q.own) {
		p = patchOf(o)
		p.stamp()
		p.note(guardsNote, listed(append(o.list(guardsNote), q.own)))
	}
	var err error
	switch {
	case fresh && (q.value == nil || q.cond.Version != backend.Any && q.cond.Version != backend.Absent):
		return nil, s.stillIn(ctx, q.cond.Member) // nothing is going to be written
	case fresh:
		if q.own != "" {
			o.Metadata.Annotations[guardsNote] = listed([]string{q.own})
		}
		o, err = s.b.wire.create(ctx, s.b.o.attempt(), o)
	case p != nil:
		o, err = s.b.wire.patch(ctx, s.b.o.attempt(), o.Metadata.Name, p)
	}
	if err == nil {
		if err = s.stillIn(ctx, q.cond.Member); err != nil {
			s.giveUp(q, o)
		}
	}
	return o, err
}

// takeBack takes the entry of the write itself from the guard list.
func (q *writing) takeBack(p *patch, o *object) {
	if q.own == "" {
		return
	}
	p.note(guardsNote, listed(slices.DeleteFunc(o.list(guardsNote), func(e string) bool { return e == q.own })))
}

// giveUp takes it from there when nothing was written. If the record was made for the write, it goes.
func (s *session) giveUp(q writing, o *object) {
	if q.own == "" || o == nil {
		s.dropEmpty(o)
		return
	}
	s.Go(func() {
		_, _ = s.editRecord(s.Context(), q.name, func(o *object) *patch {
			if !slices.Contains(o.list(guardsNote), q.own) {
				return nil
			}
			p := patchOf(o)
			q.takeBack(p, o)
			return p
		})
	})
}

// erase takes the value from a record that was read as o, which may be nil. What else the object says stays; if it says nothing else, it
// is deleted.
func (s *session) erase(ctx context.Context, q writing, o *object) error {
	if o.recordVersion() == backend.Absent {
		s.giveUp(q, o)
		return nil
	}
	p := patchOf(o)
	p.note(absentNote, "true")
	p.note(versionNote, "")
	p.stamp()
	p.Spec = &spec{HolderIdentity: encode(nil)}
	q.takeBack(p, o)
	now, err := s.b.wire.patch(ctx, s.b.o.TTL, o.Metadata.Name, p)
	switch {
	case errors.Is(err, errMissing) && q.cond.Version == backend.Any:
		return nil
	case err == nil:
		s.dropEmpty(now)
	}
	return err
}

// List returns the names of the records directly below dir; see [backend.Session].
func (s *session) List(ctx context.Context, dir string) (names []string, err error) {
	l, err := s.below(ctx, dir, metadata)
	for _, o := range l {
		names = append(names, o.note(nameNote))
	}
	return names, err
}

// ReadAll returns the records directly below dir; see [backend.Session].
func (s *session) ReadAll(ctx context.Context, dir string) (records []backend.Record, err error) {
	l, err := s.below(ctx, dir, whole)
	if err != nil {
		return nil, err
	}
	for _, o := range l {
		value, err := o.value()
		if err != nil {
			return nil, err
		}
		records = append(records, backend.Record{Name: o.note(nameNote), Value: value, Version: o.recordVersion()})
	}
	return records, nil
}

// below returns the records directly below dir that have a value, in the order of their names.
func (s *session) below(ctx context.Context, dir, accept string) ([]*object, error) {
	l, err := s.list(ctx, dirLabel+"="+s.b.dirLabel(dir), accept)
	if err != nil {
		return nil, err
	}
	records := slices.DeleteFunc(l.items, func(o *object) bool {
		name := o.note(nameNote)
		return o.recordVersion() == backend.Absent || dirOf(name) != dir || o.Metadata.Name != s.b.recordName(name)
	})
	slices.SortFunc(records, func(a, b *object) int { return strings.Compare(a.note(nameNote), b.note(nameNote)) })
	return records, nil
}
