package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/succession-dev/succession/backend"
)

// sideOfRecord says which coordinator keeps the record: for that of an election, the
// one where the election is; for any other, To once this session knows of an election
// that has moved.
func (s *session) sideOfRecord(ctx context.Context, name string) (side, error) {
	if this, _ := s.hasMoved(name); this {
		return sideTo, nil
	}
	h, r, errs := s.headers(ctx, name)
	for sd, err := range errs {
		if errors.Is(err, backend.ErrHeader) {
			errs[sd] = nil // who reads a record as such sees what is wrong
		}
		if err != nil && !errors.Is(err, backend.ErrHeader) && !errors.Is(err, backend.ErrUnavailable) {
			return side(sd), err
		}
	}
	if errs[sideTo] == nil && r[sideTo].Version != backend.Absent || errs[sideFrom] == nil && h[sideFrom].Sealed != "" {
		if rule, err := s.b.rule(h[sideFrom], h[sideTo]); err == nil && !rule.both && rule.alone == sideTo {
			s.setMoved(name)
			return sideTo, nil
		}
	}
	if h[sideFrom] != (backend.Header{}) || h[sideTo] != (backend.Header{}) {
		return sideFrom, errs[sideFrom]
	}
	if _, any := s.hasMoved(name); any && (errs[sideFrom] != nil || r[sideFrom].Version == backend.Absent || r[sideTo].Version != backend.Absent) {
		return sideTo, errs[sideTo]
	}
	return sideFrom, nil
}

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
	sd, err := s.sideOfRecord(ctx, name)
	if err != nil {
		return backend.Record{}, err
	}
	half, err := s.half(sd)
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
	if c.Member == (backend.Member{}) {
		sd, err = s.sideOfRecord(ctx, name)
	} else if p := s.owned(c.Member); p == nil {
		c.Member, sd = untag(c.Member)
	} else {
		if s.isOnlyTo(p) {
			sd = sideTo
		}
		if c.Member = p.member(sd); c.Member.Key == "" || p.isLost() {
			err = backend.ErrNotMember
		}
	}
	if err != nil {
		return nil, 0, nil, err
	}
	half, err := s.half(sd)
	if err != nil {
		return nil, 0, nil, err
	}
	var ok bool
	if c.Version, ok = sd.plain(c.Version); !ok {
		err = fmt.Errorf("%w: it is kept by the other coordinator by now", backend.ErrVersion)
	}
	return half, sd, &c, err
}

// Put writes the record where the condition holds; see [backend.Records].
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	half, sd, c, err := s.condition(ctx, name, cond)
	var v backend.Version
	if err == nil {
		v, err = half.Put(ctx, name, value, c)
	}
	return sd.version(v), s.told("put", name, err)
}

// Delete removes the record where the condition holds; see [backend.Records].
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	half, _, c, err := s.condition(ctx, name, cond)
	if err == nil {
		err = half.Delete(ctx, name, c)
	}
	return s.told("delete", name, err)
}

// List returns the names of the records directly under dir; see [backend.Records].
func (s *session) List(ctx context.Context, dir string) ([]string, error) {
	names, err := s.list(ctx, dir)
	return names, s.told("list", dir, err)
}

func (s *session) list(ctx context.Context, dir string) ([]string, error) {
	sd := sideFrom
	if _, any := s.hasMoved(dir); any {
		sd = sideTo
	}
	half, err := s.half(sd)
	if err != nil {
		return nil, err
	}
	return half.List(ctx, dir)
}

// Watch blocks until the record has another version than after; see
// [backend.Records]. When an election moves, its record on To is what it sees next.
func (s *session) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	r, err := s.watchRecord(ctx, name, after)
	return r, s.told("watch", name, err)
}

func (s *session) watchRecord(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	if err := backend.CheckName(name); err != nil {
		return backend.Record{}, err
	}
	for {
		s.mu.Lock()
		switched, any := s.switched, len(s.moved) > 0
		s.mu.Unlock()
		sd, err := s.sideOfRecord(ctx, name)
		if err != nil {
			return backend.Record{}, err
		}
		half, err := s.half(sd)
		if err != nil {
			return backend.Record{}, err
		}
		plain, ok := sd.plain(after)
		if !ok {
			plain = 0 // the other coordinator's: this one's is news
		}
		if any {
			switched = nil
		}
		r, moved, err := s.watchUntil(ctx, half, name, plain, switched)
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

// watchUntil is Watch of one coordinator, until switched is closed.
func (s *session) watchUntil(ctx context.Context, half backend.Session, name string, after backend.Version, switched <-chan struct{}) (r backend.Record, moved bool, err error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-switched:
			cancel()
		case <-inner.Done():
		}
	})
	r, err = half.Watch(inner, name, after)
	moved = err != nil && inner.Err() != nil && ctx.Err() == nil
	cancel()
	wg.Wait()
	return r, moved, err
}
