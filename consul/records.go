package consul

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
)

// versionOf returns the version of a record as it was read: its ModifyIndex, which
// comes from Consul's log.
func versionOf(p *api.KVPair) backend.Version {
	if p == nil {
		return backend.Absent
	}
	return backend.Version(p.ModifyIndex)
}

// setOp writes a record that must still have the version; 0 means any. Consul does not
// count a write that changes nothing, so each has flags of its own.
func setOp(key string, value []byte, at backend.Version) *api.KVTxnOp {
	op := &api.KVTxnOp{Verb: api.KVCAS, Key: key, Value: value, Flags: rand.Uint64()}
	switch at {
	case 0:
		op.Verb = api.KVSet
	case backend.Absent:
		op.Index = 0 // for a cas: only if there is no record
	default:
		op.Index = uint64(at)
	}
	return op
}

// Get returns the record; see [backend.Session].
func (s *session) Get(ctx context.Context, name string) (backend.Record, error) {
	r, _, err := s.get(ctx, name)
	return r, err
}

// get also returns the index from which a blocking query finds every later change.
func (s *session) get(ctx context.Context, name string) (backend.Record, uint64, error) {
	r := backend.Record{Name: name}
	var index uint64
	err := s.retry(ctx, func(ctx context.Context) error {
		p, last, err := s.b.c.get(ctx, s.b.o.key(name))
		if err != nil {
			return err
		}
		r.Version, index = versionOf(p), last
		if p != nil {
			r.Value, index = p.Value, p.ModifyIndex
		}
		return nil
	})
	if err != nil {
		return backend.Record{}, 0, err
	}
	s.b.history.sawRecord(index, s.b.o.key(name))
	return r, index, nil
}

// Put writes the record if the condition holds, in one transaction; see
// [backend.Session].
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	key := s.b.o.key(name)
	var at backend.Version
	if cond != nil {
		at = cond.Version
	}
	p, err := s.guarded(ctx, cond, key, setOp(key, value, at))
	switch {
	case err != nil:
		return 0, err
	case p == nil:
		return 0, s.b.c.strange("an answer to a write without its result")
	}
	s.b.history.sawRecord(p.ModifyIndex, key)
	return versionOf(p), nil
}

// Delete removes the record if the condition holds; see [backend.Session].
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	key := s.b.o.key(name)
	var ops []*api.KVTxnOp
	switch {
	case cond == nil || cond.Version == backend.Any:
	case cond.Version == backend.Absent:
		ops = append(ops, &api.KVTxnOp{Verb: api.KVCheckNotExists, Key: key})
	default:
		// The verb delete-cas succeeds if there is no such key, so the version is checked
		// apart.
		ops = append(ops, &api.KVTxnOp{Verb: api.KVCheckIndex, Key: key, Index: uint64(cond.Version)})
	}
	ops = append(ops, &api.KVTxnOp{Verb: api.KVDelete, Key: key})
	_, err := s.guarded(ctx, cond, key, ops...)
	return err
}

// guarded runs a transaction on a key, on condition that cond.Member stands, if it is set.
// It returns the key's entry, if there is one then. It fails with [backend.ErrVersion] if
// the member stands and an operation was refused. It sends the transaction once, and again
// only if it was refused: after a lost answer, the caller must find out what happened. So it waits
// longer for the answer than a request that can be repeated.
//
// The guard is the index of the last change of the member's key. It stands for the same
// entry, locked by the same session. At first that index is the member's position. Pin
// changes it, and so does a move to another session of Consul.
func (s *session) guarded(ctx context.Context, cond *backend.If, key string, ops ...*api.KVTxnOp) (*api.KVPair, error) {
	var m backend.Member
	var guard *api.KVTxnOp
	if cond != nil && cond.Member != (backend.Member{}) {
		m = cond.Member
		path, err := s.b.o.memberPath(m)
		if err != nil {
			return nil, err
		}
		guard = &api.KVTxnOp{Verb: api.KVCheckIndex, Key: path, Index: s.changeOf(path, m.Position)}
		ops = append([]*api.KVTxnOp{guard}, ops...)
	}
	for {
		var r *result
		err := s.write(ctx, func(ctx context.Context) (err error) {
			r, err = s.b.c.write(ctx, ops...)
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case len(r.errs) == 0:
			return r.find(key), nil
		case guard == nil || !r.failed(0):
			return nil, fmt.Errorf("%w: %s", backend.ErrVersion, r.errs[0].What)
		}
		now, err := s.standing(ctx, guard.Key, m)
		switch {
		case err != nil:
			return nil, err
		case now == nil:
			return nil, s.missing(ctx, m)
		case now.ModifyIndex == guard.Index:
			return nil, fmt.Errorf("%w: the member's entry could not be checked: %s", backend.ErrUnavailable, r.errs[0].What)
		}
		guard.Index = now.ModifyIndex
		s.changed(guard.Key, m.Position, guard.Index)
	}
}

// List returns the full names of the records directly under dir, sorted; see
// [backend.Session].
func (s *session) List(ctx context.Context, dir string) ([]string, error) {
	folder := s.b.o.folder(dir)
	var keys, names []string
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		keys, err = s.b.c.names(ctx, folder)
		return err
	})
	for _, k := range keys {
		name := strings.TrimPrefix(k, folder)
		if !strings.HasSuffix(name, "/") && checkName(name) == nil {
			names = append(names, dir+"/"+name)
		}
	}
	slices.Sort(names)
	return names, err
}

// ReadAll returns the records directly under dir, as they are at one instant; see
// [backend.Session]. Consul also sends the records below those.
func (s *session) ReadAll(ctx context.Context, dir string) (records []backend.Record, err error) {
	folder := s.b.o.folder(dir)
	var pairs api.KVPairs
	err = s.retry(ctx, func(ctx context.Context) (err error) {
		pairs, _, err = s.b.c.list(ctx, folder)
		return err
	})
	for _, p := range pairs {
		name := strings.TrimPrefix(p.Key, folder)
		if !strings.Contains(name, "/") && checkName(name) == nil {
			records = append(records, backend.Record{Name: dir + "/" + name, Value: p.Value, Version: versionOf(p)})
		}
	}
	slices.SortFunc(records, func(a, b backend.Record) int { return strings.Compare(a.Name, b.Name) })
	return records, err
}

// Watch blocks until the record has another version than after; see
// [backend.Session].
//
// For a key that does not exist Consul returns the index of all keys. So while the store is busy, a
// query that arrives after the next write to any key returns at once, again without a record
// (agent/blockingquery/blockingquery.go). Watch then pauses. After a pause the index is old, so the
// next query also returns at once; a query with the index of its answer has the best chance to
// block.
func (s *session) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	wait, quiet := s.b.o.patience(), s.b.o.quiet()
	for {
		r, index, err := s.get(ctx, name)
		if err != nil || r.Version != after {
			return r, err
		}
		q, err := s.block(ctx, topic{key: s.b.o.key(name)}, index, after != backend.Absent)
		for nothing := 1; err == nil && q.err == nil && q.pair == nil && after == backend.Absent && q.last > index; nothing++ {
			if nothing%2 == 1 {
				if err := quiet.Sleep(ctx); err != nil {
					return backend.Record{}, err
				}
			}
			index = q.last
			q, err = s.block(ctx, topic{key: s.b.o.key(name)}, index, false)
		}
		if err != nil {
			return backend.Record{}, err
		}
		if err := s.resume(ctx, q, &wait); err != nil {
			return backend.Record{}, err
		}
	}
}
