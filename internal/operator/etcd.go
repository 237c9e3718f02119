package target

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/succession-dev/succession/backend"
)

type etcd struct {
	config clientv3.Config
	prefix string
}

func newEtcd(u *backend.URL) (operator, error) {
	prefix := strings.TrimPrefix(u.Path, "/")
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	tls, err := tlsConfig(u)
	if err != nil {
		return nil, err
	}
	password, err := secret(u, "password")
	if err != nil {
		return nil, err
	}
	return &etcd{clientv3.Config{
		Endpoints:   u.HostPorts("2379"),
		DialTimeout: 5 * time.Second,
		TLS:         tls,
		Username:    u.Text("user", ""),
		Password:    password,
		Logger:      zap.NewNop(), // what goes wrong comes back as errors
	}, prefix}, nil
}

// with calls f with a client that ends with it.
func (e *etcd) with(f func(*clientv3.Client) error) error {
	c, err := clientv3.New(e.config)
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

func (e *etcd) exists(ctx context.Context, name string) (there bool, err error) {
	err = e.with(func(c *clientv3.Client) error {
		r, err := c.Txn(ctx).Then(
			clientv3.OpGet(e.prefix+name, clientv3.WithCountOnly()),
			clientv3.OpGet(e.prefix+name+"/", clientv3.WithPrefix(), clientv3.WithCountOnly()),
		).Commit()
		if err == nil {
			there = r.Responses[0].GetResponseRange().Count+r.Responses[1].GetResponseRange().Count > 0
		}
		return err
	})
	return there, err
}

func (e *etcd) clear(ctx context.Context, name string) error {
	if name == "" {
		return errPrefix
	}
	return e.drop(ctx, name)
}

func (e *etcd) remove(ctx context.Context, m backend.Member) error {
	return e.with(func(c *clientv3.Client) error {
		r, err := c.Delete(ctx, e.prefix+m.Line+"/"+m.Key)
		if err == nil && r.Deleted == 0 {
			err = fmt.Errorf("%s does not stand in %s", m.Key, m.Line)
		}
		return err
	})
}

func (e *etcd) drop(ctx context.Context, line string) error {
	return e.with(func(c *clientv3.Client) error {
		_, err := c.Txn(ctx).Then(
			clientv3.OpDelete(e.prefix+line+"/", clientv3.WithPrefix()),
			clientv3.OpDelete(e.prefix+line),
		).Commit()
		return err
	})
}
