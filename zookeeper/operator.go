package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/internal/security"
)

// An operator is a [coordinator.Operator] with the client library.
type operator struct {
	hosts          []string
	root           string
	tls            *tls.Config // nil for none
	user, password string
}

func newOperator(u *coordinator.URL) (coordinator.Operator, error) {
	o := &operator{hosts: u.HostPorts(defaultPort), root: "/" + strings.Trim(u.Path, "/")}
	var err error
	if o.tls, err = security.TLSOf(u).Config(); err != nil {
		return nil, err
	}
	o.user, o.password, err = security.LoginOf(u).Read()
	return o, err
}

// with calls f with a new connection, and closes the connection afterwards.
func (o *operator) with(ctx context.Context, f func(*zk.Conn) error) error {
	c, _, err := zk.Connect(o.hosts, 10*time.Second,
		zk.WithLogger(libraryLog{slog.New(slog.DiscardHandler)}), zk.WithDialer(o.dial), zk.WithHostProvider(new(unresolved)))
	if err != nil {
		return err
	}
	stop := sync.OnceFunc(c.Close)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // the library's calls take no context
	if o.user != "" {
		err = c.AddAuth("digest", []byte(o.user+":"+o.password))
	}
	if err == nil {
		err = f(c)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (o *operator) dial(network, addr string, timeout time.Duration) (net.Conn, error) {
	d := &net.Dialer{Timeout: timeout}
	if o.tls == nil {
		return d.Dial(network, addr)
	}
	return tls.DialWithDialer(d, network, addr, o.tls)
}

// unresolved is a host provider that keeps the names of servers, because TLS verifies them.
// The library's own provider replaces names by addresses. One goroutine uses it.
type unresolved struct {
	hosts []string
	next  int
}

func (u *unresolved) Init(hosts []string) error {
	u.hosts = hosts
	return nil
}

func (u *unresolved) Len() int { return len(u.hosts) }

// Next returns the next server, and makes the library pause after each round.
func (u *unresolved) Next() (server string, pause bool) {
	server = u.hosts[u.next%len(u.hosts)]
	pause = u.next > 0 && u.next%len(u.hosts) == 0
	u.next++
	return server, pause
}

func (u *unresolved) Connected() { u.next = 1 }

func (o *operator) path(names ...string) string {
	return path.Join(append([]string{o.root}, names...)...)
}

func (o *operator) Exists(ctx context.Context, name string) (there bool, err error) {
	err = o.with(ctx, func(c *zk.Conn) error {
		there, _, err = c.Exists(o.path(name))
		return err
	})
	return there, err
}

func (o *operator) Clear(ctx context.Context, name string) error {
	return o.with(ctx, func(c *zk.Conn) error { return deleteTree(c, o.path(name)) })
}

// deleteTree deletes the znode and all below it.
func deleteTree(c *zk.Conn, at string) error {
	for {
		names, _, err := c.Children(at)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := deleteTree(c, path.Join(at, name)); err != nil {
				return err
			}
		}
		err = c.Delete(at, -1)
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if !errors.Is(err, zk.ErrNotEmpty) { // if it is, a member came meanwhile
			return err
		}
	}
}

func (o *operator) Remove(ctx context.Context, m backend.Member) error {
	return o.with(ctx, func(c *zk.Conn) error {
		err := c.Delete(o.path(m.Line, m.Key), -1)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	})
}

func (o *operator) Drop(ctx context.Context, line string) error {
	at := o.path(line)
	return o.with(ctx, func(c *zk.Conn) error {
		for wait := pauses(); ; {
			names, _, err := c.Children(at)
			if errors.Is(err, zk.ErrNoNode) {
				return nil
			}
			if err != nil {
				return err
			}
			ops := make([]any, 0, len(names)+1)
			for _, name := range append(names, "") { // the election itself is the last
				ops = append(ops, &zk.DeleteRequest{Path: path.Join(at, name), Version: -1})
			}
			results, err := c.Multi(ops...)
			child := slices.IndexFunc(results, func(r zk.MultiResponse) bool { return r.Error == zk.ErrNotEmpty })
			if 0 <= child && child < len(names) {
				return notEmpty(path.Join(at, names[child]), zk.ErrNotEmpty)
			}
			// On these two errors somebody has joined or left meanwhile.
			if !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNotEmpty) {
				return err
			}
			if err := wait.Sleep(ctx); err != nil {
				return err
			}
		}
	})
}
