// Package etcdrig makes those faults of the conformance suite that need the protocol or the
// tools of etcd.
package etcdrig

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

// A Client is a [rig.Client] with the client of etcd that a backend uses.
type Client struct {
	*clientv3.Client
	server string // behind the proxy
	proxy  *proxy.Proxy
	sent   atomic.Int64
	armed  atomic.Bool
	writes writes
	lease  atomic.Int64 // the newest that was granted
}

var _ rig.Client = (*Client)(nil)

// Start starts a client of the server, and its proxy.
func Start(server string, opts ...grpc.DialOption) (*Client, error) {
	p, err := coordtest.StartProxy(server)
	if err != nil {
		return nil, err
	}
	c := &Client{server: server, proxy: p}
	c.Client, err = Dial([]string{p.Addr()}, append(opts, grpc.WithStatsHandler(counter{&c.sent}), grpc.WithChainUnaryInterceptor(c.intercept))...)
	if err != nil {
		p.Close()
		return nil, err
	}
	return c, nil
}

// Dial returns a client of etcd that connects again quickly.
func Dial(addrs []string, opts ...grpc.DialOption) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:            addrs,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		Logger:               zap.NewNop(),
		DialOptions: append(opts, grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: 3 * time.Second,
		})),
	})
}

// Server returns the address of the server behind the proxy.
func (c *Client) Server() string { return c.server }

// Proxy implements [rig.Client].
func (c *Client) Proxy() *proxy.Proxy { return c.proxy }

// Requests implements [rig.Client].
func (c *Client) Requests() int64 { return c.sent.Load() }

// LoseAnswer implements [rig.Client].
func (c *Client) LoseAnswer() { c.armed.Store(true) }

// HoldBack implements [rig.Client].
func (c *Client) HoldBack(skip int) (held func() bool, release func()) {
	return c.proxy.HoldBack(skip, c.writes.matches)
}

// Close implements [rig.Client].
func (c *Client) Close() {
	c.Client.Close()
	c.proxy.Close()
}

// Expire implements [rig.Client].
func (c *Client) Expire(ctx context.Context) error {
	lease := c.lease.Load()
	if lease == 0 {
		return rig.ErrNoSession
	}
	operator, err := Dial([]string{c.server})
	if err != nil {
		return err
	}
	defer operator.Close()
	if _, err := operator.Revoke(ctx, clientv3.LeaseID(lease)); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return err
	}
	return nil // it has ended already
}

// wire encodes messages as grpc does. Those of old clients and of new ones have other methods.
var wire = encoding.GetCodecV2("proto")

// intercept notes leases, and tells of writes. It loses the answer to the next one if it is armed.
func (c *Client) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if r, ok := req.(*pb.TxnRequest); ok && Writes(r) {
		message, err := wire.Marshal(r)
		if err != nil {
			return err
		}
		c.writes.sends(message.Materialize())
	}
	if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
		return err
	}
	if r, ok := reply.(*pb.LeaseGrantResponse); ok {
		c.lease.Store(r.ID)
	}
	if r, ok := req.(*pb.TxnRequest); ok && Writes(r) && c.armed.CompareAndSwap(true, false) {
		return status.Error(codes.Unavailable, "the connection broke")
	}
	return nil
}

// Writes reports whether a transaction that succeeds writes.
func Writes(r *pb.TxnRequest) bool {
	for _, op := range r.Success {
		if op.GetRequestRange() == nil {
			return true
		}
	}
	return false
}

// A counter counts the messages that go out.
type counter struct{ sent *atomic.Int64 }

func (c counter) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutPayload); ok {
		c.sent.Add(1)
	}
}

func (counter) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (counter) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (counter) HandleConn(context.Context, stats.ConnStats)                       {}
