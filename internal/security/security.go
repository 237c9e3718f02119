// Package security reads the parameters of a backend's URL for TLS and passwords, in the same
// way for all drivers. A URL never contains a secret: it names a file or an environment
// variable that does.
package security

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/succession-dev/succession/backend"
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
func TLSOf(u *backend.URL) TLS {
	return TLS{
		on:         u.Text("tls", ""),
		ca:         u.Text("ca-file", ""),
		cert:       u.Text("cert-file", ""),
		key:        u.Text("key-file", ""),
		ServerName: u.Text("server-name", ""),
	}
}

// Config reads the files. It returns nil if no parameter asks for TLS, and
// [backend.ErrInvalid] if a parameter or its file is wrong.
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
		// Read again at each connection, so that a certificate can be renewed.
		read := func() (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(t.cert, t.key)
			return &cert, err
		}
		if _, err := read(); err != nil {
			return nil, invalid("parameters cert-file and key-file: %w", err)
		}
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return read() }
	}
	return cfg, nil
}

// A Login is the parameters of a URL that name a user, and the file or the environment
// variable that contains the password: user=, and password-file= or password-env=.
type Login struct{ user, file, env string }

// LoginOf takes the parameters from u.
func LoginOf(u *backend.URL) Login {
	return Login{user: u.Text("user", ""), file: u.Text("password-file", ""), env: u.Text("password-env", "")}
}

// Read reads the password. From a file it takes all but the line ends at the end. It returns
// empty strings if no parameter names a user, and [backend.ErrInvalid] if a parameter, or what
// it names, is wrong.
func (l Login) Read() (user, password string, err error) {
	where := "the file " + l.file
	switch {
	case (l.user == "") != (l.file == "" && l.env == ""):
		return "", "", invalid("parameters user, and password-file or password-env, go together")
	case l.user == "":
		return "", "", nil
	case l.file != "" && l.env != "":
		return "", "", invalid("parameters password-file and password-env: give one of them")
	case l.file != "":
		b, err := os.ReadFile(l.file)
		if err != nil {
			return "", "", invalid("parameter password-file: %w", err)
		}
		password = strings.TrimRight(string(b), "\r\n")
	default:
		password, where = os.Getenv(l.env), "the environment variable "+l.env
	}
	if password == "" {
		return "", "", invalid("the password in %s is empty", where)
	}
	return l.user, password, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{backend.ErrInvalid}, args...)...)
}
