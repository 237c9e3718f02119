package migrate_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/consul/api"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/coordtest"
	"github.com/succession-dev/succession/internal/coordtest/rig"
)

// A kind is a kind of coordinator.
type kind struct {
	start func(t *testing.T) (*coordtest.Cluster, string) // nil and a folder for one without servers
	url   string                                          // of an address
	slack time.Duration
	// large says that positions begin with a large number. The others count what has
	// happened, from 1 on.
	large bool
	// open opens a backend, where that takes more than the URL.
	open func(addr string) (backend.Backend, error)
	// remove and drop are what an operator does with the coordinator's own tools. Whom
	// they do not find any more has left by himself: a composite that was removed from
	// the other coordinator.
	remove func(ctx context.Context, addr string, m backend.Member) error
	drop   func(ctx context.Context, addr, election string) error
}

var kinds = map[string]kind{
	"zookeeper": {
		start: func(t *testing.T) (*coordtest.Cluster, string) {
			z := coordtest.NewZooKeeper(t, nil)
			return &z.Cluster, z.Addrs()[0]
		},
		url: "zookeeper://%s/suite?session=" + realTTL.String(), slack: 500 * time.Millisecond,
		remove: func(_ context.Context, addr string, m backend.Member) error {
			return zookeeperOperator(addr, func(c *zk.Conn) error {
				if err := c.Delete("/suite/"+m.Line+"/"+m.Key, -1); err != zk.ErrNoNode {
					return err
				}
				return nil
			})
		},
		drop: func(_ context.Context, addr, election string) error {
			return zookeeperOperator(addr, func(c *zk.Conn) error {
				for {
					at := "/suite/" + election
					names, _, err := c.Children(at)
					if err == zk.ErrNoNode { // nobody has used it here
						return nil
					}
					if err != nil {
						return err
					}
					ops := make([]any, 0, len(names)+1)
					for _, name := range names {
						ops = append(ops, &zk.DeleteRequest{Path: at + "/" + name, Version: -1})
					}
					_, err = c.Multi(append(ops, &zk.DeleteRequest{Path: at, Version: -1})...)
					if err != zk.ErrNoNode && err != zk.ErrNotEmpty { // somebody joined or left meanwhile
						return err
					}
				}
			})
		},
	},
	"etcd": {
		start: func(t *testing.T) (*coordtest.Cluster, string) {
			e := coordtest.NewEtcd(t, nil)
			return &e.Cluster, e.Addrs()[0]
		},
		url: "etcd://%s/suite/?ttl=" + realTTL.String(), slack: 500 * time.Millisecond,
		remove: func(ctx context.Context, addr string, m backend.Member) error {
			return etcdOperator(addr, func(c *clientv3.Client) error {
				_, err := c.Delete(ctx, "suite/"+m.Line+"/"+m.Key)
				return err
			})
		},
		drop: func(ctx context.Context, addr, election string) error {
			return etcdOperator(addr, func(c *clientv3.Client) error {
				_, err := c.Txn(ctx).Then(
					clientv3.OpDelete("suite/"+election+"/", clientv3.WithPrefix()),
					clientv3.OpDelete("suite/"+election),
				).Commit()
				return err
			})
		},
	},
	"consul": {
		start: func(t *testing.T) (*coordtest.Cluster, string) {
			c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Durable: true, Config: []string{"limits{http_max_conns_per_client=4000}"}})
			return &c.Cluster, c.Addrs()[0]
		},
		url: "consul://%s/suite?ttl=" + realTTL.String(), slack: realTTL + realTTL/4,
		open: func(addr string) (backend.Backend, error) {
			transport := &http.Transport{DialContext: rig.DialUnlabelled}
			return consul.New(&api.Config{Address: addr, Transport: transport}, &consul.Options{TTL: realTTL, Prefix: "suite"})
		},
		remove: func(ctx context.Context, addr string, m backend.Member) error {
			return consulOperator(ctx, addr, &api.KVTxnOp{Verb: api.KVDelete, Key: "suite/" + m.Line + "/" + m.Key})
		},
		drop: func(ctx context.Context, addr, election string) error {
			return consulOperator(ctx, addr,
				&api.KVTxnOp{Verb: api.KVDelete, Key: "suite/" + election},
				&api.KVTxnOp{Verb: api.KVDeleteTree, Key: "suite/" + election + "/"})
		},
	},
	"local": {
		start: func(t *testing.T) (*coordtest.Cluster, string) { return nil, t.TempDir() },
		url:   "local:%s",
		large: true, // microseconds since 1970
		remove: func(_ context.Context, dir string, m backend.Member) error {
			if err := os.Remove(filepath.Join(dir, m.Line, "@"+m.Key)); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		},
		drop: func(_ context.Context, dir, election string) error {
			return os.RemoveAll(filepath.Join(dir, election))
		},
	},
}

func zookeeperOperator(addr string, do func(*zk.Conn) error) error {
	c, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

func etcdOperator(addr string, do func(*clientv3.Client) error) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

func consulOperator(ctx context.Context, addr string, ops ...*api.KVTxnOp) error {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c, err := api.NewClient(&api.Config{Address: addr, Transport: transport})
	if err != nil {
		return err
	}
	ok, _, _, err := c.KV().Txn(ops, (&api.QueryOptions{}).WithContext(ctx))
	if err == nil && !ok {
		err = errors.New("consul refuses to delete")
	}
	return err
}
