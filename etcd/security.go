package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/succession-dev/succession/backend"
)

// security is what a URL says about TLS and authentication.
type security struct {
	tls, ca, cert, key, name        string
	user, passwordFile, passwordEnv string
}

func securityOf(u *backend.URL) *security {
	return &security{
		tls:          u.Text("tls", ""),
		ca:           u.Text("ca-file", ""),
		cert:         u.Text("cert-file", ""),
		key:          u.Text("key-file", ""),
		name:         u.Text("server-name", ""),
		user:         u.Text("user", ""),
		passwordFile: u.Text("password-file", ""),
		passwordEnv:  u.Text("password-env", ""),
	}
}

func (s *security) apply(cfg *clientv3.Config) (err error) {
	if cfg.TLS, err = s.tlsConfig(); err != nil {
		return fmt.Errorf("%w: %w", backend.ErrInvalid, err)
	}
	if s.name != "" {
		named := namedServer{credentials.NewTLS(cfg.TLS), s.name}
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithTransportCredentials(named))
	}
	if cfg.Username, cfg.Password, err = s.credentials(); err != nil {
		return fmt.Errorf("%w: %w", backend.ErrInvalid, err)
	}
	return nil
}

// tlsConfig returns nil where no parameter asks for TLS.
func (s *security) tlsConfig() (*tls.Config, error) {
	switch {
	case s.tls != "" && s.tls != "on":
		return nil, fmt.Errorf("parameter tls=%s: the only value is on", s.tls)
	case (s.cert == "") != (s.key == ""):
		return nil, fmt.Errorf("parameters cert-file and key-file go together")
	case s.tls == "" && s.ca == "" && s.cert == "" && s.name == "":
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.ca != "" {
		pem, err := os.ReadFile(s.ca)
		if err != nil {
			return nil, fmt.Errorf("parameter ca-file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("parameter ca-file: %s holds no PEM certificate", s.ca)
		}
	}
	if s.cert != "" {
		// Read again at each connection, so that a certificate can be renewed.
		if _, err := tls.LoadX509KeyPair(s.cert, s.key); err != nil {
			return nil, fmt.Errorf("parameters cert-file and key-file: %w", err)
		}
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(s.cert, s.key)
			return &cert, err
		}
	}
	return cfg, nil
}

func (s *security) credentials() (user, password string, err error) {
	switch {
	case s.passwordFile != "" && s.passwordEnv != "":
		return "", "", fmt.Errorf("parameters password-file and password-env: give one of them")
	case (s.user == "") != (s.passwordFile == "" && s.passwordEnv == ""):
		return "", "", fmt.Errorf("parameters user, and password-file or password-env, go together")
	case s.passwordFile != "":
		b, err := os.ReadFile(s.passwordFile)
		if err != nil {
			return "", "", fmt.Errorf("parameter password-file: %w", err)
		}
		password = strings.TrimRight(string(b), "\r\n")
	case s.passwordEnv != "":
		password = os.Getenv(s.passwordEnv)
	default:
		return "", "", nil
	}
	if password == "" {
		return "", "", fmt.Errorf("the password of user %s is empty", s.user)
	}
	return s.user, password, nil
}

// namedServer is TLS to servers whose certificates have one name, whatever the
// address. The ServerName of a tls.Config does not do that: the client gives gRPC the
// host of each address as its name (client/v3/internal/resolver).
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
