//go:build linux

package arena

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/operator"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/evidence"
)

// A Coordinator is what the candidates of a run stand in line at, and what an operator
// does to it past the elections.
type Coordinator struct {
	*coordtest.Cluster // nil for the kernel

	Name string
	TTL  time.Duration // of sessions; 0 where they have no time
	// Crash is how long the members of a process that died stand at most.
	Crash time.Duration
	// URL returns the URL for the client at index i, who sees the servers at addrs.
	URL func(i int, addrs []string) string
	// Remove deletes a member.
	Remove func(context.Context, backend.Member) error
	// End ends the session of a member; nil where nobody but its owner can.
	End func(context.Context, backend.Member) error
	// Observer is a backend of this process, past all proxies.
	Observer backend.Backend

	Busy sync.Mutex // held by the fault that the servers suffer
}

// Coordinators are the names that [Start] knows.
func Coordinators() []string { return []string{"zookeeper", "etcd", "consul", "local"} }

// Start starts a coordinator of n servers by its name. What it keeps on its own is in the
// folder dir. The caller stops it.
func Start(ctx context.Context, name, dir string, n int) (c *Coordinator, err error) {
	switch name {
	case "zookeeper":
		c, err = startZooKeeper(ctx, n)
	case "etcd":
		c, err = startEtcd(ctx, n)
	case "consul":
		c, err = startConsul(ctx, n)
	case "local":
		c = kernel(filepath.Join(dir, "local"))
	default:
		err = fmt.Errorf("no coordinator %q; there are %s", name, strings.Join(Coordinators(), ", "))
	}
	if err != nil {
		return nil, err
	}
	c.Name = name
	if c.Cluster != nil {
		c.Remove = c.remove
	}
	switch name { // the operator of ZooKeeper would need the session's password
	case "etcd":
		c.End = c.endEtcd
	case "consul":
		c.End = c.endConsul
	}
	if c.Observer, err = backend.Open(ctx, c.URL(0, c.Addrs())); err != nil {
		return nil, errors.Join(err, c.Stop(""))
	}
	return c, nil
}

// try calls f by way of one server after the other, until it succeeds: some may be down.
func (c *Coordinator) try(f func(i int, addrs []string) error) error {
	var errs []error
	for i, addrs := 0, c.Addrs(); i < len(addrs); i++ {
		err := f(i, addrs)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *Coordinator) remove(ctx context.Context, m backend.Member) error {
	return c.try(func(i int, addrs []string) error {
		u, err := backend.ParseURL(c.URL(i, addrs))
		if err != nil {
			return err
		}
		o, err := operator.New(u)
		if err != nil {
			return err
		}
		return o.Remove(ctx, m)
	})
}

func (c *Coordinator) endEtcd(ctx context.Context, m backend.Member) error {
	return c.try(func(_ int, addrs []string) error {
		client, err := clientv3.New(clientv3.Config{Endpoints: addrs, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			return err
		}
		defer client.Close()
		r, err := client.Get(ctx, path.Join(folder, m.Line, m.Key))
		if err == nil && len(r.Kvs) > 0 {
			_, err = client.Revoke(ctx, clientv3.LeaseID(r.Kvs[0].Lease))
		}
		return err
	})
}

func (c *Coordinator) endConsul(ctx context.Context, m backend.Member) error {
	return c.try(func(i int, addrs []string) error {
		client, err := api.NewClient(&api.Config{Address: addrs[i], Transport: &http.Transport{DisableKeepAlives: true}})
		if err != nil {
			return err
		}
		pair, _, err := client.KV().Get(path.Join(folder, m.Line, m.Key), (&api.QueryOptions{}).WithContext(ctx))
		if err == nil && pair != nil && pair.Session != "" {
			_, err = client.Session().Destroy(pair.Session, (&api.WriteOptions{}).WithContext(ctx))
		}
		return err
	})
}

// Addrs returns the addresses of the servers, where there are any.
func (c *Coordinator) Addrs() []string {
	if c.Cluster == nil {
		return nil
	}
	return c.Cluster.Addrs()
}

// Vacancy bounds the time without a leader.
func (c *Coordinator) Vacancy() time.Duration { return c.Crash + evidence.Recovery }

// Stop stops the servers. Their logs are kept in the folder, where one is named.
func (c *Coordinator) Stop(logs string) (err error) {
	if c.Observer != nil {
		err = c.Observer.Close()
	}
	if c.Cluster == nil {
		return err
	}
	for i, s := range c.Servers() {
		if logs == "" {
			break
		}
		log, readErr := os.ReadFile(s.LogFile())
		writeErr := os.WriteFile(filepath.Join(logs, fmt.Sprintf("%s%d.log", c.Name, i+1)), log, 0o644)
		err = errors.Join(err, readErr, writeErr)
	}
	c.Cluster.Stop()
	return err
}

// Links says whether the servers can be isolated from each other, which takes root.
func Links() bool { return os.Geteuid() == 0 }

// folder is where all elections of a run are in a coordinator.
const folder = "chaos"

func startZooKeeper(ctx context.Context, n int) (*Coordinator, error) {
	z, err := coordtest.StartZooKeeper(ctx, &coordtest.ZooKeeperOptions{Nodes: n, Links: n > 1 && Links(), NoSync: true})
	if err != nil {
		return nil, err
	}
	const ttl = 4 * time.Second
	return &Coordinator{
		Cluster: &z.Cluster,
		TTL:     ttl,
		Crash:   ttl + ttl/4, // it ends sessions at whole ticks
		URL: func(_ int, addrs []string) string {
			return fmt.Sprintf("zookeeper://%s/%s?ttl=%v", strings.Join(addrs, ","), folder, ttl)
		},
	}, nil
}

func startEtcd(ctx context.Context, n int) (*Coordinator, error) {
	e, err := coordtest.StartEtcd(ctx, &coordtest.EtcdOptions{Nodes: n, Links: n > 1 && Links()})
	if err != nil {
		return nil, err
	}
	const ttl = 4 * time.Second
	return &Coordinator{
		Cluster: &e.Cluster,
		TTL:     ttl,
		Crash:   ttl + time.Second, // it looks for leases that are over twice a second
		URL: func(_ int, addrs []string) string {
			return fmt.Sprintf("etcd://%s/%s?ttl=%v", strings.Join(addrs, ","), folder, ttl)
		},
	}, nil
}

func startConsul(ctx context.Context, n int) (*Coordinator, error) {
	c, err := coordtest.StartConsul(ctx, &coordtest.ConsulOptions{
		Nodes: n, Durable: true, Links: n > 1 && Links(),
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
	return &Coordinator{
		Cluster: &c.Cluster,
		TTL:     ttl,
		Crash:   2*ttl + time.Second, // it ends a session after twice its time
		URL: func(i int, addrs []string) string {
			return fmt.Sprintf("consul://%s/%s?ttl=%v", addrs[i%len(addrs)], folder, ttl)
		},
	}, nil
}

// kernel is the coordinator of package local.
func kernel(dir string) *Coordinator {
	return &Coordinator{
		// A process that died is gone at once, and one that is paused keeps its place.
		Crash: LongestFault(Unhurried),
		URL:   func(int, []string) string { return "local:" + dir },
		Remove: func(_ context.Context, m backend.Member) error {
			return os.Remove(filepath.Join(dir, m.Line, "@"+m.Key))
		},
	}
}
