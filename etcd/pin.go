package etcd

import (
	"bytes"
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
)

// Pin makes m permanent, and writes h as the header of its election, in one transaction;
// see [backend.Session]. It pins a key by writing it without its lease: the key keeps its
// create revision, and so its position.
func (s *session) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	value := h.Encode()
	if s.joined(m.Key) {
		s.pins.Begin(m)
		was, lost, err := s.pin(ctx, m, value, at, true)
		if err != nil || !was || lost && s.pins.Alone(m) { // only this session pins it: lost, it was this call
			return err
		}
	}
	_, _, err := s.pin(ctx, m, value, at, false)
	return err
}

// pin pins m and writes the header. If hangs is true, m must be attached to a lease; if
// it is false, m must be pinned already, and only the header is written. was reports that
// pin did nothing because m was pinned already.
func (s *session) pin(ctx context.Context, m backend.Member, value []byte, at backend.Version, hangs bool) (was, lost bool, err error) {
	key, record := s.b.member(m), s.b.record(m.Line)
	lease := "="
	if hangs {
		lease = "!="
	}
	t := txn{
		when: []clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(key), "=", int64(m.Position)),
			clientv3.Compare(clientv3.LeaseValue(key), lease, 0),
		},
		then:      []clientv3.Op{clientv3.OpPut(record, string(value))},
		otherwise: []clientv3.Op{clientv3.OpGet(key), clientv3.OpGet(record)},
	}
	if at != 0 {
		t.when = append(t.when, hasVersion(record, at))
	}
	if hangs {
		t.then = append(t.then, clientv3.OpPut(key, "", clientv3.WithIgnoreValue()))
	}
	resp, lost, err := s.persist(ctx, t)
	if err != nil || resp.Succeeded {
		return false, lost, err
	}
	member, rec := rangeOf(resp, 0), rangeOf(resp, 1)
	switch {
	case len(member.Kvs) == 0 || member.Kvs[0].CreateRevision != int64(m.Position):
		return false, lost, backend.ErrNotMember
	case member.Kvs[0].Lease == 0 && len(rec.Kvs) > 0 && bytes.Equal(rec.Kvs[0].Value, value):
		return false, lost, nil
	case member.Kvs[0].Lease == 0 && hangs:
		return true, lost, nil
	case member.Kvs[0].Lease != 0 && !hangs:
		return false, lost, fmt.Errorf("%w: member %s was joined by another session", backend.ErrDenied, m.Key)
	}
	return false, lost, fmt.Errorf("%w: version is %d, not %d", backend.ErrVersion, versionOf(rec), at)
}

// hasVersion is the condition that the record has the version.
func hasVersion(record string, v backend.Version) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(record), "=", max(int64(v), 0)) // a key that does not exist has 0
}
