package etcd_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/internal/rig/linear"
)

// suite is the prefix of the keys that the conformance suite uses.
const suite = "suite/"

// TestConformance runs every rule on an etcd of its own, each client behind a proxy
// of its own. It is not parallel to the tests of the driver, which would disturb what it measures.
func TestConformance(t *testing.T) {
	conformance.Run(t, one(t))
}

// TestHistories has histories of records, items and locks fit one order.
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
	server := coordtest.NewEtcd(t, nil)
	h := harness(t, server, "etcd")
	h.Faults.Restart = server.Restart
	h.Faults.Pause = func(context.Context) (func(), error) { return pause(t, server.Servers()) }
	h.Lacks[conformance.Cluster] = "there is one server"
	h.Complete = true
	return h
}

// TestConformanceThree runs the rules for three servers. The clients are spread over
// them. Restart restarts etcd's leader, and all servers, in turns. Pause takes the quorum
// away, etcd's leader with it, or stops all servers, in turns.
func TestConformanceThree(t *testing.T) {
	lane.All(t)
	conformance.Run(t, three(t))
}

// three is the harness of three servers.
func three(t *testing.T) conformance.Harness {
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3, Links: true})
	h := harness(t, cluster, "etcd, three servers")
	h.Complete = true
	var opened, restarts, pauses atomic.Int64
	h.Open = func(context.Context) (backend.Backend, error) {
		return openSuite(cluster.Addrs()[opened.Add(1)%3])
	}
	h.Faults.Restart = func(ctx context.Context) error {
		if restarts.Add(1)%2 == 0 {
			return cluster.Restart(ctx)
		}
		leads, err := cluster.LeaderAfter(ctx, nil)
		if err != nil {
			return err
		}
		err = leads.Restart(ctx)
		for _, s := range cluster.Servers() {
			err = errors.Join(err, s.Ready(ctx))
		}
		return err
	}
	h.Faults.Pause = func(ctx context.Context) (func(), error) {
		if pauses.Add(1)%2 == 0 {
			return pause(t, cluster.Servers())
		}
		leads, err := cluster.LeaderAfter(ctx, nil)
		if err == nil && leads == cluster.Servers()[0] {
			err = transfer(ctx, t, cluster, 1)
		}
		if err != nil {
			return nil, err
		}
		return pause(t, cluster.Servers()[1:])
	}
	h.Faults.Cluster = rig.Cluster(&cluster.Cluster, urlOf(cluster.Addrs()...), func(b backend.Backend) string { return b.(*client).rig.Server() })
	return h
}

// harness returns a harness whose clients use the first server. It has all faults but
// those of servers.
func harness(t *testing.T, server *coordtest.Etcd, name string) conformance.Harness {
	operator, own := rig.OperatorOf(t, urlOf(server.Addrs()...)), admin(t, server.Addrs()...)
	h := conformance.Harness{
		Name:      name,
		TTL:       ttl,
		Reference: rig.Through(len(server.Addrs()), etcdrig.Reference(t)),
		// The server looks for expired leases every 500 ms (server/lease/lessor.go).
		Slack:   500 * time.Millisecond,
		Latency: 4 * time.Second,
		Open:    func(context.Context) (backend.Backend, error) { return openSuite(server.Addrs()[0]) },
		Faults: conformance.Faults{
			Remove:  operator.Remove,
			Drop:    operator.Drop,
			Rewind:  server.Backup,
			Compact: func(ctx context.Context) error { return etcdrig.Compact(ctx, own) },
			Reset:   server.Wipe,
			Process: rig.Process(urlOf(server.Addrs()[0])),
		},
		Costs: map[string]int64{"G5.handover": 2, "G5.rest": 7, "Lock.cost": 2, "Queue.cost": 4, "Queue.put": 1},
		Lacks: map[conformance.Fault]string{
			conformance.Promote:       "what it acknowledges is on a quorum of servers",
			conformance.PromoteBeside: "what it acknowledges is on a quorum of servers",
			conformance.Clock:         "etcd measures leases by the monotonic clock (server/lease/lease.go), which setting the time does not move",
		},
	}
	rig.Clients(&h.Faults, func(b backend.Backend) []rig.Client { return []rig.Client{b.(*client).rig} })
	return h
}

// urlOf returns the URL of the suite's clients of these servers.
func urlOf(addrs ...string) string {
	return "etcd://" + strings.Join(addrs, ",") + "/" + suite + "?ttl=" + ttl.String()
}

// openSuite returns a client of the server at addr for the suite, and nil if there is an
// error.
func openSuite(addr string) (backend.Backend, error) {
	c, err := open(addr, &etcd.Options{TTL: ttl, Prefix: suite})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// pause pauses the servers, until resume is called.
func pause(t *testing.T, servers []*coordtest.Server) (resume func(), err error) {
	for _, s := range servers {
		err = errors.Join(err, s.Pause())
	}
	return func() {
		for _, s := range servers {
			if err := s.Resume(); err != nil {
				t.Error(err)
			}
		}
	}, err
}

// leader returns the index of the server that is etcd's leader, as soon as there is one.
func leader(t *testing.T, cluster *coordtest.Etcd) int {
	t.Helper()
	s, err := cluster.LeaderAfter(within(t, time.Minute), nil)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Index(cluster.Servers(), s)
}

// transfer makes a server etcd's leader.
func transfer(ctx context.Context, t *testing.T, cluster *coordtest.Etcd, to int) error {
	target, err := admin(t, cluster.Addrs()[to]).Status(ctx, cluster.Addrs()[to])
	if err != nil {
		return err
	}
	leads, err := cluster.LeaderAfter(ctx, nil)
	if err != nil {
		return err
	}
	_, err = admin(t, leads.Addr()).MoveLeader(ctx, target.Header.MemberId)
	return err
}

// The faults of writes are what they say.
func TestFaultsOfWrites(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	c := newClient(t, addr)
	rig.CheckWrites(t, c.rig, c.session(t), newClient(t, addr).session(t), coordtest.Name(t), true)
}
