package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

// Get returns a record of the coordinator that keeps it; see [backend.Records] and
// the package comment.
func (s *session) Get(ctx context.Context, name string) (backend.Record, error) {
	r, err := s.get(ctx, name)
	return r, s.told("get", name, err)
}

func (s *session) get(ctx context.Context, name string) (backend.Record, error) {
	if err := backend.CheckName(name); err != nil {
		return backend.Record{}, err
	}
	for again := false; ; again = true {
		sd, _, err := s.keeper(ctx, name)
		if err != nil {
			return backend.Record{}, err
		}
		half, err := s.keeping(ctx, sd)
		if err != nil {
			return backend.Record{}, err
		}
		r, err := half.Get(ctx, name)
		if err == nil && sd == sideTo && !again && s.movedOn(r) {
			continue
		}
		r.Version = sd.version(r.Version)
		return r, err
	}
}

// movedOn reports whether r is the record of an election that was known to be on To, and
// has moved on, perhaps back. Where it is has to be looked for again.
func (s *session) movedOn(r backend.Record) bool {
	h, err := backend.ParseHeader(r.Value)
	if err != nil || h.Sealed == "" || !s.hasMoved(r.Name) {
		return false
	}
	s.forgetMoved(r.Name)
	return true
}

// A target is where a conditional write goes.
type target struct {
	side side
	half backend.Session
	cond backend.If   // as it is there
	note func() error // is still to be written after it; nil for none
}

// target returns where a conditional write goes. A guarded one goes where the member
// stands whose term it belongs to.
func (s *session) target(ctx context.Context, name string, cond *backend.If) (t target, err error) {
	if err := backend.CheckName(name); err != nil {
		return t, err
	}
	if cond != nil {
		t.cond = *cond
	}
	c := &t.cond
	p := s.owned(c.Member)
	switch {
	case c.Member == (backend.Member{}):
		t.side, _, err = s.keeper(ctx, name)
	case p == nil:
		c.Member, t.side = untag(c.Member)
	default:
		if s.isOnlyTo(p) {
			t.side = sideTo
		}
		if c.Member = p.member(t.side); c.Member.Key == "" || p.isLost() {
			err = backend.ErrNotMember
		} else if t.side == sideTo && name != p.line && name != header.FenceRecord(p.line) {
			t.note, err = s.carry(ctx, p, name, c.Version != 0)
		}
	}
	if err != nil {
		return t, err
	}
	if t.half, err = s.keeping(ctx, t.side); err != nil {
		return t, err
	}
	var ok bool
	if c.Version, ok = t.side.plain(c.Version); !ok {
		err = fmt.Errorf("%w: it is kept by the other coordinator by now", backend.ErrVersion)
		if p != nil && t.side == sideFrom && name == p.line {
			err = errMovedOn
		}
	}
	return t, err
}

// Put writes the record where the condition holds; see [backend.Records].
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	var written backend.Version
	err := s.write(ctx, name, cond, func(t target) error {
		v, err := t.half.Put(ctx, name, value, &t.cond)
		written = t.side.version(v)
		return err
	})
	return written, s.told("put", name, err)
}

// Delete removes the record where the condition holds; see [backend.Records].
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	return s.told("delete", name, s.write(ctx, name, cond, func(t target) error {
		return t.half.Delete(ctx, name, &t.cond)
	}))
}

// write does a conditional write. A place does one guarded write at a time, and none while
// it seals From: what was acknowledged there is there when the record is carried over.
func (s *session) write(ctx context.Context, name string, cond *backend.If, do func(target) error) error {
	if cond != nil {
		if p := s.owned(cond.Member); p != nil {
			if err := p.writes.lock(ctx); err != nil {
				return err
			}
			defer p.writes.unlock()
		}
	}
	t, err := s.target(ctx, name, cond)
	if err == nil {
		err = do(t)
	}
	if err == nil && t.note != nil {
		err = t.note()
	}
	return err
}

// List returns the names of the records directly under dir; see [backend.Records].
func (s *session) List(ctx context.Context, dir string) ([]string, error) {
	names, err := s.list(ctx, dir)
	return names, s.told("list", dir, err)
}

// list returns what From has and what To has: a record that is kept by To may have left
// its old value on From.
func (s *session) list(ctx context.Context, dir string) ([]string, error) {
	var names [2][]string
	var errs [2]error
	var wg sync.WaitGroup
	for sd := range s.sub {
		wg.Go(func() {
			var half backend.Session
			if half, errs[sd] = s.keeping(ctx, side(sd)); errs[sd] == nil {
				names[sd], errs[sd] = half.List(ctx, dir)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	all := slices.Concat(names[:]...)
	slices.Sort(all)
	var shown []string
	for _, name := range slices.Compact(all) {
		_, fence := slices.BinarySearch(shown, strings.TrimSuffix(name, header.Suffix))
		if !strings.HasSuffix(name, homeSuffix) && !(fence && strings.HasSuffix(name, header.Suffix)) {
			shown = append(shown, name)
		}
	}
	return shown, nil
}

// Watch blocks until the record has another version than after; see
// [backend.Records]. When an election moves, its record on To is what it sees next, and
// so it is with a record that is carried over.
func (s *session) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	r, err := s.watchRecord(ctx, name, after)
	return r, s.told("watch", name, err)
}

func (s *session) watchRecord(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	if err := backend.CheckName(name); err != nil {
		return backend.Record{}, err
	}
	for again := false; ; {
		sd, note, err := s.keeper(ctx, name)
		if err != nil {
			return backend.Record{}, err
		}
		half, err := s.keeping(ctx, sd)
		if err != nil {
			return backend.Record{}, err
		}
		plain, ok := sd.plain(after)
		if !ok {
			plain = 0 // the other coordinator's: this one's is news
		}
		r, moved, err := s.watchUntil(ctx, half, name, plain, note)
		if moved {
			continue
		}
		if err == nil && sd == sideFrom {
			if h, herr := backend.ParseHeader(r.Value); herr == nil && h.Sealed != "" && sameAddress(h.Sealed, s.b.o.To) {
				s.setMoved(name)
				continue
			}
		}
		if err == nil && sd == sideTo && !again && s.movedOn(r) {
			again = true // once: a third coordinator may have it
			continue
		}
		r.Version = sd.version(r.Version)
		return r, err
	}
}

// watchUntil is Watch of one coordinator, until the record's note has another version
// than the given one, if it has any.
func (s *session) watchUntil(ctx context.Context, half backend.Session, name string, after, note backend.Version) (r backend.Record, moved bool, err error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var noteErr error
	if note != 0 {
		wg.Go(func() {
			defer cancel()
			_, noteErr = s.sub[sideTo].Watch(inner, companion(name, homeSuffix), note)
			moved = noteErr == nil
		})
	}
	r, err = half.Watch(inner, name, after)
	over := inner.Err() == nil
	cancel()
	wg.Wait()
	switch {
	case over || ctx.Err() != nil:
		return r, false, err
	case moved:
		return backend.Record{}, true, nil
	}
	return backend.Record{}, false, noteErr
}
