package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/consul/api"
	"github.com/jackc/pgx/v5/pgxpool"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/bench/internal/leases"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A place is a coordinator of one server, and this program's own client of it.
type place struct {
	addr    string // the folder of local
	version string
	stop    func()
	servers []*coordtest.Server // none is local
	// standing counts who stands in a line. Nobody does for api.Lock: its sessions are counted. It is nil
	// where all libraries are unseen.
	standing func(ctx context.Context, l candidate.Library, election string) (int, error)
	// requests is how many the server has been sent since it started. Nil is unknown.
	requests func(ctx context.Context) (int, error)
}

// start starts a coordinator, which waits for its disk or does not.
func start(ctx context.Context, coordinator string, disk bool) (p *place, err error) {
	switch coordinator {
	case candidate.Etcd:
		p, err = startEtcd(ctx, disk)
	case candidate.Consul:
		p, err = startConsul(ctx, disk)
	case candidate.ZooKeeper:
		p, err = startZooKeeper(ctx, disk)
	case candidate.Kubernetes:
		p, err = startKubernetes(ctx, disk)
	case candidate.Postgres:
		p, err = startPostgres(ctx, disk)
	default:
		p, err = startLocal(ctx)
	}
	if err == nil {
		if p.version, err = candidate.ServerVersion(ctx, coordinator, p.addr); err != nil {
			p.stop()
		}
	}
	return p, err
}

// etcdOptions are etcd's own times.
func etcdOptions(disk bool) *coordtest.EtcdOptions {
	return &coordtest.EtcdOptions{
		Heartbeat: 100 * time.Millisecond, Election: time.Second, Disk: disk,
	}
}

func startEtcd(ctx context.Context, disk bool) (*place, error) {
	e, err := coordtest.StartEtcd(ctx, etcdOptions(disk))
	if err != nil {
		return nil, err
	}
	addr := e.Addrs()[0]
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
	if err != nil {
		e.Stop()
		return nil, err
	}
	return &place{
		addr: addr,
		stop: func() { client.Close(); e.Stop() }, servers: e.Servers(),
		standing: func(ctx context.Context, _ candidate.Library, election string) (int, error) {
			r, err := client.Get(ctx, election+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err != nil {
				return 0, err
			}
			return int(r.Count), nil
		},
		requests: func(ctx context.Context) (int, error) {
			return metric(ctx, http.DefaultClient, "http://"+addr+"/metrics", "grpc_server_msg_received_total", "")
		},
	}, nil
}

func startConsul(ctx context.Context, disk bool) (*place, error) {
	c, err := coordtest.StartConsul(ctx, &coordtest.ConsulOptions{Durable: disk, Disk: disk, Config: []string{
		// A waiting candidate is a connection, and all of them are of this machine.
		"limits{http_max_conns_per_client=10000}",
		`telemetry{prometheus_retention_time="1h"}`,
	}})
	if err != nil {
		return nil, err
	}
	addr := c.Addrs()[0]
	client, err := api.NewClient(&api.Config{Address: addr})
	if err != nil {
		c.Stop()
		return nil, err
	}
	return &place{
		addr: addr,
		stop: c.Stop, servers: c.Servers(),
		standing: func(_ context.Context, l candidate.Library, election string) (n int, err error) {
			if !l.Herd {
				keys, _, err := client.KV().Keys(election+"/", "", nil)
				return len(keys), err
			}
			sessions, _, err := client.Session().List(nil)
			for _, s := range sessions {
				if s.Name == election {
					n++
				}
			}
			return n, err
		},
		requests: func(ctx context.Context) (int, error) {
			return metric(ctx, http.DefaultClient, "http://"+addr+"/v1/agent/metrics?format=prometheus", "consul_api_http_count", "")
		},
	}, nil
}

func startZooKeeper(ctx context.Context, disk bool) (*place, error) {
	z, err := coordtest.StartZooKeeper(ctx, &coordtest.ZooKeeperOptions{Disk: disk})
	if err != nil {
		return nil, err
	}
	addr := z.Addrs()[0]
	conn, _, err := zk.Connect([]string{addr}, time.Minute, zk.WithLogInfo(false))
	if err != nil {
		z.Stop()
		return nil, err
	}
	return &place{
		addr: addr,
		stop: func() { conn.Close(); z.Stop() }, servers: z.Servers(),
		standing: func(_ context.Context, _ candidate.Library, election string) (int, error) {
			_, stat, err := conn.Exists("/" + election)
			return int(stat.NumChildren), err
		},
		requests: func(ctx context.Context) (int, error) {
			mntr, err := coordtest.FourLetter(ctx, addr, "mntr")
			if err != nil {
				return 0, err
			}
			figures, err := coordtest.ParseMonitor(mntr)
			if err != nil {
				return 0, err
			}
			return strconv.Atoi(figures["zk_packets_received"])
		},
	}, nil
}

// startKubernetes starts an API server. There is a line of this project's there. Those who wait with client-go read the Lease from
// time to time, and nobody can tell that they do.
func startKubernetes(ctx context.Context, disk bool) (*place, error) {
	k, err := coordtest.StartKubernetes(ctx, &coordtest.KubernetesOptions{Etcd: etcdOptions(disk)})
	if err != nil {
		return nil, err
	}
	addr := k.Addrs()[0]
	client := leases.New(addr)
	return &place{
		addr: addr,
		stop: func() { client.Close(); k.Stop() }, servers: slices.Concat(k.Servers(), k.Etcd().Servers()),
		standing: func(ctx context.Context, _ candidate.Library, election string) (int, error) {
			line, err := client.Members(ctx, election)
			return len(line), err
		},
		requests: func(ctx context.Context) (int, error) {
			// Those of the API server itself are among them, which looks after Leases of its own.
			return metric(ctx, client.HTTP, client.URL+"/metrics", "apiserver_request_total", `resource="leases"`)
		},
	}, nil
}

// startPostgres starts a PostgreSQL that counts statements. Those that a function makes count as the one that calls it.
func startPostgres(ctx context.Context, disk bool) (*place, error) {
	p, err := coordtest.StartPostgres(ctx, &coordtest.PostgresOptions{Disk: disk, Config: []string{
		"max_connections=1300",         // a candidate that waits for an advisory lock is a connection
		"authentication_timeout=10min", // a thousand that connect at once take their time
		"shared_preload_libraries=pg_stat_statements",
	}})
	if err != nil {
		return nil, err
	}
	addr := p.Addrs()[0]
	pool, err := pgxpool.New(ctx, candidate.PostgresConfig(addr)+" pool_max_conns=1")
	if err == nil {
		_, err = pool.Exec(ctx, "CREATE EXTENSION pg_stat_statements")
	}
	if err != nil {
		p.Stop()
		return nil, err
	}
	number := func(ctx context.Context, sql string, args ...any) (n int, err error) {
		return n, pool.QueryRow(ctx, sql, args...).Scan(&n)
	}
	return &place{
		addr: addr,
		stop: func() { pool.Close(); p.Stop() }, servers: p.Servers(),
		standing: func(ctx context.Context, l candidate.Library, election string) (int, error) {
			if strings.HasPrefix(l.Name, candidate.Ours) {
				return number(ctx, "SELECT count(*) FROM succession.member WHERE line = $1", election)
			}
			return number(ctx, "SELECT count(*) "+candidate.PostgresLocks, election)
		},
		requests: func(ctx context.Context) (int, error) {
			return number(ctx, "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'")
		},
	}, nil
}

// startLocal makes a folder. Its line is asked for as an observer does.
func startLocal(ctx context.Context) (*place, error) {
	dir, err := os.MkdirTemp("", "costs-")
	if err != nil {
		return nil, err
	}
	b, err := succession.Connect(ctx, "local:"+dir)
	if err != nil {
		return nil, err
	}
	return &place{
		addr: dir,
		stop: func() { b.Close(); os.RemoveAll(dir) },
		standing: func(ctx context.Context, _ candidate.Library, election string) (int, error) {
			_, line, err := elect.New(b, election, nil).Line(ctx)
			return len(line), err
		},
	}, nil
}

// metric adds up the samples of a counter that a server shows for Prometheus, those that have a
// label.
func metric(ctx context.Context, client *http.Client, url, name, label string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	sum, found := 0.0, false
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		if !strings.HasPrefix(in.Text(), name+"{") || !strings.Contains(in.Text(), label) {
			continue
		}
		v, err := strconv.ParseFloat(in.Text()[strings.LastIndexByte(in.Text(), ' ')+1:], 64)
		if err != nil {
			return 0, err
		}
		sum, found = sum+v, true
	}
	if !found && in.Err() == nil {
		return 0, fmt.Errorf("%s: no counter %s", url, name)
	}
	return int(sum), in.Err()
}
