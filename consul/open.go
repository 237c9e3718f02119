package consul

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/security"
)

// Open opens a backend on the cluster of the agent that u names:
//
//	consul://127.0.0.1:8500/app?ttl=15s&node=succession&connect=5s
//
// Everything is optional. The path is [Options].Prefix; ttl, node and connect are TTL, Node
// and ConnectTimeout. What the URL does not say is taken from the environment of Consul's
// own tools: CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN, CONSUL_HTTP_TOKEN_FILE, CONSUL_HTTP_SSL,
// CONSUL_CACERT and the others. More parameters:
//
//   - dc, namespace, partition: where the elections live.
//   - agent-node=on: see the warning at [Options].AgentNode.
//   - token-file, token-env: the file, or the environment variable, that holds the
//     ACL token.
//   - tls=on, ca-file, cert-file, key-file, server-name: TLS. Each of them
//     switches it on.
//
// Files may be replaced while the backend is open: those for TLS are read for each connection, and the
// token for each request.
//
// Open does not connect; [Backend.Session] does. The caller closes the backend.
func Open(u *coordinator.URL) (*Backend, error) {
	cfg, bad := agentConfig(u)
	o, err := optionsOf(u)
	if err = cmp.Or(err, bad); err != nil {
		return nil, driver.Wrap("open", "", err)
	}
	cfg.Transport = nil // it is nobody's
	var token *security.Secret
	if named := security.NewSecret("token", "", u.Text("token-env", "")); named.Named() {
		token = named
	}
	return open(cfg, o, token)
}

// optionsOf returns the options that a URL names, after agentConfig has read its own parameters.
func optionsOf(u *coordinator.URL) (*Options, error) {
	o := &Options{
		TTL:            u.Duration("ttl", 0),
		ConnectTimeout: u.Duration("connect", 0),
		Node:           u.Text("node", ""),
		Prefix:         u.Path,
	}
	agentNode := u.Text("agent-node", "")
	o.AgentNode = agentNode == "on"
	err := u.Err()
	if err == nil && agentNode != "" && !o.AgentNode {
		err = fmt.Errorf("%w URL %s: the only value of parameter agent-node is on", backend.ErrInvalid, u)
	}
	if err == nil && o.AgentNode && u.Text("node", "") != "" {
		err = fmt.Errorf("%w URL %s: with agent-node=on the sessions are on the agent's node; leave out node", backend.ErrInvalid, u)
	}
	return o, err
}

// closeBound is how long Close waits for Consul at most.
const closeBound = 2 * time.Second

// A Backend is a handle on one Consul cluster, through one agent. It is safe for
// concurrent use.
type Backend struct {
	o        *Options
	c        *client
	sessions *kit.Sessions
	history  history
}

var _ backend.Backend = (*Backend)(nil)

// New returns a backend on the agent that cfg names. It does not block and does not
// connect: the first Session does. It fails with [backend.ErrInvalid] for settings that
// cannot be used. o may be nil.
//
// If cfg is nil, New uses the environment of Consul's own tools. It does not change cfg. It copies
// the transport, because the backend needs several that do not disturb each other. Its copies ping
// HTTP/2 connections every sixth of the TTL, unless the transport says otherwise. A http.Client
// with a RoundTripper of another type is used as it is: it must itself notice silent connections.
// Each request has a time limit of its own, and the backend limits its connections: the Timeout of a http.Client, and the
// ResponseHeaderTimeout and MaxConnsPerHost of a transport, do not count, and WaitTime of cfg must be zero.
func New(cfg *api.Config, o *Options) (*Backend, error) { return open(cfg, o, nil) }

// open is New with the secret that is the token; nil means what cfg says.
func open(cfg *api.Config, o *Options, token *security.Secret) (*Backend, error) {
	o, err := o.filled()
	if err != nil {
		return nil, driver.Wrap("open", "", err)
	}
	if cfg != nil && cfg.WaitTime != 0 {
		return nil, driver.Wrap("open", "", fmt.Errorf("%w: api.Config.WaitTime is set; leave it at zero, every query has a time of its own", backend.ErrInvalid))
	}
	b := &Backend{o: o}
	b.sessions = kit.NewSessions(kit.Config{Scheme: driver, Open: b.open, Connect: o.ConnectTimeout, Attempt: 2 * o.attempt(), Patience: closeBound, CheckName: checkName})
	if b.c, err = newClient(b.sessions.Context(), cfg, o, token); err != nil {
		_ = b.sessions.Close() // there are none
		return nil, err
	}
	return b, nil
}

// Session returns the live session, and opens one if there is none; see
// [backend.Backend]. It blocks for about five round trips, at most for
// [Options].ConnectTimeout.
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	return b.sessions.Session(ctx)
}

// open opens a session. If the creation was not answered, Consul may have a session
// that we do not know of; it has no members, and Consul ends it in time.
func (b *Backend) open(ctx context.Context) (kit.Session, error) {
	// A third of the TTL must be left, however much time there is.
	ctx, cancel := context.WithTimeout(ctx, 2*b.o.attempt())
	defer cancel()
	t, err := b.c.found(ctx)
	if errors.Is(err, errNoNode) && !b.o.AgentNode {
		b.o.Logger.Info("registering the catalog node of sessions", "node", b.o.Node)
		if err := b.c.registerNode(ctx); err != nil {
			return nil, err
		}
		t, err = b.c.found(ctx)
	}
	if err != nil {
		return nil, err
	}
	s := newSession(b, t)
	// The answer to the creation does not say at which index of the log it was done.
	entry, err := b.c.renew(ctx, t.id)
	gone := err == nil && entry == nil
	switch {
	case gone:
		err = fmt.Errorf("%w: the new session %s was gone at once", backend.ErrUnavailable, t.id)
	case err == nil:
		if err = b.history.reached(entry.CreateIndex); err == nil {
			err = b.history.verify(ctx, b.c)
		}
	}
	if err == nil && !s.lease.Hold(true) {
		err = fmt.Errorf("%w: the session was opened too late", backend.ErrUnavailable)
	}
	if err != nil {
		s.mu.Lock()
		s.known = gone
		s.mu.Unlock()
		s.End(err)
		return nil, err
	}
	s.Start(s.keepAlive, s.sweep, s.guard, s.ration)
	return s, nil
}

// Close ends the session, if there is one, and closes all connections; see
// [backend.Backend]. It waits for Consul for two seconds at most, also on behalf of
// sessions that ended before. If Consul has not answered by then, the error says that the
// members stand until Consul ends the session, up to twice the TTL later.
func (b *Backend) Close() error {
	err := b.sessions.Close()
	b.c.close()
	return err
}
