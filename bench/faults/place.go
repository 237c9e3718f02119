package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/internal/coordtest"
)

// A place is a coordinator that was started for one run.
type place struct {
	servers  []*coordtest.Server
	operator operator
	stop     func()
	// leader returns the server that leads the others.
	leader func(ctx context.Context) (*coordtest.Server, error)
	// isolate cuts a server off from the others.
	isolate func(*coordtest.Server) error
}

// start starts a coordinator as the fault needs it, with the times that it has by default, and
// with the shortest that grants the session.
func start(ctx context.Context, kind string, f fault, session time.Duration) (*place, error) {
	nodes := max(f.nodes, 1)
	p := &place{isolate: func(*coordtest.Server) error { return errors.ErrUnsupported }}
	switch kind {
	case etcd:
		e, err := coordtest.StartEtcd(ctx, &coordtest.EtcdOptions{
			Nodes: nodes, Heartbeat: 100 * time.Millisecond, Election: time.Second,
		})
		if err != nil {
			return nil, err
		}
		p.servers, p.stop = e.Servers(), e.Stop
		o := &etcdOperator{addrs: e.Addrs()}
		p.operator = o
		p.leader = func(ctx context.Context) (*coordtest.Server, error) { return etcdLeader(ctx, e.Servers()) }
	case consul:
		c, err := coordtest.StartConsul(ctx, &coordtest.ConsulOptions{Nodes: nodes, Durable: true, MinTTL: session})
		if err != nil {
			return nil, err
		}
		p.servers, p.stop, p.leader = c.Servers(), c.Stop, c.Leader
		p.operator = &consulOperator{addr: c.Addrs()[0]}
	case zookeeper:
		z, err := coordtest.StartZooKeeper(ctx, &coordtest.ZooKeeperOptions{
			// The times of ZooKeeper's zoo_sample.cfg.
			Nodes: nodes, Links: f.sits, Tick: 2 * time.Second, SyncLimit: 5,
		})
		if err != nil {
			return nil, err
		}
		p.servers, p.stop, p.leader, p.isolate = z.Servers(), z.Stop, z.Leader, z.Isolate
		p.operator = &zookeeperOperator{addr: z.Addrs()[0]}
	default:
		return nil, fmt.Errorf("no coordinator %q", kind)
	}
	return p, nil
}

// follower returns the i-th server that does not lead.
func (p *place) follower(ctx context.Context, i int) (*coordtest.Server, error) {
	leader, err := p.leader(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range p.servers {
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

// etcdLeader asks each server who leads.
func etcdLeader(ctx context.Context, servers []*coordtest.Server) (*coordtest.Server, error) {
	for _, s := range servers {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Addr()}})
		if err != nil {
			return nil, err
		}
		status, err := client.Status(ctx, s.Addr())
		client.Close()
		if err != nil {
			return nil, err
		}
		if status.Leader == status.Header.MemberId {
			return s, nil
		}
	}
	return nil, errors.New("no etcd server leads")
}
