package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// dial opens a connection to a server, over TLS where that is asked for.
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
		if isRefusal(err) {
			hint = refusalHint
		}
		return nil, fmt.Errorf("TLS with %s (%s): %w", addr, hint, err)
	}
	return &secured{c, conn}, nil
}

const refusalHint = "does it want another certificate of this client, by cert-file and key-file?"

// isRefusal reports whether err is the server's word that it ends TLS. From TLS 1.3 on
// a client that has shaken hands hears that it is refused from its first read.
func isRefusal(err error) bool {
	e := new(net.OpError)
	return errors.As(err, &e) && e.Op == "remote error"
}

// secured is TLS whose Close never blocks: that of a tls.Conn first writes a
// farewell, for up to 5 s.
type secured struct {
	*tls.Conn
	under net.Conn
}

func (s *secured) Close() error { return s.under.Close() }
