package etcd_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
)

// TestRefusedJoin has etcd refuse requests to join. What that leaves in doubt is cleared
// up at once, so that the next member gets the key of the first.
func TestRefusedJoin(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	operator := admin(t, addr)

	t.Run("no space, not done", func(t *testing.T) {
		c := newClient(t, addr)
		refusedThenJoins(t, c, func(_ *pb.TxnRequest, _ func() error) error { return rpctypes.ErrGRPCNoSpace })
	})

	t.Run("no space, done", func(t *testing.T) {
		c := newClient(t, addr)
		refusedThenJoins(t, c, func(_ *pb.TxnRequest, send func() error) error {
			return doneOutOfSpace(send)
		})
	})

	t.Run("no space, done, and in doubt", func(t *testing.T) {
		c := newClient(t, addr)
		s, name := c.session(t), coordtest.Name(t)
		var doubted atomic.Bool
		c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
			switch {
			case creates(r):
				return doneOutOfSpace(send)
			case etcdrig.Writes(r) && doubted.CompareAndSwap(false, true):
				return status.Error(codes.Unavailable, "the connection broke")
			}
			return send()
		})
		if m, err := s.Join(t.Context(), name, "x", ""); !errors.Is(err, backend.ErrUnavailable) {
			t.Fatalf("Join: %+v, %v; want ErrUnavailable", m, err)
		}
		empties(t, operator, name+"/")
		lateRequest(t, operator, s, name, keyOf(s))
		c.meter.steps(nil)
		if m := join(t, s, name, "x"); m.Key == keyOf(s) {
			t.Errorf("key %s was used again, although a request to delete it may be on its way", m.Key)
		}
	})

	for what, refusal := range map[string]error{
		"too many requests":       rpctypes.ErrGRPCRequestTooManyRequests,
		"the server is a learner": rpctypes.ErrGRPCNotSupportedForLearner,
		"the server is starting":  rpctypes.ErrGRPCNotCapable,
	} {
		t.Run(what, func(t *testing.T) {
			c := newClient(t, addr)
			s, name := c.session(t), coordtest.Name(t)
			var refusals atomic.Int64
			c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
				if creates(r) && refusals.Add(1) <= 3 {
					return refusal
				}
				return send()
			})
			for range 2 {
				m := join(t, s, name, "x")
				if m.Key != keyOf(s) {
					t.Errorf("the member's key is %s; want %s, as nothing was in doubt", m.Key, keyOf(s))
				}
				if err := s.Leave(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			if n := refusals.Load(); n <= 3 {
				t.Errorf("%d requests in all; want more than the 3 that were refused", n)
			}
		})
	}

	t.Run("too many requests, given up", func(t *testing.T) {
		c := newClient(t, addr)
		s, name := c.session(t), coordtest.Name(t)
		ctx, cancel := context.WithCancel(t.Context())
		c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
			if creates(r) {
				cancel()
				return rpctypes.ErrGRPCRequestTooManyRequests
			}
			return send()
		})
		if m, err := s.Join(ctx, name, "x", ""); !errors.Is(err, context.Canceled) {
			t.Errorf("Join: %+v, %v; want context.Canceled", m, err)
		}
		c.meter.steps(nil)
		for etcd.Reserved(s) > 0 && t.Context().Err() == nil { // the request goes on when its caller has gone
			time.Sleep(time.Millisecond)
		}
		if m := join(t, s, name, "x"); m.Key != keyOf(s) {
			t.Errorf("the member's key is %s; want %s, as nothing was in doubt", m.Key, keyOf(s))
		}
	})
}

// refusedThenJoins calls create in place of each request to create a member, so that Join
// fails, and then joins.
func refusedThenJoins(t *testing.T, c *client, create stepIn) {
	t.Helper()
	s, name := c.session(t), coordtest.Name(t)
	c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
		if creates(r) {
			return create(r, send)
		}
		return send()
	})
	for range 3 {
		if m, err := s.Join(t.Context(), name, "x", ""); !errors.Is(err, backend.ErrUnavailable) {
			t.Fatalf("Join: %+v, %v; want ErrUnavailable", m, err)
		}
		if got := keys(t, c.rig.Client, name+"/"); len(got) > 0 {
			t.Errorf("%q stands after Join has failed", got)
		}
	}
	c.meter.steps(nil)
	if m := join(t, s, name, "x"); m.Key != keyOf(s) {
		t.Errorf("the member's key is %s; want %s, as nothing was in doubt", m.Key, keyOf(s))
	}
}

// doneOutOfSpace is the answer to a request that has been done and has taken the last
// space.
func doneOutOfSpace(send func() error) error {
	if err := send(); err != nil {
		return err
	}
	return rpctypes.ErrGRPCNoSpace
}

// creates reports whether r creates a member.
func creates(r *pb.TxnRequest) bool { return len(r.Success) > 0 && r.Success[0].GetRequestPut() != nil }

// TestNoSpace fills a real etcd until it is out of space and refuses requests to join.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	c := newClient(t, coordtest.NewEtcd(t, nil).Addrs()[0])
	s, name := c.session(t), coordtest.Name(t)
	alarm := func(what pb.AlarmRequest_AlarmAction) {
		t.Helper()
		_, err := pb.NewMaintenanceClient(c.rig.Client.ActiveConnection()).Alarm(t.Context(), &pb.AlarmRequest{Action: what, Alarm: pb.AlarmType_NOSPACE})
		if err != nil {
			t.Fatal(err)
		}
	}
	alarm(pb.AlarmRequest_ACTIVATE)
	for range 3 {
		if m, err := s.Join(t.Context(), name, "x", ""); !errors.Is(err, backend.ErrUnavailable) || !errors.Is(err, rpctypes.ErrNoSpace) {
			t.Fatalf("Join: %+v, %v; want ErrUnavailable for want of space", m, err)
		}
	}
	alarm(pb.AlarmRequest_DEACTIVATE)
	if m := join(t, s, name, "x"); m.Key != keyOf(s) {
		t.Errorf("the member's key is %s; want %s, as nothing was in doubt", m.Key, keyOf(s))
	}
}
