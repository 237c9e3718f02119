package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
)

// Get returns the record; see [backend.Session].
func (s *session) Get(ctx context.Context, name string) (backend.Record, error) {
	r, _, err := s.get(ctx, name)
	return r, err
}

// get also returns the revision at which it has read.
func (s *session) get(ctx context.Context, name string) (backend.Record, int64, error) {
	resp, err := s.read(ctx, clientv3.OpGet(s.b.record(name)))
	if err != nil {
		return backend.Record{}, 0, err
	}
	return recordOf(name, rangeOf(resp, 0)), resp.Header.Revision, nil
}

// recordOf returns the record of the name, which r is about.
func recordOf(name string, r *pb.RangeResponse) backend.Record {
	record := backend.Record{Name: name, Version: versionOf(r)}
	if len(r.Kvs) > 0 {
		record.Value = r.Kvs[0].Value
	}
	return record
}

// Put writes the record; see [backend.Session]. It fails with [backend.ErrInvalid] if the
// name is the key of a member that has a lease: writing it would take the lease away.
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	resp, err := s.write(ctx, name, cond, clientv3.OpPut(s.b.record(name), string(value)))
	if err != nil {
		return 0, err
	}
	return backend.Version(resp.Header.Revision), nil
}

// Delete removes the record; see [backend.Session].
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	_, err := s.write(ctx, name, cond, clientv3.OpDelete(s.b.record(name)))
	return err
}

// write does op on the record if the condition holds.
func (s *session) write(ctx context.Context, name string, cond *backend.If, op clientv3.Op) (*clientv3.TxnResponse, error) {
	if cond == nil {
		cond = new(backend.If)
	}
	record := s.b.record(name)
	t := txn{
		when:      []clientv3.Cmp{clientv3.Compare(clientv3.LeaseValue(record), "=", 0)},
		then:      []clientv3.Op{op},
		otherwise: []clientv3.Op{clientv3.OpGet(record)},
	}
	if cond.Version != backend.Any {
		t.when = append(t.when, hasVersion(record, cond.Version))
	}
	var untouched func(*clientv3.TxnResponse) bool
	if cond.Version > 0 {
		untouched = func(resp *clientv3.TxnResponse) bool { return versionOf(rangeOf(resp, 0)) == cond.Version }
	}
	resp, err := s.guarded(ctx, t, cond.Member, untouched)
	if err != nil || resp.Succeeded {
		return resp, err
	}
	now := rangeOf(resp, 0)
	if len(now.Kvs) > 0 && now.Kvs[0].Lease != 0 {
		return nil, fmt.Errorf("%w name %q: it is the key of a member of a line", backend.ErrInvalid, name)
	}
	return nil, fmt.Errorf("%w: version is %d, not %d", backend.ErrVersion, versionOf(now), cond.Version)
}

// guarded sends t, which must not take effect twice, on condition that m stands. It fails with
// [backend.ErrNotMember] if m does not. The zero Member is no condition.
//
// If t changes or deletes a key on condition that it has a certain version, several copies of t can be sent, to
// several servers ([session.either]): the key never has that version again. Then untouched, which is otherwise
// nil, reports whether an answer shows the key with that version. A t without such a condition, or
// one that demands that there is no such key, is sent once: a late copy would undo what others have
// written or deleted meanwhile.
//
// If m is not known to be pinned, it must not be pinned either. A server may stand still
// with t and do it later. If the leader has pinned m by then, it may have sealed the
// election and carried its records over to another coordinator.
func (s *session) guarded(ctx context.Context, t txn, m backend.Member, untouched func(*clientv3.TxnResponse) bool) (*clientv3.TxnResponse, error) {
	send := s.once
	if untouched != nil {
		send = func(ctx context.Context, t txn) (*clientv3.TxnResponse, error) { return s.either(ctx, t, untouched) }
	}
	if m == (backend.Member{}) {
		return send(ctx, t)
	}
	key, hangs, own := s.b.member(m), !m.Pinned, t
	t.when = append(t.when, clientv3.Compare(clientv3.CreateRevision(key), "=", int64(m.Position)))
	t.otherwise = append(t.otherwise, clientv3.OpGet(key, clientv3.WithKeysOnly()))
	if hangs {
		t.when = append(t.when, clientv3.Compare(clientv3.LeaseValue(key), "!=", 0))
	}
	resp, err := send(ctx, t)
	if err != nil || resp.Succeeded {
		return resp, err
	}
	switch now := rangeOf(resp, len(own.otherwise)).Kvs; {
	case len(now) == 0 || now[0].CreateRevision != int64(m.Position):
		return nil, backend.ErrNotMember
	case hangs && now[0].Lease == 0: // it was pinned before, and will be for good
		m.Pinned = true
		return s.guarded(ctx, own, m, untouched)
	}
	return resp, nil
}

// List returns the names of the records directly under dir; see [backend.Session].
func (s *session) List(ctx context.Context, dir string) (names []string, err error) {
	resp, err := s.read(ctx, clientv3.OpGet(s.b.folder(dir), clientv3.WithPrefix(), clientv3.WithKeysOnly()))
	if err != nil {
		return nil, err
	}
	for _, kv := range rangeOf(resp, 0).Kvs {
		if name, ok := s.b.recordIn(dir, kv); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// ReadAll returns the records directly under dir, as they are at one instant; see [backend.Session].
func (s *session) ReadAll(ctx context.Context, dir string) (records []backend.Record, err error) {
	resp, err := s.read(ctx, clientv3.OpGet(s.b.folder(dir), clientv3.WithPrefix()))
	if err != nil {
		return nil, err
	}
	for _, kv := range rangeOf(resp, 0).Kvs {
		if name, ok := s.b.recordIn(dir, kv); ok {
			records = append(records, backend.Record{Name: name, Value: kv.Value, Version: backend.Version(kv.ModRevision)})
		}
	}
	slices.SortFunc(records, func(a, b backend.Record) int { return strings.Compare(a.Name, b.Name) })
	return records, nil
}

// recordIn returns the name of the record whose key it is, if that lies directly under dir.
func (b *Backend) recordIn(dir string, kv *mvccpb.KeyValue) (name string, ok bool) {
	rest := string(kv.Key[len(b.folder(dir)):])
	return dir + "/" + rest, rest != "" && !strings.Contains(rest, "/") && !ourMember.MatchString(rest)
}

// Watch blocks until the record has another version than after; see
// [backend.Session].
func (s *session) Watch(ctx context.Context, name string, after backend.Version) (r backend.Record, err error) {
	if after == 0 {
		r, _, err = s.get(ctx, name)
		return r, err
	}
	err = s.await(ctx, watching{
		create: []*pb.WatchCreateRequest{watchKey(s.b.record(name))},
		look: func(ctx context.Context) (bool, int64, error) {
			var revision int64
			r, revision, err = s.get(ctx, name)
			return err == nil && r.Version != after, revision, err
		},
		seen: func(ev *mvccpb.Event) verdict {
			r = backend.Record{Name: name, Version: backend.Absent}
			if ev.Type != clientv3.EventTypeDelete {
				r.Version, r.Value = backend.Version(ev.Kv.ModRevision), ev.Kv.Value
			}
			if r.Version == after {
				return ignore
			}
			return done
		},
	})
	return r, err
}

// headerOf reads the header of an election.
func headerOf(r *pb.RangeResponse) (backend.Header, error) {
	if len(r.Kvs) == 0 {
		return backend.Header{}, nil
	}
	return backend.ParseHeader(r.Kvs[0].Value)
}

func versionOf(r *pb.RangeResponse) backend.Version {
	if len(r.Kvs) == 0 {
		return backend.Absent
	}
	return backend.Version(r.Kvs[0].ModRevision)
}
