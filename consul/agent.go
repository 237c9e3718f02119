package consul

import (
	"fmt"
	"os"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// agentConfig returns the configuration of Consul's client that u asks for. What u does not say is
// taken from the environment of Consul's own tools. agentConfig returns [backend.ErrInvalid] if a
// parameter is wrong; [coordinator.URL.Err] is for the caller.
func agentConfig(u *coordinator.URL) (*api.Config, error) {
	c := api.DefaultConfig()
	c.Datacenter = u.Text("dc", c.Datacenter)
	c.Namespace = u.Text("namespace", c.Namespace)
	c.Partition = u.Text("partition", c.Partition)
	c.TokenFile = u.Text("token-file", c.TokenFile)
	env, tls := u.Text("token-env", ""), u.Text("tls", "")
	if env != "" {
		c.Token, c.TokenFile = os.Getenv(env), ""
	}
	t := &c.TLSConfig
	for _, p := range []struct {
		name string
		to   *string
	}{{"ca-file", &t.CAFile}, {"cert-file", &t.CertFile}, {"key-file", &t.KeyFile}, {"server-name", &t.Address}} {
		if v := u.Text(p.name, ""); v != "" {
			*p.to, c.Scheme = v, "https"
		}
	}
	if tls == "on" {
		c.Scheme = "https"
	}
	if len(u.Hosts) == 1 {
		c.Address = u.HostPorts(defaultPort)[0]
	}
	invalid := func(why string) (*api.Config, error) {
		return nil, fmt.Errorf("%w URL %s: %s", backend.ErrInvalid, u, why)
	}
	switch {
	case env != "" && u.Text("token-file", "") != "":
		return invalid("both token-file and token-env: give one of them")
	case env != "" && c.Token == "":
		return invalid("the environment variable " + env + " that token-env names is empty")
	case tls != "" && tls != "on":
		return invalid("the only value of parameter tls is on")
	case len(u.Hosts) > 1:
		return invalid("name one agent, best the one on this machine; it knows the servers")
	}
	return c, nil
}
