package operator

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/agent"
)

type consul struct {
	kv     *api.KV
	prefix string
}

func newConsul(u *backend.URL) (Operator, error) {
	c, err := agent.Config(u)
	if err != nil {
		return nil, err
	}
	c.Transport.DisableKeepAlives = true // the client has no Close, which would close idle connections
	client, err := api.NewClient(c)
	if err != nil {
		return nil, err
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &consul{client.KV(), prefix}, nil
}

func (c *consul) Exists(ctx context.Context, name string) (bool, error) {
	for _, at := range []string{name, name + "/"} {
		keys, _, err := c.kv.Keys(c.prefix+at, "/", (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
		if err != nil {
			return false, err
		}
		for _, key := range keys {
			if key == c.prefix+name || strings.HasPrefix(key, c.prefix+name+"/") {
				return true, nil
			}
		}
	}
	return false, nil
}

func (c *consul) Clear(ctx context.Context, name string) error { return c.Drop(ctx, name) }

func (c *consul) Remove(ctx context.Context, m backend.Member) error {
	_, err := c.kv.Delete(c.prefix+m.Line+"/"+m.Key, (&api.WriteOptions{}).WithContext(ctx))
	return err
}

func (c *consul) Drop(ctx context.Context, line string) error {
	ok, _, _, err := c.kv.Txn(api.KVTxnOps{
		{Verb: api.KVDelete, Key: c.prefix + line},
		{Verb: api.KVDeleteTree, Key: c.prefix + line + "/"},
	}, (&api.QueryOptions{}).WithContext(ctx))
	if err == nil && !ok {
		err = fmt.Errorf("the deletion of %s was refused", line)
	}
	return err
}
