package operator

import (
	"context"
	"errors"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/port"
	"github.com/succession-dev/succession/internal/security"
)

type etcd struct {
	config clientv3.Config
	prefix string
}

func newEtcd(u *backend.URL) (Operator, error) {
	prefix := strings.TrimPrefix(u.Path, "/")
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	tls, err := security.TLSOf(u).Config()
	if err != nil {
		return nil, err
	}
	user, password, err := security.LoginOf(u).Read()
	if err != nil {
		return nil, err
	}
	return &etcd{clientv3.Config{
		Endpoints:   u.HostPorts(port.Etcd),
		DialTimeout: 5 * time.Second,
		TLS:         tls,
		Username:    user,
		Password:    password,
		Logger:      zap.NewNop(), // what goes wrong comes back as errors
	}, prefix}, nil
}

// with calls f with a new client, and closes the client afterwards.
func (e *etcd) with(f func(*clientv3.Client) error) error {
	c, err := clientv3.New(e.config)
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

func (e *etcd) Exists(ctx context.Context, name string) (there bool, err error) {
	err = e.with(func(c *clientv3.Client) error {
		r, err := c.Txn(ctx).Then(
			clientv3.OpGet(e.prefix+name, clientv3.WithCountOnly()),
			clientv3.OpGet(e.prefix+name+"/", clientv3.WithPrefix(), clientv3.WithCountOnly()),
		).Commit()
		if err != nil {
			return err
		}
		if len(r.Responses) != 2 {
			return errors.New("the answer is none to the request; what answers there?")
		}
		for _, part := range r.Responses {
			there = there || part.GetResponseRange().GetCount() > 0
		}
		return nil
	})
	return there, err
}

func (e *etcd) Clear(ctx context.Context, name string) error { return e.Drop(ctx, name) }

func (e *etcd) Remove(ctx context.Context, m backend.Member) error {
	return e.with(func(c *clientv3.Client) error {
		_, err := c.Delete(ctx, e.prefix+m.Line+"/"+m.Key)
		return err
	})
}

func (e *etcd) Drop(ctx context.Context, line string) error {
	return e.with(func(c *clientv3.Client) error {
		_, err := c.Txn(ctx).Then(
			clientv3.OpDelete(e.prefix+line+"/", clientv3.WithPrefix()),
			clientv3.OpDelete(e.prefix+line),
		).Commit()
		return err
	})
}
