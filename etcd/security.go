package etcd

import (
	"context"
	"net"

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
	if t.ServerName != "" {
		named := namedServer{credentials.NewTLS(cfg.TLS), t.ServerName}
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithTransportCredentials(named))
	}
	cfg.Username, cfg.Password, err = l.Read()
	return err
}

// namedServer is TLS to servers whose certificates all have one name, whatever their
// addresses are. The ServerName of a tls.Config does not do that: the client gives gRPC
// the host of each address as its name (client/v3/internal/resolver).
type namedServer struct {
	credentials.TransportCredentials
	name string
}

func (n namedServer) ClientHandshake(ctx context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return n.TransportCredentials.ClientHandshake(ctx, n.name, conn)
}

func (n namedServer) Clone() credentials.TransportCredentials {
	return namedServer{n.TransportCredentials.Clone(), n.name}
}
