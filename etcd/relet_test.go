package etcd_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
)

// TestRelet makes etcd change its leader. Then it does what a former leader that stood
// still may have the new one do: it revokes a lease that is alive.
func TestRelet(t *testing.T) {
	t.Parallel()
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	operator := admin(t, cluster.Addrs()...)
	name := coordtest.Name(t)
	a, b := newCluster(t, cluster, 3*ttl), newCluster(t, cluster, 3*ttl)
	term := campaign(t, a, name)
	won := behind(t, b, name)
	s, err := a.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	members := []backend.Member{term.Member()}
	for i := range 100 { // more than one request moves
		members = append(members, join(t, s, fmt.Sprintf("%s-%d", name, i), "x"))
	}
	pinned, left := members[1], members[2]
	if err := errors.Join(s.Pin(t.Context(), pinned, backend.Header{Fence: 7}, 0), s.Leave(t.Context(), left)); err != nil {
		t.Fatal(err)
	}

	for round := range 2 {
		old := etcd.Lease(s)
		joined := rig.Joins(t, s, fmt.Sprintf("%s-meanwhile-%d", name, round))
		moveLeader(t, cluster)
		for _, m := range members {
			if m != pinned && m != left {
				hangsOn(t, operator, s, m, func(lease int64) bool { return lease != old && lease == etcd.Lease(s) })
			}
		}
		members = append(members, joined()...)
		if _, err := operator.Revoke(t.Context(), clientv3.LeaseID(old)); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) { // it has run out
			t.Fatal(err)
		}
		for _, m := range members {
			l, err := s.Line(t.Context(), m.Line)
			if err != nil {
				t.Fatal(err)
			}
			stands := len(l.Members) > 0 && l.Members[0].Position == m.Position && l.Members[0].Key == m.Key
			if want := m != left; stands != want {
				t.Errorf("%s: member %s stands: %t, want %t; the line is %+v", m.Line, m.Key, stands, want, l.Members)
			}
			if stands && l.Members[0].Pinned != (m == pinned) {
				t.Errorf("%s: the member is pinned: %t", m.Line, l.Members[0].Pinned)
			}
		}
	}
	// The deadline goes on from the lease that the members are attached to.
	ctx := within(t, time.Minute)
	for last := s.Deadline(); !s.Deadline().After(last.Add(2 * ttl)); time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil || s.Err() != nil {
			t.Fatalf("the deadline stays %v ahead: %v", time.Until(s.Deadline()), s.Err())
		}
	}
	if err := term.Check(); err != nil {
		t.Errorf("the term has ended: %v", err)
	}
	m := join(t, s, name+"-late", "x")
	hangsOn(t, operator, s, m, func(lease int64) bool { return lease == etcd.Lease(s) })
	tooEarly(t, won)
	watch := calm.Start(t)
	if err := errors.Join(s.Close(t.Context()), a.Close()); err != nil {
		t.Fatal(err)
	}
	resign(t, takesOver(t, won, watch, takeover))
	for _, m := range members {
		if got := keys(t, operator, m.Line+"/"); len(got) > 0 && m != pinned {
			t.Errorf("%q stands after Close", got)
		}
	}
}

// TestReletRefused has a server refuse to move members after a change of etcd's leader,
// because it lags behind. The session goes on, and other servers move them.
func TestReletRefused(t *testing.T) {
	t.Parallel()
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	var m meter
	c, err := etcdrig.Dial(cluster.Addrs(), grpc.WithChainUnaryInterceptor(m.intercept))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b, err := etcd.New(c, &etcd.Options{TTL: 4 * ttl, ConnectTimeout: opening})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	member, old := join(t, s, coordtest.Name(t), "x"), etcd.Lease(s)
	var refused atomic.Bool
	m.steps(func(r *pb.TxnRequest, send func() error) error {
		if moves(r) && refused.CompareAndSwap(false, true) {
			return rpctypes.ErrGRPCRequestTooManyRequests
		}
		return send()
	})
	moveLeader(t, cluster)
	hangsOn(t, admin(t, cluster.Addrs()...), s, member, func(lease int64) bool { return lease != old })
	if !refused.Load() {
		t.Error("nothing was refused")
	}
	if err := s.Leave(t.Context(), member); err != nil {
		t.Error(err)
	}
}

// TestOutdatedLease holds up a request to join until the session has taken another lease,
// and the lease in the request is gone. The session joins by the new lease, and goes on.
func TestOutdatedLease(t *testing.T) {
	t.Parallel()
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	operator := admin(t, cluster.Addrs()...)
	c := newClientOf(t, cluster.Addrs()[0], 3*ttl)
	s, name := c.session(t), coordtest.Name(t)
	term, old := campaign(t, c, name), etcd.Lease(s)
	var held atomic.Bool
	c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
		if creates(r) && held.CompareAndSwap(false, true) {
			moveLeader(t, cluster)
			hangsOn(t, operator, s, term.Member(), func(lease int64) bool { return lease != old })
			if _, err := operator.Revoke(t.Context(), clientv3.LeaseID(old)); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
				t.Error(err)
			}
		}
		return send()
	})
	m := join(t, s, name+"-other", "x")
	if !held.Load() {
		t.Fatal("nothing was held up")
	}
	hangsOn(t, operator, s, m, func(lease int64) bool { return lease == etcd.Lease(s) })
	if err := term.Check(); err != nil {
		t.Errorf("the term has ended: %v", err)
	}

}

// moves reports whether r moves members to another lease.
func moves(r *pb.TxnRequest) bool {
	return len(r.Success) > 0 && r.Success[0].GetRequestTxn() != nil
}

// hangsOn waits until the member is attached to a lease for which ok is true.
func hangsOn(t *testing.T, operator *clientv3.Client, s backend.Session, m backend.Member, ok func(lease int64) bool) {
	t.Helper()
	ctx := within(t, time.Minute)
	for {
		resp, err := operator.Get(ctx, m.Line+"/"+m.Key)
		if err != nil || len(resp.Kvs) == 0 || resp.Kvs[0].CreateRevision != int64(m.Position) {
			t.Fatalf("%+v does not stand: %v", m, err)
		}
		if ok(resp.Kvs[0].Lease) {
			return
		}
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// moveLeader has etcd's leader hand over to another server.
func moveLeader(t *testing.T, cluster *coordtest.Etcd) {
	t.Helper()
	now := leader(t, cluster)
	other := admin(t, cluster.Addrs()[(now+1)%len(cluster.Addrs())])
	status, err := other.Status(t.Context(), other.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin(t, cluster.Addrs()[now]).MoveLeader(t.Context(), status.Header.MemberId); err != nil {
		t.Fatal(err)
	}
}

// TestStaleLeader pauses etcd's leader for longer than a session lasts. When it goes on,
// it finds that all leases have run out, and about every second time has some revoked
// that live.
func TestStaleLeader(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second // outlives an election among the servers on a machine that is busy
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	stale, watch := leader(t, cluster), calm.Start(t)
	var sessions []backend.Session
	var members []backend.Member
	for i := range 20 {
		s, err := newCluster(t, cluster, ttl).Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
		members = append(members, join(t, s, fmt.Sprintf("%s-%d", coordtest.Name(t), i), "x"))
	}
	if err := cluster.Servers()[stale].Pause(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * ttl)
	if err := cluster.Servers()[stale].Resume(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Servers()[stale].Ready(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(ttl / 4) // what it has asked for takes effect
	for i, s := range sessions {
		l, err := s.Line(t.Context(), members[i].Line)
		if err != nil || len(l.Members) != 1 || l.Members[0].Position != members[i].Position {
			if watch.NotJudged(ttl/4, "session %d: %+v, %v", i, l.Members, err) {
				return
			}
			t.Errorf("session %d: its member is not there any more: %+v, %v", i, l.Members, err)
		}
	}
}
