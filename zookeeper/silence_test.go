package zookeeper_test

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/zookeeper"
)

// A leader's server goes silent, and two others of the ensemble do not. The session goes to one
// of them, and its deadline never comes near.
func TestSilenceOfOneServerOfThree(t *testing.T) {
	t.Parallel()
	z := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{Nodes: 3})
	follower, err := z.Follower(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var addrs []string
	var others []*proxy.Proxy
	front := coordtest.NewProxy(t, follower.Addr())
	for _, s := range z.Servers() {
		p := front
		if s != follower {
			p = coordtest.NewProxy(t, s.Addr())
			others = append(others, p)
		}
		addrs = append(addrs, p.Addr())
	}
	for _, test := range []struct {
		name  string
		fault func() error
		heal  func() error
	}{
		{"paused", follower.Pause, follower.Resume},
		{"cut", func() error { front.Cut(); return nil }, func() error { front.Heal(); return nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, p := range others {
				p.Refuse()
			}
			watch := calm.Start(t)
			s := session(t, open(t, zookeeper.Options{TTL: 4 * time.Second}, addrs...))
			m := join(t, s, "e", "")
			if p := ahead(t, s, m); !p.First {
				t.Fatalf("%+v", p)
			}
			time.Sleep(s.TTL() / 2) // some heartbeats
			for _, p := range others {
				p.Heal()
			}
			if err := test.fault(); err != nil {
				t.Fatal(err)
			}
			least := time.Hour
			for begin := time.Now(); time.Since(begin) < s.TTL(); time.Sleep(5 * time.Millisecond) {
				least = min(least, time.Until(s.Deadline()))
			}
			// Package elect ends a term a tenth of the session before the deadline.
			if err := s.Err(); (err != nil || least < s.TTL()/10) && !watch.NotJudged(s.TTL()/4, "only %v were left until the deadline", least) {
				t.Errorf("only %v were left until the deadline: %v", least, err)
			}
			t.Logf("at least %v were left until the deadline", least)
			if err := test.heal(); err != nil {
				t.Fatal(err)
			}
			if err := follower.Ready(within(t, time.Minute)); err != nil {
				t.Fatal(err)
			}
		})
	}
}
