package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/zookeeperrig"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/internal/rig/linear"
	"github.com/succession-dev/succession/zookeeper"
)

// A client is a backend with a proxy of its own before the server.
type client struct {
	*zookeeper.Backend
	rig *zookeeperrig.Client
}

func (c *client) Close() error {
	err := c.Backend.Close()
	c.rig.Close()
	return err
}

// tick is the servers' tick: coordtest's default.
const tick = 200 * time.Millisecond

// root is the chroot of the suite's backends.
const root = "/suite"

// One server: the whole suite. It is not parallel to the tests of the driver, which would disturb what it measures.
func TestConformance(t *testing.T) {
	conformance.Run(t, one(t))
}

// Histories of records, items and locks fit one order.
func TestHistories(t *testing.T) {
	for name, harness := range map[string]func(*testing.T) conformance.Harness{"one": one, "three": three} {
		t.Run(name, func(t *testing.T) {
			if name == "three" {
				lane.All(t)
			}
			t.Parallel()
			linear.Run(t, harness(t))
		})
	}
}

// one is the harness of one server.
func one(t *testing.T) conformance.Harness {
	z := servers(t, 1)
	h := harness(t, z, conformance.Harness{
		Name:  "zookeeper",
		TTL:   2 * time.Second,
		Slack: 5 * tick / 2,
	})
	h.Faults.Restart = z.Restart
	h.Faults.Rewind = z.Backup
	h.Lacks[conformance.Cluster] = "there is one server"
	return h
}

// Three servers, with the clients spread over them: what one has written, another
// reads elsewhere. A restart is that of the ensemble's leader, and makes another
// server the leader.
func TestConformanceThree(t *testing.T) {
	lane.All(t)
	conformance.Run(t, three(t))
}

// three is the harness of three servers.
func three(t *testing.T) conformance.Harness {
	z := servers(t, 3)
	h := harness(t, z, conformance.Harness{
		Name: "zookeeper-ensemble",
		TTL:  3 * time.Second,
		// Besides, half a second without a leader.
		Slack: 5*tick/2 + 500*time.Millisecond,
	})
	h.Faults.Restart = func(ctx context.Context) error {
		leader, err := z.Leader(ctx)
		if err != nil {
			return err
		}
		return leader.Restart(ctx)
	}
	h.Faults.Pause = func(ctx context.Context) (func(), error) { return pauseEnsemble(ctx, t, z) }
	h.Lacks[conformance.Rewind] = "the log index goes on over the restoration of an ensemble: each start of it begins a new epoch, which is the upper half of the index"
	h.Faults.Cluster = rig.Cluster(&z.Cluster, urlOf(z, h.TTL), func(b backend.Backend) string { return b.(*client).rig.Server() })
	return h
}

// pauseEnsemble pauses all servers. The one that leads goes on last, when the others have
// another leader: one that went on with its old followers could commit nothing any more;
// see "a standstill of the ensemble's own" in docs/zookeeper.md.
func pauseEnsemble(ctx context.Context, t *testing.T, z *coordtest.ZooKeeper) (resume func(), err error) {
	leader, err := z.Leader(ctx)
	if err != nil {
		return nil, err
	}
	return func() {
		var errs []error
		for _, s := range z.Servers() {
			if s != leader {
				errs = append(errs, s.Resume())
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_, err := z.LeaderAfter(ctx, leader)
		// Whether they serve again is for the rule to see, whose trial may be one of a busy machine.
		if err := errors.Join(append(errs, err, leader.Resume())...); err != nil {
			t.Log(err)
		}
	}, z.Pause()
}

// servers starts a ZooKeeper with all that the suite does to one.
func servers(t *testing.T, n int) *coordtest.ZooKeeper {
	t.Helper()
	return coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{
		Nodes: n, Links: n > 1, Tick: tick, Clock: true,
	})
}

// urlOf returns the URL of the suite's clients that know all servers.
func urlOf(z *coordtest.ZooKeeper, ttl time.Duration) string {
	return fmt.Sprintf("zookeeper://%s%s?ttl=%v", strings.Join(z.Addrs(), ","), root, ttl)
}

// harness fills in h what is the same for one server and for three.
func harness(t *testing.T, z *coordtest.ZooKeeper, h conformance.Harness) conformance.Harness {
	addrs := z.Addrs()
	operator := rig.OperatorOf(t, urlOf(z, h.TTL))
	h.Reference = rig.Through(len(addrs), zookeeperrig.Reference(t))
	var opened atomic.Int64
	h.Open = func(context.Context) (backend.Backend, error) {
		addr := addrs[int(opened.Add(1))%len(addrs)]
		r, err := zookeeperrig.Start(addr)
		if err != nil {
			return nil, err
		}
		c := &client{rig: r}
		c.Backend, err = zookeeper.New([]string{r.Addr()}, &zookeeper.Options{TTL: h.TTL, Prefix: root, Dialer: r.Dial})
		return c, err
	}
	h.Faults = conformance.Faults{
		Process: rig.Process(urlOf(z, h.TTL)),
		Pause: func(context.Context) (func(), error) {
			return func() { z.Resume() }, z.Pause()
		},
		Reset: z.Wipe,
		Clock: func(_ context.Context, shift time.Duration) (func(), error) {
			restore := func() {
				if err := z.SetClock(0); err != nil { // no server is asked: one that is late is no fault of the test
					t.Error(err)
				}
			}
			err := zookeeperrig.SetClock(z, shift)
			if err != nil {
				restore()
			}
			return restore, err
		},
		Remove: operator.Remove,
		Drop:   operator.Drop,
	}
	rig.Clients(&h.Faults, func(b backend.Backend) []rig.Client { return []rig.Client{b.(*client).rig} })
	h.Complete = true
	// A lock that is released at once, before the header is watched, takes two more than one that is held for a moment.
	h.Costs = map[string]int64{"G5.handover": 2, "G5.rest": 3, "Lock.cost": 6, "Queue.cost": 8, "Queue.put": 2}
	h.Lacks = map[conformance.Fault]string{
		conformance.Compact:       "ZooKeeper keeps no history for those who watch: a watch tells of the next change, and is set by a read",
		conformance.Promote:       "what it acknowledges is on a quorum of servers",
		conformance.PromoteBeside: "what it acknowledges is on a quorum of servers",
	}
	return h
}
