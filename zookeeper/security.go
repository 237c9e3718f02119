package zookeeper

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// wire says how a session's link connects.
func (o *Options) wire() wire.Config {
	return wire.Config{Dial: o.dial, Auth: (*wire.Auth)(o.Auth), TTL: o.TTL, Connect: o.ConnectTimeout, Relay: o.Relay}
}

// dial opens a connection to a server, over TLS if the options have it.
func (o *Options) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := o.Dialer(ctx, network, addr)
	if err != nil || o.TLS == nil {
		return conn, err
	}
	cfg := o.TLS
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			conn.Close()
			return nil, err
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	c := tls.Client(conn, cfg)
	if err := c.HandshakeContext(ctx); err != nil {
		conn.Close()
		hint := "is it the secureClientPort?"
		if wire.IsRefusal(err) {
			hint = wire.RefusalHint
		}
		return nil, fmt.Errorf("TLS with %s (%s): %w", addr, hint, err)
	}
	return &secured{c, conn}, nil
}

// secured is a TLS connection whose Close never blocks. The Close of a tls.Conn first
// sends a closing message, for up to 5 s.
type secured struct {
	*tls.Conn
	under net.Conn
}

func (s *secured) Close() error { return s.under.Close() }
