package consul_test

import (
	"context"
	"errors"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/consulrig"
	"github.com/succession-dev/succession/internal/rig/lane"
)

// patient is twice Consul's shortest times, so that a busy machine does not depose a
// leader of the servers. Sessions as short as these do not outlive that.
const patient = "performance{raft_multiplier=2}"

// TestConformanceThree runs the suite on three servers. Faults hit one server, or the
// majority. Clients talk to followers, which forward the requests.
func TestConformanceThree(t *testing.T) {
	lane.All(t)
	harness := three(t)
	h := harness(t)
	h.Reference = rig.Through(3, consulrig.Reference(t))
	h.Wrap = func(t *testing.T, rule func(*testing.T, conformance.Harness)) { rule(t, harness(t)) }
	conformance.Run(t, h)
}

// three is [one] with three servers.
func three(t *testing.T) func(*testing.T) conformance.Harness {
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Nodes: 3, Links: true, Config: []string{manyConnections, patient}})
	admin := consulrig.Admin(t, c.Addrs()[0])
	return func(t *testing.T) conformance.Harness {
		f := newFollowers(newClients(t, c, admin))
		h := f.harness()
		h.Faults.Restart = f.restart
		h.Faults.Pause = f.pause
		h.Complete = true
		h.Lacks[conformance.Failover] = "a client of Consul knows one address; TestSilentAgentBehindAName has several servers behind a name"
		h.Faults.Cluster = rig.Cluster(&c.Cluster, "", func(b backend.Backend) string { return f.of(b).Server().Addr() })
		return h
	}
}

// followers are the clients that one rule has opened, each on a follower.
type followers struct {
	*clients
	opened int // how many clients; guarded by clients.mu
	faults int // how many restarts; of one goroutine
}

func newFollowers(cs *clients) *followers {
	f := &followers{clients: cs}
	cs.server = f.next
	return f
}

func (f *followers) harness() conformance.Harness {
	h := f.clients.harness()
	h.Name = "consul 1.22, three servers"
	return h
}

// next returns one follower after the other.
func (f *followers) next() (*coordtest.Server, error) {
	leader, err := f.consul.Leader(f.t.Context())
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		f.opened++
		if s := f.consul.Servers()[f.opened%3]; s != leader {
			return s, nil
		}
	}
}

// restart makes one server fail, each time in another way, and returns when all serve.
func (f *followers) restart(ctx context.Context) error {
	leader, err := f.consul.Leader(ctx)
	if err != nil {
		return err
	}
	defer func() { f.faults++ }()
	switch f.faults % 3 {
	case 0: // the leader crashes
		leader.Kill()
		_, err = f.consul.LeaderAfter(ctx, leader)
		err = errors.Join(err, leader.Start())
	case 1: // the leader stands still, and takes itself for the leader when it goes on
		if err = leader.Pause(); err == nil {
			_, err = f.consul.LeaderAfter(ctx, leader)
			err = errors.Join(err, leader.Resume())
		}
	case 2: // the server of a client crashes
		for _, s := range f.consul.Servers() {
			if s != leader {
				err = s.Restart(ctx)
				break
			}
		}
	}
	for _, s := range f.consul.Servers() {
		err = errors.Join(err, s.Ready(ctx))
	}
	return err
}

// pause pauses the servers that clients talk to. With two clients, these are the
// majority.
func (f *followers) pause(context.Context) (resume func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	used := make(map[*coordtest.Server]bool)
	for _, c := range f.all {
		used[c.Server()] = true
	}
	for s := range used {
		err = errors.Join(err, s.Pause())
	}
	return func() {
		for s := range used {
			if err := s.Resume(); err != nil {
				f.t.Error(err)
			}
		}
	}, err
}
