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

// A Login is the parameters of a URL that name a user and the place of the password:
// user=, and password-file= or password-env=.
type Login struct {
	user     string
	password Secret
}

// LoginOf takes the parameters from u.
func LoginOf(u *backend.URL) Login {
	return Login{user: u.Text("user", ""), password: SecretOf(u, "password")}
}

// Read reads the password. It returns empty strings if no parameter names a user,
// and [backend.ErrInvalid] if a parameter, or what it names, is wrong.
func (l Login) Read() (user, password string, err error) {
	if (l.user == "") != l.password.empty() {
		return "", "", invalid("parameters user, and password-file or password-env, go together")
	}
	password, err = l.password.Read()
	return l.user, password, err
}

// A Secret is the parameters NAME-file and NAME-env of a URL. They name the file or the
// environment variable that contains a secret.
type Secret struct{ name, file, env string }

// SecretOf takes the parameters from u.
func SecretOf(u *backend.URL, name string) Secret {
	return Secret{name: name, file: u.Text(name+"-file", ""), env: u.Text(name+"-env", "")}
}

func (s Secret) empty() bool { return s.file == "" && s.env == "" }

// Read reads the secret. From a file it takes all but the line ends at the end. It returns the
// empty string if no parameter names a secret, and [backend.ErrInvalid] if the secret is empty
// or cannot be read.
func (s Secret) Read() (string, error) {
	var secret, where string
	switch {
	case s.empty():
		return "", nil
	case s.file != "" && s.env != "":
		return "", invalid("parameters %s-file and %s-env: give one of them", s.name, s.name)
	case s.file != "":
		b, err := os.ReadFile(s.file)
		if err != nil {
			return "", invalid("parameter %s-file: %w", s.name, err)
		}
		secret, where = strings.TrimRight(string(b), "\r\n"), "the file "+s.file
	default:
		secret, where = os.Getenv(s.env), "the environment variable "+s.env
	}
	if secret == "" {
		return "", invalid("the %s in %s is empty", s.name, where)
	}
	return secret, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{backend.ErrInvalid}, args...)...)
}
