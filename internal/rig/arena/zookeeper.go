//go:build linux

package arena

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func startZooKeeper(ctx context.Context, _ string, n int, _ bool) (*Coordinator, error) {
	z, err := coordtest.StartZooKeeper(ctx, &coordtest.ZooKeeperOptions{Nodes: n, Links: n > 1 && Links()})
	if err != nil {
		return nil, err
	}
	const ttl = 4 * time.Second
	c := &Coordinator{
		Cluster: &z.Cluster,
		rejoin:  func(ctx context.Context, s *coordtest.Server) error { return s.Wipe(ctx) },
		TTL:     ttl,
		Crash:   ttl + ttl/4, // it ends sessions at whole ticks
		URL: func(_ int, addrs []string) string {
			return fmt.Sprintf("zookeeper://%s/%s?ttl=%v", strings.Join(addrs, ","), folder, ttl)
		},
	}
	c.secures, c.replace, c.imports = c.secureZooKeeper, c.replaceZooKeeper, c.importZooKeeper
	return c, nil
}

func (c *Coordinator) secureZooKeeper(_ context.Context, g *guard) error {
	g.login, g.change, g.refused = loginOfUser, c.changeZooKeeper, c.refusedByZooKeeper
	return nil
}

// replaceZooKeeper gives the new server the number of the old one, as ZooKeeper knows its servers by the numbers of its configuration. It
// must not vote before the others have a leader: with its empty log it could elect one that lacks what was committed.
func (c *Coordinator) replaceZooKeeper(ctx context.Context, s *coordtest.Server) error {
	s.Kill()
	if _, err := c.LeaderAfter(ctx, s); err != nil {
		return err
	}
	return c.rejoin(ctx, s)
}

// changeZooKeeper gives every znode to the user with both passwords, and in the end with next alone. In between all
// connections are broken, so that clients show next from then on.
func (c *Coordinator) changeZooKeeper(ctx context.Context, next string, tell func() error) error {
	old := c.guard.secret
	if old == "" {
		return tell()
	}
	open := zk.WorldACL(zk.PermRead)
	mine := zk.DigestACL(zk.PermAll, user, next)
	if err := c.own(ctx, []string{old}, slices.Concat(mine, zk.DigestACL(zk.PermAll, user, old), open)); err != nil {
		return err
	}
	if err := tell(); err != nil {
		return err
	}
	for _, f := range c.guard.fronts {
		f.replace(c.guard.serve())
	}
	return c.own(ctx, []string{old, next}, slices.Concat(mine, open))
}

// own gives all znodes of the run this ACL, by whatever one of the passwords allows.
func (c *Coordinator) own(ctx context.Context, passwords []string, acl []zk.ACL) error {
	return c.zookeeper(ctx, passwords, func(conn *zk.Conn) error {
		var each func(path string) error
		each = func(path string) error {
			if _, err := conn.SetACL(path, acl, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
			children, _, err := conn.Children(path)
			for _, child := range children {
				if err := each(path + "/" + child); err != nil {
					return err
				}
			}
			if errors.Is(err, zk.ErrNoNode) { // it has gone
				return nil
			}
			return err
		}
		return each("/" + folder)
	})
}

func (c *Coordinator) zookeeper(ctx context.Context, passwords []string, f func(*zk.Conn) error) error {
	conn, _, err := zk.Connect(c.Cluster.Addrs(), 10*time.Second, zk.WithLogger(mute{}))
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Close)() // the library's calls take no context
	for _, password := range passwords {
		if err := conn.AddAuth("digest", []byte(user+":"+password)); err != nil {
			return err
		}
	}
	return f(conn)
}

type mute struct{}

func (mute) Printf(string, ...any) {}

func (c *Coordinator) refusedByZooKeeper(ctx context.Context, secret string) (refused bool, err error) {
	err = c.zookeeper(ctx, []string{secret}, func(conn *zk.Conn) error {
		_, err := conn.Create("/"+folder+"/"+strings.ToLower(secret), nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		return err
	})
	if errors.Is(err, zk.ErrNoAuth) {
		return true, nil
	}
	return false, err
}
