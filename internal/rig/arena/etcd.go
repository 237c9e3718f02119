//go:build linux

package arena

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func startEtcd(ctx context.Context, _ string, n int, secured bool) (*Coordinator, error) {
	o := &coordtest.EtcdOptions{Nodes: n, Links: n > 1 && Links()}
	if secured {
		o.Args = []string{"--bcrypt-cost=4"}
	}
	e, err := coordtest.StartEtcd(ctx, o)
	if err != nil {
		return nil, err
	}
	const ttl = 4 * time.Second
	c := &Coordinator{
		Cluster: &e.Cluster,
		rejoin:  e.Rejoin,
		TTL:     ttl,
		Crash:   ttl + time.Second, // it looks for leases that are over twice a second
		URL: func(_ int, addrs []string) string {
			return fmt.Sprintf("etcd://%s/%s?ttl=%v", strings.Join(addrs, ","), folder, ttl)
		},
	}
	c.End = c.endEtcd
	c.secures, c.replace, c.imports = c.secureEtcd, c.replaceEtcd, c.importEtcd
	return c, nil
}

func (c *Coordinator) endEtcd(ctx context.Context, m backend.Member) error {
	return c.etcd(ctx, "root", root, c.Cluster.Addrs(), func(client *clientv3.Client) error {
		r, err := client.Get(ctx, path.Join(folder, m.Line, m.Key))
		if err == nil && len(r.Kvs) > 0 {
			_, err = client.Revoke(ctx, clientv3.LeaseID(r.Kvs[0].Lease))
		}
		return err
	})
}

// secureEtcd makes the users.
func (c *Coordinator) secureEtcd(ctx context.Context, g *guard) error {
	g.login, g.protocols, g.change, g.refused = loginOfUser, []string{"h2"}, c.changeEtcd, c.refusedByEtcd
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Cluster.Addrs(), DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer client.Close()
	rights := clientv3.PermissionType(clientv3.PermReadWrite)
	for _, f := range []func() error{
		func() error { _, err := client.RoleAdd(ctx, user); return err },
		func() error {
			_, err := client.RoleGrantPermission(ctx, user, folder+"/", clientv3.GetPrefixRangeEnd(folder+"/"), rights)
			return err
		},
		func() error { _, err := client.UserAdd(ctx, user, root); return err },
		func() error { _, err := client.UserGrantRole(ctx, user, user); return err },
		func() error { _, err := client.UserAdd(ctx, "root", root); return err },
		func() error { _, err := client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := client.AuthEnable(ctx); return err },
	} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// etcd calls f with a client of the user at the servers with these addresses, past the fronts.
func (c *Coordinator) etcd(ctx context.Context, user, password string, addrs []string, f func(*clientv3.Client) error) error {
	cfg := clientv3.Config{Context: ctx, Endpoints: addrs, DialTimeout: 5 * time.Second, Logger: zap.NewNop()}
	if c.guard != nil {
		cfg.Username, cfg.Password = user, password
	}
	client, err := clientv3.New(cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	return f(client)
}

func (c *Coordinator) changeEtcd(ctx context.Context, next string, tell func() error) error {
	err := c.etcd(ctx, "root", root, c.Cluster.Addrs(), func(client *clientv3.Client) error {
		_, err := client.UserChangePassword(ctx, user, next)
		return err
	})
	if err != nil {
		return err
	}
	return tell()
}

func (c *Coordinator) refusedByEtcd(ctx context.Context, secret string) (bool, error) {
	err := c.etcd(ctx, user, secret, c.Cluster.Addrs(), func(*clientv3.Client) error { return nil })
	if errors.Is(err, rpctypes.ErrAuthFailed) {
		return true, nil
	}
	return false, err
}

func (c *Coordinator) replaceEtcd(ctx context.Context, s *coordtest.Server) error {
	others := slices.DeleteFunc(c.Cluster.Addrs(), func(addr string) bool { return addr == s.Addr() })
	return c.etcd(ctx, "root", root, others, func(client *clientv3.Client) error {
		is, err := client.Status(ctx, s.Addr())
		if err != nil {
			return err
		}
		list, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		id := is.Header.MemberId
		i := slices.IndexFunc(list.Members, func(m *pb.Member) bool { return m.ID == id })
		if i < 0 {
			return fmt.Errorf("member %x at %s is none", id, s.Addr())
		}
		err = insist(ctx, func(ctx context.Context) error {
			_, err := client.MemberRemove(ctx, id)
			if errors.Is(err, rpctypes.ErrMemberNotFound) { // an earlier request has done it
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		s.Kill()
		err = insist(ctx, func(ctx context.Context) error { // etcd takes none until the others have been well for some seconds
			_, err := client.MemberAdd(ctx, list.Members[i].PeerURLs)
			if errors.Is(err, rpctypes.ErrPeerURLExist) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		if err := c.rejoin(ctx, s); err != nil {
			return err
		}
		if is, err := client.Status(ctx, s.Addr()); err != nil || is.Header.MemberId == id {
			return fmt.Errorf("it is the same member again, or cannot be asked: %w", err)
		}
		return nil
	})
}

// insist calls f until it succeeds.
func insist(ctx context.Context, f func(context.Context) error) error {
	wait := backoff.Backoff{Min: 200 * time.Millisecond, Max: time.Second}
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := f(attempt)
		cancel()
		if err == nil || wait.Sleep(ctx) != nil {
			return err
		}
	}
}
