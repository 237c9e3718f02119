package consul_test

import (
	"sync"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/consulrig"
)

func TestShortTries(t *testing.T) {
	t.Parallel()
	addr := server(t)
	p := coordtest.NewProxy(t, addr)
	rig.ShortTries(t, p, session(t, p.Addr(), nil), session(t, addr, nil), coordtest.Name(t))
}

func TestManyLeave(t *testing.T) {
	t.Parallel()
	agent := coordtest.NewConsul(t, nil)
	c, err := consulrig.Start(agent.Servers()[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	b := openWith(t, c.Config(), nil)
	rig.ManyLeave(t, c, sessionOf(t, b), session(t, agent.Addrs()[0], nil), coordtest.Name(t), 100)
}

// The faults of writes are what they say.
func TestFaultsOfWrites(t *testing.T) {
	t.Parallel()
	agent := coordtest.NewConsul(t, nil)
	c, err := consulrig.Start(agent.Servers()[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	b := openWith(t, c.Config(), &consul.Options{TTL: 3 * ttl})
	rig.CheckWrites(t, c, sessionOf(t, b), session(t, agent.Addrs()[0], nil), coordtest.Name(t), true)
}

// Many that have joined one line ask at once where they stand: most share readings of the line.
func TestLookTogether(t *testing.T) {
	t.Parallel()
	const n = 300
	agent := coordtest.NewConsul(t, nil)
	c, err := consulrig.Start(agent.Servers()[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	b := openWith(t, c.Config(), nil)
	s, name := sessionOf(t, b), coordtest.Name(t)
	var members []backend.Member
	for range n {
		members = append(members, join(t, s, name, ""))
	}
	sent := c.Requests()
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			p, err := s.Ahead(t.Context(), m)
			if err != nil || p.First != (i == 0) || i > 0 && p.Ahead.Position != members[i-1].Position {
				t.Errorf("number %d stands at %+v, %v", i, p, err)
			}
		})
	}
	all.Wait()
	sent = c.Requests() - sent
	t.Logf("%d looks took %d requests", n, sent)
	if sent > n/2 {
		t.Errorf("%d looks took %d requests", n, sent)
	}
}
