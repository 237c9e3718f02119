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
	sd, _, err := s.keeper(ctx, name)
	if err != nil {
		return backend.Record{}, err
	}
	half, err := s.keeping(sd)
	if err != nil {
		return backend.Record{}, err
	}
	r, err := half.Get(ctx, name)
	r.Version = sd.version(r.Version)
	return r, err
}

// condition returns the half that a conditional write goes to, and the condition as
// it is there. A guarded write goes where the member stands whose term it belongs to.
func (s *session) condition(ctx context.Context, name string, cond *backend.If) (backend.Session, side, *backend.If, error) {
	if err := backend.CheckName(name); err != nil {
		return nil, 0, nil, err
	}
	var c backend.If
	if cond != nil {
		c = *cond
	}
	var sd side
	var err error
	p := s.owned(c.Member)
	switch {
	case c.Member == (backend.Member{}):
		sd, _, err = s.keeper(ctx, name)
	case p == nil:
		c.Member, sd = untag(c.Member)
	default:
		if s.isOnlyTo(p) {
			sd = sideTo
		}
		if c.Member = p.member(sd); c.Member.Key == "" || p.isLost() {
			err = backend.ErrNotMember
		} else if sd == sideTo && name != p.line && name != header.FenceRecord(p.line) {
			err = s.carry(ctx, p, name, c.Version != 0)
		}
	}
	if err != nil {
		return nil, 0, nil, err
	}
	half, err := s.keeping(sd)
	if err != nil {
		return nil, 0, nil, err
	}
	var ok bool
	if c.Version, ok = sd.plain(c.Version); !ok {
		err = fmt.Errorf("%w: it is kept by the other coordinator by now", backend.ErrVersion)
		if p != nil && sd == sideFrom && name == p.line {
			err = errMovedOn
		}
	}
	return half, sd, &c, err
}

// Put writes the record where the condition holds; see [backend.Records].
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	var written backend.Version
	err := s.write(ctx, name, cond, func(half backend.Session, sd side, c *backend.If) error {
		v, err := half.Put(ctx, name, value, c)
		written = sd.version(v)
		return err
	})
	return written, s.told("put", name, err)
}

// Delete removes the record where the condition holds; see [backend.Records].
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	return s.told("delete", name, s.write(ctx, name, cond, func(half backend.Session, _ side, c *backend.If) error {
		return half.Delete(ctx, name, c)
	}))
}

// write does a conditional write. A place does one guarded write at a time, and none while
// it seals From: what was acknowledged there is there when the record is carried over.
func (s *session) write(ctx context.Context, name string, cond *backend.If, do func(backend.Session, side, *backend.If) error) error {
	if cond != nil {
		if p := s.owned(cond.Member); p != nil {
			if err := p.writes.lock(ctx); err != nil {
				return err
			}
			defer p.writes.unlock()
		}
	}
	half, sd, c, err := s.condition(ctx, name, cond)
	if err != nil {
		return err
	}
	return do(half, sd, c)
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
			if half, errs[sd] = s.keeping(side(sd)); errs[sd] == nil {
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
	for {
		sd, note, err := s.keeper(ctx, name)
		if err != nil {
			return backend.Record{}, err
		}
		half, err := s.keeping(sd)
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
