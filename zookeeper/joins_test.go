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
	s := session(t, open(t, zookeeper.Options{TTL: 15 * time.Second, Dialer: c.Dial}, c.Addr()))
	rig.ShortTries(t, c.Proxy(), s, session(t, open(t, zookeeper.Options{}, server(t))), "e")
}
