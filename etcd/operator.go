package etcd

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// An operator is a [coordinator.Operator] with etcd's own client.
type operator struct{ b *Backend } // which opens no session

func newOperator(u *coordinator.URL) (coordinator.Operator, error) {
	b, err := open(u)
	if err != nil {
		return nil, err
	}
	return &operator{b}, nil
}

// with calls f with a new client, and closes the client afterwards.
func (o *operator) with(ctx context.Context, f func(*clientv3.Client) error) error {
	c, err := o.b.dial(ctx)
	if err != nil {
		return err
	}
	defer closeClient(c)
	return f(c)
}

func (o *operator) Exists(ctx context.Context, name string) (there bool, err error) {
	err = o.with(ctx, func(c *clientv3.Client) error {
		r, err := c.Txn(ctx).Then(
			clientv3.OpGet(o.b.o.Prefix+name, clientv3.WithCountOnly()),
			clientv3.OpGet(o.b.o.Prefix+name+"/", clientv3.WithPrefix(), clientv3.WithCountOnly()),
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
		_, err := c.Delete(ctx, o.b.o.Prefix+m.Line+"/"+m.Key)
		return err
	})
}

func (o *operator) Drop(ctx context.Context, line string) error {
	return o.with(ctx, func(c *clientv3.Client) error {
		_, err := c.Txn(ctx).Then(
			clientv3.OpDelete(o.b.o.Prefix+line+"/", clientv3.WithPrefix()),
			clientv3.OpDelete(o.b.o.Prefix+line),
		).Commit()
		return err
	})
}
