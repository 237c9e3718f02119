package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend/kit/clock"
)

// A tenancy is the lease to which the members of a session are attached.
//
// Suppose etcd's leader stands still for longer than a lease lasts, and goes on. It finds
// that the lease has run out, because the heartbeats went to the next leader meanwhile.
// It asks for the lease to be revoked before it hears that it no longer leads. The request may then
// be passed on to the new leader, which carries it out (server/etcdserver, revokeExpiredLeases).
// The check of leadership there does not prevent this: a server that has ticked once since it went
// on passes it, and it comes too early for a request that waits to be passed on. Neither heartbeats
// nor their proofs help against that.
//
// But such a server knows only leases that were granted in its term or before, and no
// heartbeat that it has not answered. So a session trusts a lease only in the term in
// which it was granted. In another term it takes a fresh lease, and moves its members to
// it: a key can be attached to another lease, and keeps its create revision and its name.
type tenancy struct {
	lease int64
	term  uint64 // etcd's, in which lease was granted; 0 where that is not known, or members are still to be moved
	old   int64  // the lease before, which is not kept alive; 0 if there is none
}

// present returns the lease that the session's members are attached to, or are being
// moved to.
func (s *session) present() tenancy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tenancy
}

// let makes t the lease that the session's members are to be attached to.
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

// relet takes a fresh lease if etcd is in another term than that of the present lease,
// and moves the session's members to it. It returns when the request for the fresh lease
// was sent.
//
// No heartbeat is sent until all members are moved, and the deadline stays where it is:
// both leases last until then. So each step asks two servers at once: etcd has just
// changed its leader, and the former one may stand still and answer nobody. relet does
// not wait for a Join that is under way; see [session.catchUp].
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
	fresh, err := s.another()
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

// another asks for a fresh lease. All copies of the request name the same lease. So if it was granted and the
// answer was lost, or is late, another copy finds it, and a request through the quorum tells a term in which, or
// before which, it was granted. In any case the lease lasts for a TTL after the first copy was sent.
func (s *session) another() (grant, error) {
	id, sent := newLeaseID(), clock.Now()
	g, err := twice(s.Context(), s, true, func(ctx context.Context) (grant, error) {
		g, err := s.b.grant(ctx, id, int64(s.ttl/time.Second))
		if errors.Is(err, rpctypes.ErrLeaseExist) {
			g = grant{lease: id, ttl: s.ttl}
			g.term, err = s.b.term(ctx)
		}
		return g, err
	})
	g.sent = sent
	return g, err
}

// keys returns the keys at which members of the session may stand.
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

// move attaches what stands under the keys to the lease to, if it is attached to the
// lease from. What is attached to another lease, or is pinned, stays as it is.
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

// catchUp moves a member that was created on a lease to the present lease, if the session
// has taken another one meanwhile.
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
	first := memberKey(s.id, 1, false)
	return name == first || strings.HasPrefix(name, first+"-")
}

// A grant is a lease that etcd has granted.
type grant struct {
	lease int64
	sent  clock.Instant
	ttl   time.Duration
	term  uint64 // etcd's: the lease was granted in it or before
}

// grant asks once for the lease.
func (b *Backend) grant(ctx context.Context, id, seconds int64) (grant, error) {
	g, floor := grant{lease: id, sent: clock.Now()}, b.log.floor()
	resp, err := sendOnce(ctx, b.leases.LeaseGrant, &pb.LeaseGrantRequest{ID: g.lease, TTL: seconds}, grpc.WaitForReady(true))
	if err != nil {
		return grant{}, b.unanswered(ctx, err)
	}
	// A grant goes through the log, so its answer is as fresh as any.
	g.ttl, g.term = time.Duration(resp.TTL)*time.Second, resp.Header.GetRaftTerm()
	return g, b.log.observe(floor, resp.Header)
}

// nothing is a transaction that goes through the log and changes nothing. etcd takes it for a
// write, because it has another one in it, which is empty (server/etcdserver/txn, IsTxnReadonly).
var nothing = &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestTxn{RequestTxn: new(pb.TxnRequest)}}}}

// term returns the term that etcd is in. Its request takes a quorum and needs no right.
//
// The list of members is such a request, and writes nothing. But in some versions only root
// may have it (3.6.9: server/etcdserver, checkMembershipOperationPermission in MemberList).
// There the request is a transaction that does nothing.
func (b *Backend) term(ctx context.Context) (uint64, error) {
	if !b.unlisted.Load() {
		resp, err := sendOnce(ctx, b.cluster.MemberList, &pb.MemberListRequest{Linearizable: true}, grpc.WaitForReady(true))
		switch {
		case err == nil:
			return resp.Header.GetRaftTerm(), b.log.observe(0, resp.Header)
		case !errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied):
			return 0, b.unanswered(ctx, err)
		}
		b.unlisted.Store(true)
	}
	floor := b.log.floor()
	resp, err := b.txns.Txn(ctx, nothing, grpc.WaitForReady(true))
	if err != nil {
		return 0, b.unanswered(ctx, err)
	}
	return resp.Header.GetRaftTerm(), b.log.observe(floor, resp.Header)
}
