package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
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

// TestGhostThatMayNotBeRemoved has a member that nobody wants be made, as the answer to its join is lost or the caller goes, and denies to
// remove it. Nobody can, so the session ends when that has lasted for a TTL, and the member goes. If the denial passes before, the member is
// removed, and the session lives on.
func TestGhostThatMayNotBeRemoved(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		for _, passes := range []bool{false, true} {
			t.Run(fmt.Sprintf("lost %t, passes %t", lost, passes), func(t *testing.T) {
				t.Parallel()
				addr := sharedEtcd(t).Addrs()[0]
				c := newClientOf(t, addr, 2*time.Second)
				s, name := c.session(t), coordtest.Name(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var made atomic.Bool
				var denials atomic.Int32
				denied := make(chan struct{})
				c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
					writes := slices.ContainsFunc(r.Success, func(op *pb.RequestOp) bool {
						put, del := op.GetRequestPut().GetKey(), op.GetRequestDeleteRange().GetKey()
						return bytes.HasPrefix(put, []byte(name+"/")) || bytes.HasPrefix(del, []byte(name+"/"))
					})
					switch {
					case !writes:
						return send()
					case made.Swap(true):
						switch n := denials.Add(1); {
						case n == 3:
							close(denied) // the join, or the leave, and the ghost were
						case n > 3 && passes:
							return send()
						}
						return rpctypes.ErrGRPCPermissionDenied
					case lost:
						return errors.Join(send(), status.Error(codes.Unavailable, "the answer is lost"))
					}
					defer cancel()
					return send()
				})
				watch, begun := calm.Start(t), time.Now()
				if j, err := s.Join(ctx, name, "x", ""); !errors.Is(err, backend.ErrDenied) && !errors.Is(err, context.Canceled) {
					t.Fatalf("Join: %+v, %v", j, err)
				}
				select {
				case <-denied:
				case <-s.Done():
				}
				operator := admin(t, addr)
				if passes {
					for ctx := within(t, time.Minute); s.Err() == nil && len(keys(t, operator, name+"/")) > 0 && ctx.Err() == nil; {
						time.Sleep(time.Millisecond)
					}
					if err := s.Err(); err != nil && !watch.NotJudged(s.TTL()/4, "%v", err) {
						t.Errorf("the session has ended because of %v", err)
					}
					if left := keys(t, operator, name+"/"); len(left) > 0 {
						t.Errorf("%q stand", left)
					}
					return
				}
				select {
				case <-s.Done():
					watch.Within(2*s.TTL(), "until the session ended it")
				case <-within(t, time.Minute).Done():
					t.Fatal("the session lives on")
				}
				if err := s.Err(); !strings.Contains(fmt.Sprint(err), backend.ErrDenied.Error()) {
					if !watch.NotJudged(s.TTL()/4, "%v", err) {
						t.Errorf("the session has ended because of %v", err)
					}
				} else if lived := time.Since(begun); lived < s.TTL() {
					t.Errorf("the session has ended after %v", lived)
				}
				if err := c.Backend.Close(); err != nil {
					t.Error(err)
				}
				if left := keys(t, operator, name+"/"); len(left) > 0 {
					t.Errorf("%q stand", left)
				}
			})
		}
	}
}
