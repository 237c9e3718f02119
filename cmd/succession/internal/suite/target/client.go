package target

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/conformance/proxy"
)

// A client is a backend with proxies of its own in front of the servers. Where no fault
// needs proxies it has none.
type client struct {
	backend.Backend
	proxies []*proxy.Proxy
}

// open opens a client.
func (t *Target) open(ctx context.Context) (_ backend.Backend, err error) {
	c := new(client)
	url := t.raw
	if t.proxied() {
		defer func() {
			if err != nil {
				c.closeProxies()
			}
		}()
		addrs := make([]string, len(t.hosts))
		for i, host := range t.hosts {
			p, err := proxy.Start(host, nil)
			if err != nil {
				return nil, err
			}
			c.proxies = append(c.proxies, p)
			addrs[i] = p.Addr()
		}
		url = t.through(addrs)
	}
	if c.Backend, err = succession.Connect(ctx, url); err != nil {
		return nil, err
	}
	return c, nil
}

// Close implements [backend.Backend].
func (c *client) Close() error {
	err := c.Backend.Close()
	c.closeProxies()
	return err
}

func (c *client) closeProxies() {
	for _, p := range c.proxies {
		p.Close()
	}
}

// through returns the URL with the proxies in the place of its hosts.
func (t *Target) through(proxies []string) string {
	url := withHosts(t.raw, proxies)
	if t.name != "" {
		url = withParam(url, "server-name="+t.name)
	}
	return url
}

// tlsName returns the name by which TLS knows all the servers, where the URL asks for
// TLS and does not say it.
func tlsName(u *coordinator.URL, hosts []string) (string, error) {
	if !connect.AsksForTLS(u) || u.Text("server-name", "") != "" {
		return "", nil
	}
	name := ""
	for _, hostPort := range hosts {
		host, _, err := net.SplitHostPort(hostPort)
		if err != nil {
			return "", err
		}
		if name != "" && host != name {
			return "", errors.New("the URL names several servers and no server-name that stands in the certificates of all")
		}
		name = host
	}
	return name, nil
}

// withHosts returns the URL with other hosts.
func withHosts(rawURL string, hosts []string) string {
	scheme, rest, _ := strings.Cut(rawURL, "//")
	tail := ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		tail = rest[i:]
	}
	return scheme + "//" + strings.Join(hosts, ",") + tail
}

// withParam returns the URL with one more parameter.
func withParam(rawURL, param string) string {
	if strings.Contains(rawURL, "?") {
		return rawURL + "&" + param
	}
	return rawURL + "?" + param
}
