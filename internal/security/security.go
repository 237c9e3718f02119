// Package security reads the parameters of a backend's URL for TLS and secrets, in the same
// way for all drivers. A URL never contains a secret: it names a file or an environment
// variable that does.
//
// What a URL names is replaced while processes run: certificates expire, authorities and
// passwords are changed. So nothing is read once and kept. [TLS.Config] is called for each
// connection, and [Secret.Use] each time the secret is shown to a server.
package security

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// A TLS is the parameters of a URL that ask for TLS:
//
//	tls=on            with the system's certificate authorities
//	ca-file=          ... with those of this file instead
//	cert-file=        the client's certificate
//	key-file=         ... and its key
//	server-name=      the name in the servers' certificates, whatever their addresses are
//
// Each parameter alone is enough to ask for TLS.
type TLS struct {
	on, ca, cert, key string
	ServerName        string
}

// TLSOf takes the parameters from u.
func TLSOf(u *coordinator.URL) TLS {
	return TLS{
		on:         u.Text("tls", ""),
		ca:         u.Text("ca-file", ""),
		cert:       u.Text("cert-file", ""),
		key:        u.Text("key-file", ""),
		ServerName: u.Text("server-name", ""),
	}
}

// Asked reports whether u asks for TLS.
func Asked(u *coordinator.URL) bool { return TLSOf(u) != TLS{} }

// Config reads the files, and returns the configuration of one connection. A connection that
// is made later needs another one: of a [tls.Config] that is in use, only the client's
// certificate could be read again, and not the authorities. Config returns nil if no
// parameter asks for TLS, and [backend.ErrInvalid] if a parameter or its file is wrong.
func (t TLS) Config() (*tls.Config, error) {
	switch {
	case t == TLS{}:
		return nil, nil
	case t.on != "" && t.on != "on":
		return nil, invalid("parameter tls=%s: the only value is on", t.on)
	case (t.cert == "") != (t.key == ""):
		return nil, invalid("parameters cert-file and key-file go together")
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.ca != "" {
		pem, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, invalid("parameter ca-file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, invalid("parameter ca-file: %s holds no PEM certificate", t.ca)
		}
	}
	if t.cert != "" {
		cert, err := tls.LoadX509KeyPair(t.cert, t.key)
		if err != nil {
			return nil, invalid("parameters cert-file and key-file: %w", err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return cfg, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{backend.ErrInvalid}, args...)...)
}
