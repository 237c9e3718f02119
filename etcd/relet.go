package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/internal/clock"
)

// A tenancy is what the members of a session hang on.
//
// A server that was etcd's leader, stood still for longer than a lease, and goes on,
// finds that lease run out, as what renewed it meanwhile went to the leader after it. It asks
// for it to be revoked before it hears that it leads no more, and the request may
// then be passed on to the new leader, which does as it is told (server/etcdserver,
// revokeExpiredLeases; the check of leadership in it is passed by who has ticked once
// since it went on, and comes too early for a request that waits to be passed on). No
// heartbeat helps against that, and no proof of one.
//
// But such a server knows only leases that were granted in its term or before, and no
// heartbeat that it has not answered. So a session trusts a lease in the term alone in which it
// was granted. In another it takes a fresh lease, and moves its members to that: what a key
// hangs on can be changed, and changes neither its create revision nor its name.
type tenancy struct {
	lease int64
	term  uint64 // etcd's, in which lease was granted; 0 where that is not known, or members are still to be moved
	old   int64  // the lease before, which nobody keeps alive any more; 0 for none
}

// present returns what the session's members hang on, or are being moved to.
func (s *session) present() tenancy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tenancy
}

// let makes t what the session's members are to hang on.
func (s *session) let(t tenancy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenancy = t
	s.leases[t.lease] = true
}

// had reports whether the lease is, or was, one of the session's.
func (s *session) had(lease int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[lease]
}

// relet takes a fresh lease if etcd is in another term than when the present one was
// granted, and moves the session's members to it. It returns when that was granted.
//
// No heartbeat is sent until all are moved, and the deadline stays where it is: both
// leases last until then. So each step asks two servers at once: etcd has just changed its
// leader, and the one that led may stand still and answer nobody. Who joins meanwhile is not waited for; see [session.catchUp].
func (s *session) relet() (sent clock.Instant, err error) {
	now := s.present()
	sent = clock.Now()
	term, err := s.term(true)
	if err != nil {
		return sent, err
	}
	if term == now.term { // the server that answers heartbeats is in another
		return sent, errUnproven
	}
	fresh, err := twice(s.Context(), s.beatLimit(), true, func(ctx context.Context) (grant, error) {
		return s.b.grant(ctx, int64(s.ttl/time.Second))
	})
	switch {
	case err != nil:
		return sent, err
	case fresh.term != term: // nothing hangs on it, and it lapses
		return fresh.sent, errUnproven
	}
	s.let(tenancy{lease: fresh.lease, old: now.lease})
	if err := s.move(s.Context(), s.keys(), now.lease, fresh.lease); err != nil {
		s.End(fmt.Errorf("its members cannot be moved to another lease: %w", err))
		return fresh.sent, err
	}
	s.let(tenancy{lease: fresh.lease, term: term, old: now.lease})
	s.hitch(nil)
	s.lease.Extend(fresh.sent, min(fresh.ttl, s.ttl)-s.margin)
	s.proof.extend(fresh.sent, min(fresh.ttl, s.ttl)-s.margin)
	s.b.o.Logger.Debug("took another lease, as etcd has changed its leader", "lease", fmt.Sprintf("%x", fresh.lease), "term", term)
	return fresh.sent, s.Alive()
}

// keys returns where members of the session may stand.
func (s *session) keys() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for place := range s.taken {
		keys = append(keys, s.b.o.Prefix+place)
	}
	return keys
}

// moved is how many members one request moves. etcd takes 128 operations by default.
const moved = 32

// move moves what stands under the keys from one lease to the other. What hangs on
// another, or on none as it is pinned, stays as it is.
func (s *session) move(ctx context.Context, keys []string, from, to int64) error {
	for some := range slices.Chunk(keys, moved) {
		t := txn{urgent: true, lease: to}
		for _, key := range some {
			t.then = append(t.then, clientv3.OpTxn(
				[]clientv3.Cmp{clientv3.Compare(clientv3.LeaseValue(key), "=", from)},
				[]clientv3.Op{clientv3.OpPut(key, "", clientv3.WithIgnoreValue(), clientv3.WithLease(clientv3.LeaseID(to)))},
				nil))
		}
		if _, _, err := s.persist(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// catchUp moves a member that was created on a lease to the present one, if that has
// become another meanwhile.
func (s *session) catchUp(ctx context.Context, key string, lease int64) error {
	for {
		now := s.present().lease
		if now == lease {
			return s.Alive() // it goes with the lease
		}
		switch err := s.move(ctx, []string{key}, lease, now); {
		case err == nil:
			lease = now
		case !errors.Is(err, errOutdated):
			return err
		}
	}
}

// joined reports whether the member of the given name was joined by this session.
func (s *session) joined(name string) bool {
	first := memberKey(s.id, 1)
	return name == first || strings.HasPrefix(name, first+"-")
}

// A grant is a lease that etcd has granted.
type grant struct {
	lease int64
	sent  clock.Instant
	ttl   time.Duration
	term  uint64 // etcd's: the lease was granted in it or before
}

// grant asks once for a lease.
func (b *Backend) grant(ctx context.Context, seconds int64) (grant, error) {
	g, floor := grant{lease: newLeaseID(), sent: clock.Now()}, b.log.floor()
	resp, err := sendOnce(ctx, b.leases.LeaseGrant, &pb.LeaseGrantRequest{ID: g.lease, TTL: seconds}, grpc.WaitForReady(true))
	if err != nil {
		return grant{}, b.unanswered(ctx, err)
	}
	// A lease goes through etcd's log, so its answer is as fresh as any.
	g.ttl, g.term = time.Duration(resp.TTL)*time.Second, resp.Header.GetRaftTerm()
	return g, b.log.observe(floor, resp.Header)
}

// term returns the term that etcd is in, by a request that takes a quorum, no right and
// no write.
func (b *Backend) term(ctx context.Context) (uint64, error) {
	resp, err := sendOnce(ctx, b.cluster.MemberList, &pb.MemberListRequest{Linearizable: true}, grpc.WaitForReady(true))
	if err != nil {
		return 0, b.unanswered(ctx, err)
	}
	return resp.Header.GetRaftTerm(), b.log.observe(0, resp.Header)
}
