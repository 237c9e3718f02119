package etcd_test

import (
	"errors"
	"testing"

	"github.com/succession-dev/succession/backend"
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
