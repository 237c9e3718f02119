package consul

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
)

// scheme is that of the URLs, and the Backend of a [backend.Error].
const scheme = "consul"

func init() {
	backend.Register(scheme, func(ctx context.Context, u *backend.URL) (backend.Backend, error) {
		b, err := Open(ctx, u)
		if err != nil {
			return nil, err
		}
		return b, nil
	})
}

// Open opens the cluster whose agent u names:
//
//	consul://127.0.0.1:8500/app?ttl=15s&node=succession&connect=5s
//
// Everything is optional; the path is [Options].Prefix. Where the URL does not say
// otherwise, the environment of Consul's own tools counts: CONSUL_HTTP_ADDR,
// CONSUL_HTTP_TOKEN, CONSUL_HTTP_TOKEN_FILE, CONSUL_HTTP_SSL, CONSUL_CACERT and
// the others. More parameters:
//
//   - dc, namespace, partition: where the elections live.
//   - agent-node=on: see the warning at [Options].AgentNode.
//   - token-file, token-env: the file, or the environment variable, that holds the
//     ACL token. It is read once.
//   - tls=on, ca-file, cert-file, key-file, server-name: TLS. Each of them
//     switches it on.
//
// Open blocks until a first session is established, ctx ends, or the connect
// timeout has passed ([backend.ErrUnavailable]).
func Open(ctx context.Context, u *backend.URL) (*Backend, error) {
	cfg := api.DefaultConfig()
	o := &Options{
		TTL:            u.Duration("ttl", 0),
		ConnectTimeout: u.Duration("connect", 0),
		Node:           u.Text("node", ""),
		Prefix:         u.Path,
	}
	cfg.Datacenter = u.Text("dc", cfg.Datacenter)
	cfg.Namespace = u.Text("namespace", cfg.Namespace)
	cfg.Partition = u.Text("partition", cfg.Partition)
	invalid := func(why string) (*Backend, error) {
		return nil, fail("open", "", fmt.Errorf("%w URL %s: %s", backend.ErrInvalid, u, why))
	}

	cfg.TokenFile = u.Text("token-file", cfg.TokenFile)
	if name := u.Text("token-env", ""); name != "" {
		cfg.Token, cfg.TokenFile = os.Getenv(name), ""
		if cfg.Token == "" {
			return invalid("the environment variable " + name + " that token-env names is empty")
		}
	}

	t := &cfg.TLSConfig
	tls, agentNode := u.Text("tls", ""), u.Text("agent-node", "")
	for _, p := range []struct {
		name string
		to   *string
	}{
		{"ca-file", &t.CAFile}, {"cert-file", &t.CertFile}, {"key-file", &t.KeyFile}, {"server-name", &t.Address},
	} {
		if v := u.Text(p.name, ""); v != "" {
			*p.to = v
			cfg.Scheme = "https"
		}
	}
	if err := u.Err(); err != nil {
		return nil, fail("open", "", err)
	}
	switch tls {
	case "":
	case "on":
		cfg.Scheme = "https"
	default:
		return invalid("the only value of parameter tls is on")
	}
	switch agentNode {
	case "":
	case "on":
		o.AgentNode = true
	default:
		return invalid("the only value of parameter agent-node is on")
	}
	switch len(u.Hosts) {
	case 0:
	case 1:
		cfg.Address = u.HostPorts("8500")[0]
	default:
		return invalid("name one agent, best the one on this machine; it knows the servers")
	}

	b, err := New(cfg, o)
	if err != nil {
		return nil, err
	}
	if _, err := b.Session(ctx); err != nil {
		// The session's error is the one that matters.
		_ = b.Close()
		return nil, err
	}
	return b, nil
}
