package etcd_test

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

func TestShortTries(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	c := newClient(t, addr)
	rig.ShortTries(t, c.proxy, c.session(t), newClient(t, addr).session(t), coordtest.Name(t))
}

func TestManyLeave(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	c := newClient(t, addr)
	rig.ManyLeave(t, c.rig, c.session(t), newClient(t, addr).session(t), coordtest.Name(t), 100)
}

// TestLateLeave repeats the Leave of a member when another member has its key and leads.
// The other one goes on to lead by a proven deadline, and nobody else gets its key.
func TestLateLeave(t *testing.T) {
	t.Parallel()
	c := newClientOf(t, sharedEtcd(t).Addrs()[0], 2*ttl)
	s, name := c.session(t), coordtest.Name(t)
	old := join(t, s, name, "old")
	if err := s.Leave(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	m := join(t, s, name, "new")
	if m.Key != old.Key {
		t.Fatalf("the members' keys are %s and %s; want one for both", old.Key, m.Key)
	}
	if p, err := s.Ahead(t.Context(), m); err != nil || !p.First {
		t.Fatalf("Ahead: %+v, %v", p, err)
	}
	if err := s.Leave(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ahead(t.Context(), old); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Ahead of who has left: %v; want ErrNotMember", err)
	}
	if next := join(t, s, name, "next"); next.Key == m.Key {
		t.Errorf("two members have the key %s", m.Key)
	}
	endsUnproven(t, c, s)
}

// TestLateAhead holds back the answer that a member is first until the member has left. The session does not lead then, also if the
// answer to the join was lost.
func TestLateAhead(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		c := newClient(t, sharedEtcd(t).Addrs()[0])
		s, name := c.session(t), coordtest.Name(t)
		if lost {
			c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
				if !slices.ContainsFunc(r.Success, func(op *pb.RequestOp) bool { return op.GetRequestPut() != nil }) {
					return send()
				}
				c.meter.steps(nil)
				return errors.Join(send(), status.Error(codes.Unavailable, "the answer is lost"))
			})
		}
		m := join(t, s, name, "x")
		read, left := make(chan struct{}), make(chan struct{})
		c.meter.steps(func(_ *pb.TxnRequest, send func() error) error {
			c.meter.steps(nil)
			defer func() {
				close(read)
				<-left
			}()
			return send()
		})
		looked := make(chan error)
		go func() {
			_, err := s.Ahead(t.Context(), m)
			looked <- err
		}()
		<-read
		if err := s.Leave(t.Context(), m); err != nil {
			t.Error(err)
		}
		close(left)
		if err := <-looked; err != nil {
			t.Error(err)
		}
		if etcd.Leads(s) {
			t.Errorf("answer to the join lost: %t: the session leads by a member that has left", lost)
		}
	}
}

// TestLeaveBeforeProof has a member leave while it waits for the proof without which it may not lead. Then the session does not lead:
// nobody would ask for the next proof, and it would end.
func TestLeaveBeforeProof(t *testing.T) {
	t.Parallel()
	c := newClient(t, sharedEtcd(t).Addrs()[0])
	s := c.session(t)
	m := join(t, s, coordtest.Name(t), "x")
	asked, left := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c.meter.unlisted.Store(true) // a transaction asks for the proof
	c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
		if len(r.Success) == 1 && r.Success[0].GetRequestTxn() != nil {
			once.Do(func() { close(asked) })
			<-left
		}
		return send()
	})
	etcd.Unprove(s)
	looked := make(chan error)
	go func() {
		_, err := s.Ahead(t.Context(), m)
		looked <- err
	}()
	<-asked
	if err := s.Leave(t.Context(), m); err != nil {
		t.Error(err)
	}
	close(left)
	if err := <-looked; err != nil {
		t.Error(err)
	}
	if etcd.Leads(s) {
		t.Error("the session leads by a member that has left")
	}
}

// TestGhostThatMayNotBeRemoved loses the answer to a join, and takes the right to write away. What may stand nobody can remove, so the
// session ends, and it goes.
func TestGhostThatMayNotBeRemoved(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	c := newClient(t, addr)
	s, name := c.session(t), coordtest.Name(t)
	made := false
	c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
		writes := slices.ContainsFunc(r.Success, func(op *pb.RequestOp) bool {
			put, del := op.GetRequestPut().GetKey(), op.GetRequestDeleteRange().GetKey()
			return bytes.HasPrefix(put, []byte(name+"/")) || bytes.HasPrefix(del, []byte(name+"/"))
		})
		switch {
		case !writes:
			return send()
		case made:
			return rpctypes.ErrGRPCPermissionDenied
		}
		made = true
		return errors.Join(send(), status.Error(codes.Unavailable, "the answer is lost"))
	})
	if j, err := s.Join(t.Context(), name, "x", ""); !errors.Is(err, backend.ErrDenied) && !errors.Is(err, backend.ErrSessionEnded) {
		t.Fatalf("Join: %+v, %v", j, err)
	}
	select {
	case <-s.Done():
	case <-within(t, time.Minute).Done():
		t.Fatal("the session lives on")
	}
	if err := s.Err(); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("the session has ended because of %v", err)
	}
	if err := c.Backend.Close(); err != nil {
		t.Error(err)
	}
	if left := keys(t, admin(t, addr), name+"/"); len(left) > 0 {
		t.Errorf("%q stand", left)
	}
}
