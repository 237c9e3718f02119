package etcd

import (
	"context"
	"errors"
	"net"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/succession-dev/succession/internal/security"
)

// secure puts what a URL says about TLS and authentication into cfg.
func secure(cfg *clientv3.Config, t security.TLS, l security.Login) (err error) {
	if cfg.TLS, err = t.Config(); err != nil {
		return err
	}
	if cfg.TLS != nil {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithTransportCredentials(reread{credentials.NewTLS(cfg.TLS), t}))
	}
	cfg.Username, cfg.Password, err = l.Read()
	return err
}

// reread is TLS for which the files of a URL are read again at each connection.
type reread struct {
	credentials.TransportCredentials // of the files as they were at first
	tls                              security.TLS
}

func (r reread) ClientHandshake(ctx context.Context, name string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg, err := r.tls.Config()
	if err != nil {
		return nil, nil, err
	}
	if cfg.ServerName != "" {
		// name is the host of the address, which the client has given to gRPC
		// (client/v3/internal/resolver). gRPC would prefer it.
		name = cfg.ServerName
	}
	return credentials.NewTLS(cfg).ClientHandshake(ctx, name, conn)
}

func (r reread) Clone() credentials.TransportCredentials {
	return reread{r.TransportCredentials.Clone(), r.tls}
}

// An authenticator exchanges the password for tokens. The client keeps the password that it
// was given first, and asks for a token for each stream, and when one has become invalid.
type authenticator struct {
	clientv3.Auth
	password *security.Secret
}

func (a authenticator) Authenticate(ctx context.Context, user, _ string) (resp *clientv3.AuthenticateResponse, err error) {
	err = a.password.Use(isAuthFailed, func(password string) error {
		resp, err = a.Auth.Authenticate(ctx, user, password)
		return err
	})
	return resp, err
}

// isAuthFailed reports whether etcd refuses the password.
func isAuthFailed(err error) bool { return errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed) }
