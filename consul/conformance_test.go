package consul_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/coordtest"
	"github.com/succession-dev/succession/internal/coordtest/rig"
)

// manyConnections lets all clients of the suite, which share an address, wait at one
// server: cancelled queries hold their connections for a while.
const manyConnections = "limits{http_max_conns_per_client=4000}"

// TestConformance runs every rule on a server of its own, which the rules may
// restart.
func TestConformance(t *testing.T) {
	t.Parallel()
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Durable: true, Config: []string{manyConnections}})
	admin := unlabelledAdmin(t, c)
	harness := func(t *testing.T) conformance.Harness {
		h := newClients(t, c, admin).harness()
		h.Complete = true
		h.Lacks[conformance.Cluster] = "there is one server"
		h.Lacks[conformance.Isolate] = "there is one server"
		return h
	}
	h := harness(t)
	h.Wrap = func(t *testing.T, rule func(*testing.T, conformance.Harness)) { rule(t, harness(t)) }
	conformance.Run(t, h)
}

// clients are those that one rule has opened, each behind a proxy of its own.
type clients struct {
	t      *testing.T
	consul *coordtest.Consul
	admin  *api.Client
	server func() (*coordtest.Server, error) // for the next client

	mu  sync.Mutex
	all map[backend.Backend]*client
}

func newClients(t *testing.T, c *coordtest.Consul, admin *api.Client) *clients {
	return &clients{
		t: t, consul: c, admin: admin,
		server: func() (*coordtest.Server, error) { return c.Servers()[0], nil },
		all:    make(map[backend.Backend]*client),
	}
}

func (c *clients) harness() conformance.Harness {
	h := conformance.Harness{
		Name:  "consul 1.22",
		Open:  func(context.Context) (backend.Backend, error) { return c.open() },
		TTL:   ttl,
		Slack: ttl + ttl/4, // Consul ends a session after twice its TTL
		Faults: conformance.Faults{
			Expire:     c.expire,
			LoseAnswer: c.loseAnswer,
			Process:    c.process,
			Restart:    func(ctx context.Context) error { return c.consul.Restart(ctx) },
			Pause:      func(context.Context) (func(), error) { return c.resume, c.consul.Pause() },
			Remove:     c.remove,
			Drop:       c.drop,
			Reset:      func(ctx context.Context) error { return c.consul.Wipe(ctx) },
			Rewind:     c.rewind,
			Requests:   func(b backend.Backend) int64 { return c.of(b).requests.Load() },
		},
		Lacks: map[conformance.Fault]string{
			conformance.Compact: "Consul keeps no history for those who watch: a blocking query returns the present state",
			conformance.Clock:   "Consul's sessions end by timers (agent/consul/session_timers.go), which setting the time does not move",
		},
	}
	h.Faults.Network(func(b backend.Backend) []*proxy.Proxy { return []*proxy.Proxy{c.of(b).proxy} })
	return h
}

type client struct {
	server   *coordtest.Server
	proxy    *proxy.Proxy
	requests *atomic.Int64
}

func (c *clients) of(b backend.Backend) *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[b]
}

func (c *clients) open() (backend.Backend, error) {
	s, err := c.server()
	if err != nil {
		return nil, err
	}
	p, err := coordtest.StartProxy(s.Addr())
	if err != nil {
		return nil, err
	}
	c.t.Cleanup(p.Close)
	b, err := consul.New(&api.Config{Address: p.Addr(), Transport: &http.Transport{DialContext: rig.DialUnlabelled}}, &consul.Options{TTL: ttl})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[b] = &client{s, p, consul.CountRequests(b)}
	return b, nil
}

// unlabelledAdmin returns a client of Consul's own; see [rig.DialUnlabelled].
func unlabelledAdmin(t *testing.T, c *coordtest.Consul) *api.Client {
	t.Helper()
	transport := newTransport(t)
	transport.DialContext = rig.DialUnlabelled
	admin, err := api.NewClient(&api.Config{Address: c.Addrs()[0], Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// loseAnswer loses the answer to the next write; reads are transactions with a
// parameter.
func (c *clients) loseAnswer(b backend.Backend) {
	c.of(b).proxy.LoseAnswers(func(request []byte) bool { return bytes.HasPrefix(request, []byte("PUT /v1/txn HTTP")) })
}

func (c *clients) resume() {
	if err := c.consul.Resume(); err != nil {
		c.t.Error(err)
	}
}

// expire destroys the session that the client's backend has.
func (c *clients) expire(ctx context.Context, b backend.Backend) error {
	s, err := b.Session(ctx)
	if err != nil {
		return err
	}
	_, err = c.admin.Session().Destroy(consul.SessionID(s), (&api.WriteOptions{}).WithContext(ctx))
	return err
}

// process runs a candidate at the server that the next client would get.
func (c *clients) process(election, id string) *exec.Cmd {
	s, err := c.server()
	if err != nil {
		return &exec.Cmd{Err: err} // of Start
	}
	return rig.Process("consul://"+s.Addr()+"?ttl="+ttl.String())(election, id)
}

// rewind takes a snapshot.
func (c *clients) rewind(ctx context.Context) (back func(context.Context) error, err error) {
	r, _, err := c.admin.Snapshot().Save((&api.QueryOptions{}).WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	snapshot, err := io.ReadAll(r)
	return func(ctx context.Context) error {
		return c.admin.Snapshot().Restore((&api.WriteOptions{}).WithContext(ctx), bytes.NewReader(snapshot))
	}, err
}

func (c *clients) remove(ctx context.Context, m backend.Member) error {
	_, err := c.admin.KV().Delete(m.Line+"/"+m.Key, (&api.WriteOptions{}).WithContext(ctx))
	return err
}

func (c *clients) drop(ctx context.Context, line string) error {
	ok, _, _, err := c.admin.KV().Txn(api.KVTxnOps{
		{Verb: api.KVDelete, Key: line},
		{Verb: api.KVDeleteTree, Key: line + "/"},
	}, (&api.QueryOptions{}).WithContext(ctx))
	if err == nil && !ok {
		err = fmt.Errorf("the election %s could not be deleted", line)
	}
	return err
}
