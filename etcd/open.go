package etcd

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/security"
)

const (
	// pingTime is how often an idle connection is probed; a server refuses clients
	// that probe more often than every 5 s (etcd, --grpc-keepalive-min-time).
	pingTime    = 10 * time.Second
	pingTimeout = 3 * time.Second

	// maxReconnect is the longest pause between two attempts to connect to a server.
	// gRPC's own default is two minutes.
	maxReconnect = 3 * time.Second
)

func init() {
	backend.Register(scheme, func(ctx context.Context, u *backend.URL) (backend.Backend, error) {
		b, err := Open(ctx, u)
		if err != nil {
			return nil, err
		}
		return b, nil
	})
}

// Open opens a backend from a URL such as
//
//	etcd://h1:2379,h2:2379/app?ttl=10s&connect=5s
//
// The port is 2379 by default. The path becomes the prefix of all keys, without the
// slash that it begins with and with one at its end: the election "leader" is then
// the one that "etcdctl elect app/leader" joins. Write etcd://h1//app for keys that
// begin with a slash. Parameters are
//
//   - ttl, connect and margin: see [Options] TTL, ConnectTimeout and Margin;
//   - tls=on: speak TLS, and trust the certificate authorities of this system;
//   - ca-file: speak TLS, and trust the authorities in this PEM file instead;
//   - cert-file, key-file: PEM files of the client's own certificate;
//   - server-name: the name in the servers' certificates, where that is not the host;
//   - user, and password-file or password-env: the file or the environment variable
//     that holds the password.
//
// Open connects and opens the session. It blocks until etcd has granted its lease,
// and fails with [backend.ErrUnavailable] where no server does within the connect
// timeout, with [backend.ErrDenied] where the credentials are refused. The caller
// closes the backend.
func Open(ctx context.Context, u *backend.URL) (*Backend, error) {
	b, err := open(ctx, u)
	if err != nil {
		return nil, wrap("open", "", err)
	}
	if _, err := b.live(ctx); err != nil {
		_ = b.Close() // there is no session that could be left behind
		return nil, wrap("open", "", err)
	}
	return b, nil
}

func open(ctx context.Context, u *backend.URL) (*Backend, error) {
	o := &Options{
		TTL:            u.Duration("ttl", 0),
		ConnectTimeout: u.Duration("connect", 0),
		Margin:         u.Duration("margin", 0),
		Prefix:         prefixOf(u.Path),
	}
	tls, login := security.TLSOf(u), security.LoginOf(u)
	if err := u.Err(); err != nil {
		return nil, err
	}
	f, err := o.filled()
	if err != nil {
		return nil, err
	}
	if len(u.Hosts) == 0 {
		return nil, fmt.Errorf("%w URL %s: it names no host; write etcd://host:2379", backend.ErrInvalid, u)
	}
	cfg := clientv3.Config{
		Endpoints:            u.HostPorts("2379"),
		DialTimeout:          f.ConnectTimeout, // of the exchange of a password for a token
		DialKeepAliveTime:    pingTime,
		DialKeepAliveTimeout: pingTimeout,
		Logger:               zap.NewNop(), // what goes wrong comes back as errors
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: grpcbackoff.Config{
				BaseDelay:  100 * time.Millisecond,
				Multiplier: 1.6,
				Jitter:     0.2,
				MaxDelay:   maxReconnect,
			},
			MinConnectTimeout: maxReconnect,
		})},
	}
	if deadline, ok := ctx.Deadline(); ok {
		cfg.DialTimeout = min(cfg.DialTimeout, max(time.Until(deadline), time.Millisecond))
	}
	if err := secure(&cfg, tls, login); err != nil {
		return nil, err
	}
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", strings.Join(cfg.Endpoints, ", "), classify(err))
	}
	b, err := New(client, o)
	if err != nil {
		_ = client.Close() // it holds nothing yet
		return nil, err
	}
	b.owned = true
	return b, nil
}

// prefixOf returns the prefix of keys that a URL's path means.
func prefixOf(path string) string {
	p := strings.TrimPrefix(path, "/")
	if p == "" || strings.HasSuffix(p, "/") {
		return p
	}
	return p + "/"
}
