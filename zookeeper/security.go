package zookeeper

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/succession-dev/succession/internal/security"
	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// files are what a URL names for TLS and authentication.
type files struct {
	tls   security.TLS
	login security.Login
}

// digest returns the user, or nil if the URL names none. If the password cannot be read, as
// while its file is written, it is the one that was read before.
func (f *files) digest() (*Digest, error) {
	user, _, err := f.login.Read()
	if user == "" {
		return nil, err
	}
	d := &Digest{User: user}
	err = f.login.Password.Use(
		func(error) bool { return false }, // servers accept every password
		func(password string) error { d.Password = password; return nil })
	return d, err
}

// wire says how a session's link connects.
func (o *Options) wire() wire.Config {
	return wire.Config{Dial: o.dial, Auth: o.auth, TTL: o.TTL, Connect: o.ConnectTimeout, Relay: o.Relay}
}

// auth returns the user to authenticate a connection as, or nil.
func (o *Options) auth() (*wire.Auth, error) {
	d, err := o.Auth, error(nil)
	if d != nil && o.files != nil {
		d, err = o.files.digest()
	}
	return (*wire.Auth)(d), err
}

// tls returns the configuration of one connection, or nil.
func (o *Options) tls() (*tls.Config, error) {
	if o.TLS == nil || o.files == nil {
		return o.TLS, nil
	}
	return o.files.tls.Config()
}

// dial opens a connection to a server, over TLS if the options have it.
func (o *Options) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	cfg, err := o.tls()
	if err != nil {
		return nil, err
	}
	conn, err := o.Dialer(ctx, network, addr)
	if err != nil || cfg == nil {
		return conn, err
	}
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
