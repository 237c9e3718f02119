package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/consul/api"
	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/bench/internal/leases"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// An operator does to the leader of an election what a person with the coordinator's own tools
// can do, whatever library keeps the line.
type operator interface {
	// evict deletes the key that the leader holds.
	evict(ctx context.Context, election string) error
	// endSession ends the session that holds it.
	endSession(ctx context.Context, election string) error
}

var errNoLeader = errors.New("nobody leads whom an operator could touch")

type etcdOperator struct{ addrs []string }

// first calls do with the oldest key of the election.
func (o *etcdOperator) first(ctx context.Context, election string, do func(c *clientv3.Client, key string, lease clientv3.LeaseID) error) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: o.addrs})
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := c.Get(ctx, election+"/", clientv3.WithFirstCreate()...)
	switch {
	case err != nil:
		return err
	case len(r.Kvs) == 0:
		return errNoLeader
	}
	return do(c, string(r.Kvs[0].Key), clientv3.LeaseID(r.Kvs[0].Lease))
}

func (o *etcdOperator) evict(ctx context.Context, election string) error {
	return o.first(ctx, election, func(c *clientv3.Client, key string, _ clientv3.LeaseID) error {
		_, err := c.Delete(ctx, key)
		return err
	})
}

func (o *etcdOperator) endSession(ctx context.Context, election string) error {
	return o.first(ctx, election, func(c *clientv3.Client, _ string, lease clientv3.LeaseID) error {
		_, err := c.Revoke(ctx, lease)
		return err
	})
}

type consulOperator struct{ addr string }

// first calls do with the oldest key at or below the election that a session holds.
func (o *consulOperator) first(ctx context.Context, election string, do func(c *api.Client, pair *api.KVPair) error) error {
	c, err := api.NewClient(&api.Config{Address: o.addr})
	if err != nil {
		return err
	}
	pairs, _, err := c.KV().List(election, (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
	if err != nil {
		return err
	}
	pairs = slices.DeleteFunc(pairs, func(p *api.KVPair) bool { return p.Session == "" })
	if len(pairs) == 0 {
		return errNoLeader
	}
	return do(c, slices.MinFunc(pairs, func(a, b *api.KVPair) int { return int(a.CreateIndex) - int(b.CreateIndex) }))
}

func (o *consulOperator) evict(ctx context.Context, election string) error {
	return o.first(ctx, election, func(c *api.Client, pair *api.KVPair) error {
		_, err := c.KV().Delete(pair.Key, (&api.WriteOptions{}).WithContext(ctx))
		return err
	})
}

func (o *consulOperator) endSession(ctx context.Context, election string) error {
	return o.first(ctx, election, func(c *api.Client, pair *api.KVPair) error {
		_, err := c.Session().Destroy(pair.Session, (&api.WriteOptions{}).WithContext(ctx))
		return err
	})
}

type zookeeperOperator struct{ addr string }

func (o *zookeeperOperator) evict(_ context.Context, election string) error {
	c, _, err := zk.Connect([]string{o.addr}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer c.Close()
	names, _, err := c.Children("/" + election)
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		return errNoLeader
	}
	// All libraries let ZooKeeper append ten digits, and go by them.
	first := slices.MinFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	return c.Delete("/"+election+"/"+first, -1)
}

func (o *zookeeperOperator) endSession(context.Context, string) error {
	return fmt.Errorf("end a session of ZooKeeper: %w", errors.ErrUnsupported)
}

type kubernetesOperator struct{ addr string }

func (o *kubernetesOperator) evict(ctx context.Context, election string) error {
	return o.first(ctx, election, func(c *leases.Client, m *leases.Member) error {
		if m == nil { // of client-go, whose leader holds the Lease of the election
			return c.Delete(ctx, election)
		}
		return c.Delete(ctx, m.Name)
	})
}

func (o *kubernetesOperator) endSession(ctx context.Context, election string) error {
	return o.first(ctx, election, func(c *leases.Client, m *leases.Member) error {
		if m == nil {
			return fmt.Errorf("end a session of client-go: %w", errors.ErrUnsupported)
		}
		return c.Delete(ctx, m.Session)
	})
}

// first calls do with the first of the line, or nil where nobody stands in a line.
func (o *kubernetesOperator) first(ctx context.Context, election string, do func(*leases.Client, *leases.Member) error) error {
	c := leases.New(o.addr)
	defer c.Close()
	line, err := c.Members(ctx, election)
	if err != nil {
		return err
	}
	if len(line) == 0 {
		return do(c, nil)
	}
	return do(c, &line[0])
}

// A postgresOperator has statements for each kind of election: the row of this project's leader, that of River's, and the connection that
// has an advisory lock.
type postgresOperator struct{ addr string }

const (
	firstMember = "(SELECT pos FROM succession.member WHERE line = $1 ORDER BY pos LIMIT 1)"
	leaderOf    = "river_leader_" // and the name of the election: River's table
)

func (o *postgresOperator) evict(ctx context.Context, election string) error {
	return o.touch(ctx, election, "DELETE FROM succession.member WHERE line = $1 AND pos = "+firstMember, "DELETE FROM %s", "")
}

func (o *postgresOperator) endSession(ctx context.Context, election string) error {
	return o.touch(ctx, election, "DELETE FROM succession.session WHERE id = (SELECT session FROM succession.member WHERE line = $1 AND pos = "+firstMember+")", "",
		"SELECT pg_terminate_backend(pid) "+candidate.PostgresLocks+" AND granted")
}

// touch runs the statement for the kind of election that there is; empty is none.
func (o *postgresOperator) touch(ctx context.Context, election, member, river, lock string) error {
	c, err := pgx.Connect(ctx, candidate.PostgresConfig(o.addr))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	var ours, rivers bool
	if err := c.QueryRow(ctx, "SELECT to_regclass('succession.member') IS NOT NULL, to_regclass(quote_ident($1)) IS NOT NULL", leaderOf+election).Scan(&ours, &rivers); err != nil {
		return err
	}
	statement, args := lock, []any{election}
	switch {
	case ours:
		statement = member
	case rivers && river != "":
		statement, args = fmt.Sprintf(river, pgx.Identifier{leaderOf + election}.Sanitize()), nil
	case rivers:
		statement = ""
	}
	if statement == "" {
		return fmt.Errorf("nothing of this kind to take away: %w", errors.ErrUnsupported)
	}
	done, err := c.Exec(ctx, statement, args...)
	if err == nil && done.RowsAffected() == 0 {
		err = errNoLeader
	}
	return err
}

type redisOperator struct{ addr string }

func (o *redisOperator) evict(ctx context.Context, election string) error {
	deleted, err := coordtest.RedisSays(ctx, o.addr, "DEL "+election)
	if err == nil && deleted != "1" {
		err = errNoLeader
	}
	return err
}

func (o *redisOperator) endSession(context.Context, string) error {
	return fmt.Errorf("end a session of Redis: %w", errors.ErrUnsupported)
}
