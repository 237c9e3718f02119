//go:build linux

package postgres_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/certs"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// The authority and the name of the server are checked where the URL says so.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca, other := certs.New(t, "ca"), certs.New(t, "other")
	cert := ca.Sign(t, "server", "127.0.0.1")
	addr := coordtest.NewPostgres(t, &coordtest.PostgresOptions{CertFile: cert.File, KeyFile: cert.KeyFile}).Addrs()[0]
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		host, tls string
		says      string // "" if it is accepted
	}{
		"as it is":          {"127.0.0.1", "verify-full&connect=1m&sslrootcert=" + ca.File, ""},
		"another authority": {"127.0.0.1", "verify-full&sslrootcert=" + other.File, "unknown authority"},
		"another name":      {"localhost", "verify-full&sslrootcert=" + ca.File, "localhost"},
		"unchecked":         {"localhost", "require&connect=1m", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := strings.ReplaceAll(name, " ", "-")
			b, err := succession.Open("postgres://" + test.host + ":" + port + "/postgres?user=postgres&ttl=" + long.String() + "&application_name=" + app + "&sslmode=" + test.tls)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			_, err = b.Session(t.Context())
			if test.says != "" {
				if !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%v; want %q", err, test.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tls := run(t, addr, "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = '"+app+"'"); tls != "t" {
				t.Errorf("its connections have TLS: %s", tls)
			}
		})
	}
}
