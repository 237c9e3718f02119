//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/consul/api"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A coordinator is what the candidates of a run stand in line at, and what an operator
// does to it past the elections.
type coordinator struct {
	*coordtest.Cluster // nil for the kernel

	ttl time.Duration // of sessions; 0 where they have no time
	// crash is how long the members of a process that died stand at most.
	crash time.Duration
	// url returns the URL for the client at index i, who sees the servers at addrs.
	url func(i int, addrs []string) string
	// remove deletes a member.
	remove func(context.Context, backend.Member) error
	// end ends the session of a member; nil where nobody but its owner can.
	end func(context.Context, backend.Member) error
}

// Coordinators are the names that [Options] On may have.
func Coordinators() []string { return []string{"zookeeper", "etcd", "consul", "local"} }

// servers is how many servers the coordinator of a chaos run has.
const servers = 3

// startCoordinator starts a coordinator of n servers by its name. The caller stops its
// cluster.
func startCoordinator(ctx context.Context, name, dir string, n int) (*coordinator, error) {
	switch name {
	case "zookeeper":
		return startZooKeeper(ctx, n)
	case "etcd":
		return startEtcd(ctx, n)
	case "consul":
		return startConsul(ctx, n)
	case "local":
		return kernel(filepath.Join(dir, "local")), nil
	}
	return nil, fmt.Errorf("no coordinator %q; there are %s", name, strings.Join(Coordinators(), ", "))
}

// links says whether the servers can be isolated from each other, which takes root.
func links() bool { return os.Geteuid() == 0 }

func startZooKeeper(ctx context.Context, n int) (*coordinator, error) {
	z, err := coordtest.StartZooKeeper(ctx, &coordtest.ZooKeeperOptions{Nodes: n, Links: n > 1 && links(), NoSync: true})
	if err != nil {
		return nil, err
	}
	const ttl = 4 * time.Second
	return &coordinator{
		Cluster: &z.Cluster,
		ttl:     ttl,
		crash:   ttl + ttl/4, // it ends sessions at whole ticks
		url: func(_ int, addrs []string) string {
			return fmt.Sprintf("zookeeper://%s/chaos?session=%v", strings.Join(addrs, ","), ttl)
		},
		remove: func(ctx context.Context, m backend.Member) error {
			conn, _, err := zk.Connect(z.Addrs(), ttl, zk.WithLogger(silent{}))
			if err != nil {
				return err
			}
			closed := sync.OnceFunc(conn.Close) // it heeds no context
			defer closed()
			defer context.AfterFunc(ctx, closed)()
			return conn.Delete("/chaos/"+m.Line+"/"+m.Key, -1)
		},
	}, nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func startEtcd(ctx context.Context, n int) (*coordinator, error) {
	e, err := coordtest.StartEtcd(ctx, &coordtest.EtcdOptions{Nodes: n, Links: n > 1 && links()})
	if err != nil {
		return nil, err
	}
	const ttl = 4 * time.Second
	with := func(f func(*clientv3.Client) error) error {
		c, err := clientv3.New(clientv3.Config{Endpoints: e.Addrs(), Logger: zap.NewNop()})
		if err != nil {
			return err
		}
		return errors.Join(f(c), c.Close())
	}
	key := func(m backend.Member) string { return "chaos/" + m.Line + "/" + m.Key }
	return &coordinator{
		Cluster: &e.Cluster,
		ttl:     ttl,
		crash:   ttl + time.Second, // it looks for leases that are over twice a second
		url: func(_ int, addrs []string) string {
			return fmt.Sprintf("etcd://%s/chaos?ttl=%v", strings.Join(addrs, ","), ttl)
		},
		remove: func(ctx context.Context, m backend.Member) error {
			return with(func(c *clientv3.Client) error {
				_, err := c.Delete(ctx, key(m))
				return err
			})
		},
		end: func(ctx context.Context, m backend.Member) error {
			return with(func(c *clientv3.Client) error {
				r, err := c.Get(ctx, key(m))
				if err == nil && len(r.Kvs) > 0 {
					_, err = c.Revoke(ctx, clientv3.LeaseID(r.Kvs[0].Lease))
				}
				return err
			})
		},
	}, nil
}

func startConsul(ctx context.Context, n int) (*coordinator, error) {
	c, err := coordtest.StartConsul(ctx, &coordtest.ConsulOptions{
		Nodes: n, Durable: true, Links: n > 1 && links(),
		Config: []string{
			"limits{http_max_conns_per_client=4000}", // all clients have one address
			"autopilot{cleanup_dead_servers=false}",  // see coordtest.Consul
			"performance{raft_multiplier=2}",         // a busy machine is no reason for another leader
		},
	})
	if err != nil {
		return nil, err
	}
	const ttl = 3 * time.Second
	with := func(f func(*api.Client) error) error {
		var errs []error
		for _, addr := range c.Addrs() { // the first may be down
			cfg := api.DefaultConfig()
			cfg.Address = addr
			cfg.Transport.DisableKeepAlives = true // there is no Close
			client, err := api.NewClient(cfg)
			if err == nil {
				err = f(client)
			}
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	key := func(m backend.Member) string { return "chaos/" + m.Line + "/" + m.Key }
	return &coordinator{
		Cluster: &c.Cluster,
		ttl:     ttl,
		crash:   2*ttl + time.Second, // it ends a session after twice its time
		url: func(i int, addrs []string) string {
			return fmt.Sprintf("consul://%s/chaos?ttl=%v", addrs[i%len(addrs)], ttl)
		},
		remove: func(ctx context.Context, m backend.Member) error {
			return with(func(c *api.Client) error {
				_, err := c.KV().Delete(key(m), new(api.WriteOptions).WithContext(ctx))
				return err
			})
		},
		end: func(ctx context.Context, m backend.Member) error {
			return with(func(c *api.Client) error {
				pair, _, err := c.KV().Get(key(m), new(api.QueryOptions).WithContext(ctx))
				if err == nil && pair != nil && pair.Session != "" {
					_, err = c.Session().Destroy(pair.Session, new(api.WriteOptions).WithContext(ctx))
				}
				return err
			})
		},
	}, nil
}

// kernel is the coordinator of package local.
func kernel(dir string) *coordinator {
	return &coordinator{
		// A process that died is gone at once, and one that is paused keeps its place.
		crash: longestFault(unhurried),
		url:   func(int, []string) string { return "local:" + dir },
		remove: func(_ context.Context, m backend.Member) error {
			return os.Remove(filepath.Join(dir, m.Line, "@"+m.Key))
		},
	}
}

// recovery is what everything else may take but the end of a session: the coordinator
// elects a leader, clients find it again, a waiter looks anew, on a machine that is
// busy.
const recovery = 5 * time.Second

// vacancy bounds the time without a leader.
func (c *coordinator) vacancy() time.Duration { return c.crash + recovery }
