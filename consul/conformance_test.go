package consul_test

import (
	"context"
	"os/exec"
	"sync"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/consulrig"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/internal/rig/linear"
)

// manyConnections lets all clients of the suite wait at one server. They share an
// address, and cancelled queries hold their connections for a while.
const manyConnections = "limits{http_max_conns_per_client=4000}"

// TestConformance runs every rule on a server of its own, which the rules may
// restart.
// It is not parallel to the tests of the driver, which would disturb what it measures.
func TestConformance(t *testing.T) {
	harness := one(t)
	h := harness(t)
	h.Reference = consulrig.Reference(t)
	h.Wrap = func(t *testing.T, rule func(*testing.T, conformance.Harness)) { rule(t, harness(t)) }
	conformance.Run(t, h)
}

// TestHistories has histories of records, items and locks fit one order.
func TestHistories(t *testing.T) {
	for name, start := range map[string]func(*testing.T) func(*testing.T) conformance.Harness{"one": one, "three": three} {
		t.Run(name, func(t *testing.T) {
			if name == "three" {
				lane.All(t)
			}
			t.Parallel()
			linear.Run(t, start(t)(t))
		})
	}
}

// one starts one server, and returns what makes a harness of it for a test.
func one(t *testing.T) func(*testing.T) conformance.Harness {
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Durable: true, Config: []string{manyConnections}})
	admin := consulrig.Admin(t, c.Addrs()[0])
	return func(t *testing.T) conformance.Harness {
		h := newClients(t, c, admin).harness()
		h.Lacks[conformance.Cluster] = "there is one server"
		h.Complete = true
		return h
	}
}

// clients are the clients that one rule has opened, each behind a proxy of its own.
type clients struct {
	t      *testing.T
	consul *coordtest.Consul
	admin  *api.Client
	server func() (*coordtest.Server, error) // for the next client

	mu  sync.Mutex
	all map[backend.Backend]*consulrig.Client
}

func newClients(t *testing.T, c *coordtest.Consul, admin *api.Client) *clients {
	return &clients{
		t: t, consul: c, admin: admin,
		server: func() (*coordtest.Server, error) { return c.Servers()[0], nil },
		all:    make(map[backend.Backend]*consulrig.Client),
	}
}

func (c *clients) harness() conformance.Harness {
	operator := rig.OperatorOf(c.t, "consul://"+c.consul.Addrs()[0])
	h := conformance.Harness{
		Name:  "consul 1.22",
		Open:  func(context.Context) (backend.Backend, error) { return c.open() },
		TTL:   ttl,
		Slack: ttl + ttl/4, // Consul ends a session after twice its TTL
		Faults: conformance.Faults{
			Process: c.process,
			Restart: func(ctx context.Context) error { return c.consul.Restart(ctx) },
			Pause:   func(context.Context) (func(), error) { return c.resume, c.consul.Pause() },
			Remove:  operator.Remove,
			Drop:    operator.Drop,
			Reset:   func(ctx context.Context) error { return c.consul.Wipe(ctx) },
			Rewind:  func(ctx context.Context) (func(context.Context) error, error) { return consulrig.Backup(ctx, c.admin) },
		},
		Costs: map[string]int64{"G5.handover": 2, "Lock.cost": 3, "Queue.cost": 5, "Queue.put": 1},
		Lacks: map[conformance.Fault]string{
			conformance.Compact:       "Consul keeps no history for those who watch: a blocking query returns the present state",
			conformance.Promote:       "what it acknowledges is on a quorum of servers",
			conformance.PromoteBeside: "what it acknowledges is on a quorum of servers",
			conformance.Clock:         "Consul's sessions end by timers (agent/consul/session_timers.go), which setting the time does not move",
		},
	}
	rig.Clients(&h.Faults, func(b backend.Backend) []rig.Client { return []rig.Client{c.of(b)} })
	return h
}

func (c *clients) of(b backend.Backend) *consulrig.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[b]
}

func (c *clients) open() (backend.Backend, error) {
	s, err := c.server()
	if err != nil {
		return nil, err
	}
	r, err := consulrig.Start(s)
	if err != nil {
		return nil, err
	}
	c.t.Cleanup(r.Close)
	b, err := consul.New(r.Config(), &consul.Options{TTL: ttl})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[b] = r
	return b, nil
}

func (c *clients) resume() {
	if err := c.consul.Resume(); err != nil {
		c.t.Error(err)
	}
}

// process runs a candidate at the server that the next client would get.
func (c *clients) process(election, id string) *exec.Cmd {
	s, err := c.server()
	if err != nil {
		return &exec.Cmd{Err: err} // of Start
	}
	return rig.Process("consul://"+s.Addr()+"?ttl="+ttl.String())(election, id)
}
