package migrate_test

import (
	"context"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/consulrig"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/zookeeperrig"
	"github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/zookeeper"
)

// A kind is a kind of coordinator.
type kind struct {
	// start starts one, for as long as the test. addr is that of its server, or the
	// folder of one without servers.
	start func(t *testing.T) (s started, addr string)
	url   string // of an address
	slack time.Duration
}

// A coordinator is one that was started, with what an operator does with its own tools.
type started struct {
	coordinator.Operator
	cluster *coordtest.Cluster // nil for one without servers
	// open opens a backend behind a proxy of its own.
	open      func() (backend.Backend, rig.Client, error)
	reference func(context.Context) error // see [conformance.Harness]; nil for one without servers
	backup    func(context.Context) (restore func(context.Context) error, err error)
	// compact and setClock are nil where nothing comes of them.
	compact  func(context.Context) error
	setClock func(time.Duration) error
}

const suite = "suite"

var kinds = map[string]kind{
	"zookeeper": {
		start: func(t *testing.T) (started, string) {
			z := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{Clock: true})
			open := func() (backend.Backend, rig.Client, error) {
				r, err := zookeeperrig.Start(z.Addrs()[0])
				if err != nil {
					return nil, nil, err
				}
				b, err := zookeeper.New([]string{r.Addr()}, &zookeeper.Options{TTL: realTTL, Prefix: "/" + suite, Dialer: r.Dial})
				return b, r, err
			}
			setClock := func(shift time.Duration) error { return zookeeperrig.SetClock(z, shift) }
			return started{cluster: &z.Cluster, open: open, reference: zookeeperrig.Reference(t), backup: z.Backup, setClock: setClock}, z.Addrs()[0]
		},
		url: "zookeeper://%s/" + suite + "?ttl=" + realTTL.String(), slack: 500 * time.Millisecond,
	},
	"etcd": {
		start: func(t *testing.T) (started, string) {
			e := coordtest.NewEtcd(t, nil)
			client, err := etcdrig.Dial(e.Addrs())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			open := func() (backend.Backend, rig.Client, error) {
				r, err := etcdrig.Start(e.Addrs()[0])
				if err != nil {
					return nil, nil, err
				}
				b, err := etcd.New(r.Client, &etcd.Options{TTL: realTTL, Prefix: suite + "/"})
				return b, r, err
			}
			compact := func(ctx context.Context) error { return etcdrig.Compact(ctx, client) }
			return started{cluster: &e.Cluster, open: open, reference: etcdrig.Reference(t), backup: e.Backup, compact: compact}, e.Addrs()[0]
		},
		url: "etcd://%s/" + suite + "/?ttl=" + realTTL.String(), slack: 500 * time.Millisecond,
	},
	"consul": {
		start: func(t *testing.T) (started, string) {
			c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Durable: true, Config: []string{"limits{http_max_conns_per_client=4000}"}})
			open := func() (backend.Backend, rig.Client, error) {
				r, err := consulrig.Start(c.Servers()[0])
				if err != nil {
					return nil, nil, err
				}
				b, err := consul.New(r.Config(), &consul.Options{TTL: realTTL, Prefix: suite})
				return b, r, err
			}
			admin := consulrig.Admin(t, c.Addrs()[0])
			backup := func(ctx context.Context) (func(context.Context) error, error) { return consulrig.Backup(ctx, admin) }
			return started{cluster: &c.Cluster, open: open, reference: consulrig.Reference(t), backup: backup}, c.Addrs()[0]
		},
		url: "consul://%s/" + suite + "?ttl=" + realTTL.String(), slack: realTTL + realTTL/4,
	},
	"local": {
		start: func(t *testing.T) (started, string) {
			dir := t.TempDir()
			open := func() (backend.Backend, rig.Client, error) {
				b, err := local.New(dir, nil)
				return b, nil, err
			}
			return started{open: open}, dir
		},
		url: "local:%s",
	},
}
