package consul

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// An operator is a [coordinator.Operator] with Consul's own client.
type operator struct {
	kv     *api.KV
	prefix string
}

func newOperator(u *coordinator.URL) (coordinator.Operator, error) {
	c, err := agentConfig(u)
	if err != nil {
		return nil, err
	}
	c.Transport.DisableKeepAlives = true // the client has no Close, which would close idle connections
	client, err := api.NewClient(c)
	if err != nil {
		return nil, err
	}
	c.HttpClient.Transport = bounded{c.HttpClient.Transport} // NewClient has made it
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &operator{client.KV(), prefix}, nil
}

func (o *operator) Exists(ctx context.Context, name string) (bool, error) {
	for _, at := range []string{name, name + "/"} {
		keys, _, err := o.kv.Keys(o.prefix+at, "/", (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
		if err != nil {
			return false, err
		}
		for _, key := range keys {
			if key == o.prefix+name || strings.HasPrefix(key, o.prefix+name+"/") {
				return true, nil
			}
		}
	}
	return false, nil
}

func (o *operator) Clear(ctx context.Context, name string) error { return o.Drop(ctx, name) }

func (o *operator) Remove(ctx context.Context, m backend.Member) error {
	_, err := o.kv.Delete(o.prefix+m.Line+"/"+m.Key, (&api.WriteOptions{}).WithContext(ctx))
	return err
}

func (o *operator) Drop(ctx context.Context, line string) error {
	ok, _, _, err := o.kv.Txn(api.KVTxnOps{
		{Verb: api.KVDelete, Key: o.prefix + line},
		{Verb: api.KVDeleteTree, Key: o.prefix + line + "/"},
	}, (&api.QueryOptions{}).WithContext(ctx))
	if err == nil && !ok {
		err = fmt.Errorf("the deletion of %s was refused", line)
	}
	return err
}
