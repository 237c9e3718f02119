package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A place is a coordinator that was started for one run.
type place struct {
	*coordtest.Cluster
	operator operator
	// promote has another server take over. Nil where the servers see to that themselves.
	promote func(context.Context) error
}

// start starts a coordinator as the fault needs it, with the times that it has by default, and
// with the shortest that grants the session.
func start(ctx context.Context, kind string, f fault, session time.Duration) (*place, error) {
	nodes := max(f.nodes, 1)
	switch kind {
	case candidate.Etcd:
		e, err := coordtest.StartEtcd(ctx, etcdOptions(nodes))
		if err != nil {
			return nil, err
		}
		return &place{Cluster: &e.Cluster, operator: &etcdOperator{addrs: e.Addrs()}}, nil
	case candidate.Consul:
		c, err := coordtest.StartConsul(ctx, &coordtest.ConsulOptions{Nodes: nodes, Durable: true, MinTTL: session})
		if err != nil {
			return nil, err
		}
		return &place{Cluster: &c.Cluster, operator: &consulOperator{addr: c.Addrs()[0]}}, nil
	case candidate.ZooKeeper:
		z, err := coordtest.StartZooKeeper(ctx, &coordtest.ZooKeeperOptions{
			// The times of ZooKeeper's zoo_sample.cfg.
			Nodes: nodes, Links: f.sits, Tick: 2 * time.Second, SyncLimit: 5,
		})
		if err != nil {
			return nil, err
		}
		return &place{Cluster: &z.Cluster, operator: &zookeeperOperator{addr: z.Addrs()[0]}}, nil
	case candidate.Kubernetes:
		k, err := coordtest.StartKubernetes(ctx, &coordtest.KubernetesOptions{Etcd: etcdOptions(nodes)})
		if err != nil {
			return nil, err
		}
		return &place{Cluster: &k.Cluster, operator: &kubernetesOperator{addr: k.Addrs()[0]}}, nil
	case candidate.Redis:
		r, err := coordtest.StartRedis(ctx)
		if err != nil {
			return nil, err
		}
		return &place{Cluster: &r.Cluster, operator: &redisOperator{addr: r.Addrs()[0]}}, nil
	case candidate.Postgres:
		// A primary that is alone, or a standby for which its commits wait.
		p, err := coordtest.StartPostgres(ctx, &coordtest.PostgresOptions{Standby: nodes > 1, Synchronous: nodes > 1})
		if err != nil {
			return nil, err
		}
		return &place{Cluster: &p.Cluster, operator: &postgresOperator{addr: p.Addrs()[0]}, promote: p.Promote}, nil
	}
	return nil, fmt.Errorf("no coordinator %q", kind)
}

// etcdOptions are etcd's own times.
func etcdOptions(nodes int) *coordtest.EtcdOptions {
	return &coordtest.EtcdOptions{Nodes: nodes, Heartbeat: 100 * time.Millisecond, Election: time.Second}
}

// leader waits until a server leads the others, and returns it. Servers that have just been
// started serve, and may elect another leader still.
func (p *place) leader(ctx context.Context) (*coordtest.Server, error) {
	if p.promote != nil {
		return p.Servers()[0], nil
	}
	return p.LeaderAfter(ctx, nil)
}

// follower returns the i-th server that does not lead.
func (p *place) follower(ctx context.Context, i int) (*coordtest.Server, error) {
	leader, err := p.leader(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range p.Servers() {
		if s == leader {
			continue
		}
		if i == 0 {
			return s, nil
		}
		i--
	}
	return nil, errors.New("too few servers follow")
}
