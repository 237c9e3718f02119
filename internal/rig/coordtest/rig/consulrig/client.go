// Package consulrig makes those faults of the conformance suite that need the protocol or the
// tools of Consul.
package consulrig

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

// A Client is a [rig.Client]. A backend uses its Config.
type Client struct {
	server   *coordtest.Server // behind the proxy
	proxy    *proxy.Proxy
	requests atomic.Int64

	mu      sync.Mutex
	session string // the newest that was created
}

var _ rig.Client = (*Client)(nil)

// Start starts a client's proxy before the server.
func Start(server *coordtest.Server) (*Client, error) {
	p, err := coordtest.StartProxy(server.Addr())
	if err != nil {
		return nil, err
	}
	return &Client{server: server, proxy: p}, nil
}

// Config returns the configuration of a backend that goes through the proxy.
func (c *Client) Config() *api.Config {
	return &api.Config{Address: c.proxy.Addr(), Transport: &http.Transport{DialContext: c.dial}}
}

// Server returns the server behind the proxy.
func (c *Client) Server() *coordtest.Server { return c.server }

// Proxy implements [rig.Client].
func (c *Client) Proxy() *proxy.Proxy { return c.proxy }

// Requests implements [rig.Client].
func (c *Client) Requests() int64 { return c.requests.Load() }

// Close implements [rig.Client].
func (c *Client) Close() { c.proxy.Close() }

// LoseAnswer implements [rig.Client]. Reads are transactions with a parameter.
func (c *Client) LoseAnswer() {
	c.proxy.LoseAnswers(writes)
}

// HoldBack implements [rig.Client].
func (c *Client) HoldBack(skip int) (held func() bool, release func()) {
	return c.proxy.HoldBack(skip, writes)
}

func writes(request []byte) bool { return bytes.HasPrefix(request, []byte("PUT /v1/txn HTTP")) }

// Expire implements [rig.Client]: it destroys the session.
func (c *Client) Expire(ctx context.Context) error {
	c.mu.Lock()
	id := c.session
	c.mu.Unlock()
	if id == "" {
		return rig.ErrNoSession
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	operator, err := api.NewClient(&api.Config{Address: c.server.Addr(), Transport: transport})
	if err == nil {
		_, err = operator.Session().Destroy(id, (&api.WriteOptions{}).WithContext(ctx))
	}
	return err
}

func (c *Client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := rig.DialUnlabelled(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &observed{Conn: conn, by: c}, nil
}

// observed counts requests, and reads the sessions that are created. A connection of
// HTTP/1.1 has one request at a time, whose first line comes in one write.
type observed struct {
	net.Conn
	by      *Client
	creates atomic.Bool // the request creates a session, and its answer has not been read
}

var (
	requestLine = regexp.MustCompile(`^[A-Z]+ /v1/\S* HTTP/1\.1\r\n`)
	sessionID   = regexp.MustCompile(`"ID":\s*"([0-9a-f-]{36})"`)
)

func (o *observed) Write(b []byte) (int, error) {
	if requestLine.Match(b) {
		o.by.requests.Add(1)
		o.creates.Store(bytes.HasPrefix(b, []byte("PUT /v1/session/create")))
	}
	return o.Conn.Write(b)
}

func (o *observed) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	if o.creates.Load() {
		if found := sessionID.FindSubmatch(b[:n]); found != nil {
			o.creates.Store(false)
			o.by.mu.Lock()
			o.by.session = string(found[1])
			o.by.mu.Unlock()
		}
	}
	return n, err
}
