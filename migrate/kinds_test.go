package migrate_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
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
	start func(t *testing.T) (s coordinator, addr string)
	url   string // of an address
	slack time.Duration
	// large says that positions begin with a large number. The others count what has
	// happened, from 1 on.
	large bool
}

// A coordinator is one that was started, with what an operator does with its own tools.
type coordinator struct {
	rig.Operator
	cluster *coordtest.Cluster // nil for one without servers
	// open opens a backend behind a proxy of its own.
	open      func() (backend.Backend, rig.Client, error)
	reference func(context.Context) error // see [conformance.Harness]; nil for one without servers
	// compact and setClock are nil where nothing comes of them.
	compact  func(context.Context) error
	setClock func(time.Duration) error
}

const suite = "suite"

var kinds = map[string]kind{
	"zookeeper": {
		start: func(t *testing.T) (coordinator, string) {
			z := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{NoSync: true, Clock: true})
			open := func() (backend.Backend, rig.Client, error) {
				r, err := zookeeperrig.Start(z.Addrs()[0])
				if err != nil {
					return nil, nil, err
				}
				b, err := zookeeper.New([]string{r.Addr()}, &zookeeper.Options{TTL: realTTL, Prefix: "/" + suite, Dialer: r.Dial})
				return b, r, err
			}
			op := zookeeperrig.Operator{ZooKeeper: z, Root: "/" + suite}
			return coordinator{Operator: op, cluster: &z.Cluster, open: open, reference: zookeeperrig.Reference(t), setClock: op.SetClock}, z.Addrs()[0]
		},
		url: "zookeeper://%s/" + suite + "?ttl=" + realTTL.String(), slack: 500 * time.Millisecond,
	},
	"etcd": {
		start: func(t *testing.T) (coordinator, string) {
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
			op := etcdrig.Operator{Etcd: e, Prefix: suite + "/", Client: client}
			return coordinator{Operator: op, cluster: &e.Cluster, open: open, reference: etcdrig.Reference(t), compact: op.Compact}, e.Addrs()[0]
		},
		url: "etcd://%s/" + suite + "/?ttl=" + realTTL.String(), slack: 500 * time.Millisecond,
	},
	"consul": {
		start: func(t *testing.T) (coordinator, string) {
			c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Durable: true, Config: []string{"limits{http_max_conns_per_client=4000}"}})
			open := func() (backend.Backend, rig.Client, error) {
				r, err := consulrig.Start(c.Servers()[0])
				if err != nil {
					return nil, nil, err
				}
				b, err := consul.New(r.Config(), &consul.Options{TTL: realTTL, Prefix: suite})
				return b, r, err
			}
			op := consulrig.Operator{Client: consulrig.Admin(t, c.Addrs()[0]), Prefix: suite}
			return coordinator{Operator: op, cluster: &c.Cluster, open: open, reference: consulrig.Reference(t)}, c.Addrs()[0]
		},
		url: "consul://%s/" + suite + "?ttl=" + realTTL.String(), slack: realTTL + realTTL/4,
	},
	"local": {
		start: func(t *testing.T) (coordinator, string) {
			dir := t.TempDir()
			open := func() (backend.Backend, rig.Client, error) {
				b, err := local.New(dir, nil)
				return b, nil, err
			}
			return coordinator{Operator: localFolder(dir), open: open}, dir
		},
		url:   "local:%s",
		large: true, // microseconds since 1970
	},
}

// A localFolder is the operator of a local coordinator.
type localFolder string

func (dir localFolder) Remove(_ context.Context, m backend.Member) error {
	if err := os.Remove(filepath.Join(string(dir), m.Line, "@"+m.Key)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (dir localFolder) Drop(_ context.Context, election string) error {
	return rig.DropFolder(string(dir), election)
}

// Backup implements [rig.Operator]. An old copy of the folder is refused.
func (localFolder) Backup(context.Context) (func(context.Context) error, error) {
	return nil, errors.ErrUnsupported
}
