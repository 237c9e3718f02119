package zookeeper_test

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/zookeeperrig"
	"github.com/succession-dev/succession/zookeeper"
)

func TestShortTries(t *testing.T) {
	t.Parallel()
	c, err := zookeeperrig.Start(server(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := session(t, open(t, zookeeper.Options{Dialer: c.Dial}, c.Addr()))
	rig.ShortTries(t, c.Proxy(), s, session(t, open(t, zookeeper.Options{}, server(t))), "e")
}

func TestManyLeave(t *testing.T) {
	t.Parallel()
	c, err := zookeeperrig.Start(server(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := session(t, open(t, zookeeper.Options{Dialer: c.Dial}, c.Addr()))
	const reads = 1000 // of each member, on which there is no watch
	rig.ManyLeave(t, c, s, session(t, open(t, zookeeper.Options{}, server(t))), "e", reads+100)
}

// The faults of writes are what they say. The server takes nothing over a connection from which the client has moved its session.
func TestFaultsOfWrites(t *testing.T) {
	t.Parallel()
	c, err := zookeeperrig.Start(server(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := session(t, open(t, zookeeper.Options{TTL: 8 * time.Second, Dialer: c.Dial}, c.Addr()))
	rig.CheckWrites(t, c, s, session(t, open(t, zookeeper.Options{}, server(t))), "faults-of-writes", false)
}
