package coordtest_test

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A server that is cut off from the others is deposed if it led, and can do nothing
// until it is healed; its clients reach it all the time.
func TestIsolate(t *testing.T) {
	put := func(t *testing.T, method, addr, path, body string) bool {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		status, _, err := request(ctx, method, addr, path, body)
		return err == nil && status == http.StatusOK
	}
	tests := []struct {
		name  string
		start func(t *testing.T) *coordtest.Cluster
		write func(t *testing.T, addr string) bool
		hears func(t *testing.T, addr string) bool // the server answers, whatever it says
	}{
		{
			"etcd",
			func(t *testing.T) *coordtest.Cluster {
				return &coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3, Links: true}).Cluster
			},
			func(t *testing.T, addr string) bool {
				return put(t, "POST", addr, "/v3/kv/put", `{"key":"YQ==","value":"YQ=="}`)
			},
			func(t *testing.T, addr string) bool { return put(t, "POST", addr, "/v3/maintenance/status", "{}") },
		},
		{
			"Consul",
			func(t *testing.T) *coordtest.Cluster {
				return &coordtest.NewConsul(t, &coordtest.ConsulOptions{Nodes: 3, Links: true}).Cluster
			},
			func(t *testing.T, addr string) bool { return put(t, "PUT", addr, "/v1/kv/x", "1") },
			func(t *testing.T, addr string) bool { return put(t, "GET", addr, "/v1/agent/self", "") },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.start(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			old, err := c.LeaderAfter(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "the leader takes a write", func(context.Context) bool { return tt.write(t, old.Addr()) })
			if err := c.Isolate(old); err != nil {
				t.Fatal(err)
			}
			now, err := c.LeaderAfter(ctx, old)
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "the new leader takes a write", func(context.Context) bool { return tt.write(t, now.Addr()) })
			if tt.write(t, old.Addr()) {
				t.Error("a server without the others has taken a write")
			}
			eventually(t, "its clients reach the server", func(context.Context) bool { return tt.hears(t, old.Addr()) })
			healed := time.Now()
			c.Heal()
			eventually(t, "the healed server takes a write", func(context.Context) bool { return tt.write(t, old.Addr()) })
			t.Logf("the healed server took a write after %v", time.Since(healed).Round(time.Millisecond))
		})
	}
}

func TestIsolateNeedsLinks(t *testing.T) {
	z := coordtest.SharedZooKeeper(t)
	if err := z.Isolate(z.Servers()[0]); err == nil {
		t.Error("Isolate without links succeeded")
	}
}

// The network is gone with the coordinator: no descriptor, no namespace, no device.
func TestStopRemovesNetwork(t *testing.T) {
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	checkLeaks(t)
	before := open()
	for range 3 {
		e, err := coordtest.StartEtcd(t.Context(), &coordtest.EtcdOptions{Nodes: 3, Links: true})
		if err != nil {
			t.Fatal(err)
		}
		e.Stop()
	}
	if now := open(); now > before+2 { // what the first start opens once
		t.Errorf("%d files are open, %d were before", now, before)
	}
}
