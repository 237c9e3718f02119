package operator

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/port"
	"github.com/succession-dev/succession/internal/security"
)

type consul struct {
	kv     *api.KV
	prefix string
}

func newConsul(u *backend.URL) (Operator, error) {
	c := api.DefaultConfig()
	if len(u.Hosts) > 0 {
		c.Address = u.HostPorts(port.Consul)[0]
	}
	c.Datacenter = u.Text("dc", c.Datacenter)
	c.Namespace = u.Text("namespace", c.Namespace)
	c.Partition = u.Text("partition", c.Partition)
	if security.TLSOf(u) != (security.TLS{}) { // DefaultConfig has read the environment
		c.Scheme = "https"
	}
	c.TLSConfig.CAFile = u.Text("ca-file", c.TLSConfig.CAFile)
	c.TLSConfig.CertFile = u.Text("cert-file", c.TLSConfig.CertFile)
	c.TLSConfig.KeyFile = u.Text("key-file", c.TLSConfig.KeyFile)
	c.TLSConfig.Address = u.Text("server-name", c.TLSConfig.Address)
	token, err := security.SecretOf(u, "token").Read()
	if err != nil {
		return nil, err
	}
	if token != "" {
		c.Token, c.TokenFile = token, ""
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
