package zookeeper

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/security"
)

func init() {
	backend.Register("zookeeper", func(ctx context.Context, u *backend.URL) (backend.Backend, error) {
		b, err := Open(ctx, u)
		if err != nil {
			return nil, err
		}
		return b, nil
	})
}

// Open opens the ensemble that u names:
//
//	zookeeper://h1:2181,h2:2181/chroot?session=10s&as=curator-latch
//
// Everything but a host is optional. Parameters are
//
//   - session, connect, relay: see [Options] SessionTimeout, ConnectTimeout, Relay;
//   - as, or prefix: see [Options] As and Prefix;
//   - tls=on: speak TLS, and trust the certificate authorities of this system;
//   - ca-file: speak TLS, and trust the authorities in this PEM file instead;
//   - cert-file, key-file: PEM files of the client's own certificate;
//   - server-name: the name in the servers' certificates, where that is not the host;
//   - user, and password-file or password-env: a user of the scheme "digest", and
//     the file or the environment variable that holds the password;
//   - acl: see [Options] ACL.
//
// Open blocks until a first session is established, ctx ends, the connect timeout
// has passed ([backend.ErrUnavailable]), or the credentials are refused
// ([backend.ErrDenied]).
func Open(ctx context.Context, u *backend.URL) (*Backend, error) {
	o := &Options{
		SessionTimeout: u.Duration("session", 0),
		ConnectTimeout: u.Duration("connect", 0),
		Relay:          u.Duration("relay", 0),
		As:             Format(u.Text("as", "")),
		Prefix:         u.Text("prefix", ""),
		ACL:            ACL(u.Text("acl", "")),
		Chroot:         u.Path,
	}
	tls, login := security.TLSOf(u), security.LoginOf(u)
	err := u.Err()
	if err == nil {
		o.TLS, err = tls.Config()
	}
	if err == nil {
		o.Auth, err = digestOf(login)
	}
	if err != nil {
		return nil, fail("open", "", err)
	}
	if len(u.Hosts) == 0 {
		return nil, fail("open", "", fmt.Errorf("%w URL %s: name the servers, as in zookeeper://h1:2181,h2:2181/app", backend.ErrInvalid, u))
	}
	b, err := New(u.HostPorts("2181"), o)
	if err != nil {
		return nil, err
	}
	if _, err := b.Session(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// digestOf returns nil where the URL names no user.
func digestOf(l security.Login) (*Digest, error) {
	user, password, err := l.Read()
	if err != nil || user == "" {
		return nil, err
	}
	return &Digest{User: user, Password: password}, nil
}
