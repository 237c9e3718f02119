package etcd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/internal/security"
)

// An operator is a [coordinator.Operator] with etcd's own client.
type operator struct {
	config clientv3.Config
	prefix string
}

func newOperator(u *coordinator.URL) (coordinator.Operator, error) {
	tls, err := security.TLSOf(u).Config()
	if err != nil {
		return nil, err
	}
	user, password, err := security.LoginOf(u).Read()
	if err != nil {
		return nil, err
	}
	return &operator{clientv3.Config{
		Endpoints:   u.HostPorts(defaultPort),
		DialTimeout: 5 * time.Second,
		TLS:         tls,
		Username:    user,
		Password:    password,
		Logger:      zap.NewNop(), // what goes wrong comes back as errors

		MaxCallRecvMsgSize: maxAnswer,
	}, prefixOf(u.Path)}, nil
}

// with calls f with a new client, and closes the client afterwards.
func (o *operator) with(ctx context.Context, f func(*clientv3.Client) error) error {
	config := o.config
	config.Context = ctx // New asks for a token if there is a user
	c, err := clientv3.New(config)
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

func (o *operator) Exists(ctx context.Context, name string) (there bool, err error) {
	err = o.with(ctx, func(c *clientv3.Client) error {
		r, err := c.Txn(ctx).Then(
			clientv3.OpGet(o.prefix+name, clientv3.WithCountOnly()),
			clientv3.OpGet(o.prefix+name+"/", clientv3.WithPrefix(), clientv3.WithCountOnly()),
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

func (o *operator) Clear(ctx context.Context, name string) error { return o.Drop(ctx, name) }

func (o *operator) Remove(ctx context.Context, m backend.Member) error {
	return o.with(ctx, func(c *clientv3.Client) error {
		_, err := c.Delete(ctx, o.prefix+m.Line+"/"+m.Key)
		return err
	})
}

func (o *operator) Drop(ctx context.Context, line string) error {
	return o.with(ctx, func(c *clientv3.Client) error {
		_, err := c.Txn(ctx).Then(
			clientv3.OpDelete(o.prefix+line+"/", clientv3.WithPrefix()),
			clientv3.OpDelete(o.prefix+line),
		).Commit()
		return err
	})
}
