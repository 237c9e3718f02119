package security_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/certs"
	"github.com/succession-dev/succession/internal/security"
)

func parse(t *testing.T, query string) *backend.URL {
	t.Helper()
	u, err := backend.ParseURL("x://h?" + query)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTLS(t *testing.T) {
	pair := certs.New(t, "client")
	cert, key := pair.File, pair.KeyFile
	junk := write(t, "junk", []byte("junk"))
	tests := []struct {
		query string
		on    bool
		bad   string
	}{
		{query: ""},
		{query: "tls=on", on: true},
		{query: "ca-file=" + cert, on: true},
		{query: "server-name=zk", on: true},
		{query: "cert-file=" + cert + "&key-file=" + key, on: true},
		{query: "tls=true", bad: "the only value is on"},
		{query: "cert-file=" + cert, bad: "go together"},
		{query: "tls=on&key-file=" + key, bad: "go together"},
		{query: "ca-file=/no/such", bad: "ca-file"},
		{query: "ca-file=" + junk, bad: "holds no PEM certificate"},
		{query: "cert-file=" + cert + "&key-file=" + junk, bad: "cert-file and key-file"},
	}
	for _, tt := range tests {
		u := parse(t, tt.query)
		cfg, err := security.TLSOf(u).Config()
		if uerr := u.Err(); uerr != nil {
			t.Errorf("%s: %v", tt.query, uerr)
		}
		if tt.bad != "" {
			if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("%s: got %v, want ErrInvalid that says %q", tt.query, err, tt.bad)
			}
			continue
		}
		if err != nil || (cfg != nil) != tt.on {
			t.Errorf("%s: got %v, %v", tt.query, cfg, err)
		}
	}
	cfg, err := security.TLSOf(parse(t, "ca-file="+cert+"&cert-file="+cert+"&key-file="+key+"&server-name=zk")).Config()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.RootCAs == nil || cfg.ServerName != "zk" {
		t.Errorf("got %+v", cfg)
	}
	if c, err := cfg.GetClientCertificate(nil); err != nil || len(c.Certificate) != 1 {
		t.Errorf("the client's certificate: %v, %v", c, err)
	}
}

func TestLogin(t *testing.T) {
	t.Setenv("SECURITY_TEST_PASSWORD", "hunter2")
	file := write(t, "password", []byte("hunter2\n"))
	empty := write(t, "empty", []byte("\n"))
	tests := []struct {
		query          string
		user, password string
		bad            string
	}{
		{query: ""},
		{query: "user=u&password-file=" + file, user: "u", password: "hunter2"},
		{query: "user=u&password-env=SECURITY_TEST_PASSWORD", user: "u", password: "hunter2"},
		{query: "user=u", bad: "go together"},
		{query: "password-file=" + file, bad: "go together"},
		{query: "user=u&password-env=SECURITY_TEST_PASSWORD&password-file=" + file, bad: "give one of them"},
		{query: "user=u&password-env=SECURITY_TEST_NO_SUCH", bad: "the environment variable SECURITY_TEST_NO_SUCH is empty"},
		{query: "user=u&password-file=" + empty, bad: "is empty"},
		{query: "user=u&password-file=/no/such", bad: "password-file"},
	}
	for _, tt := range tests {
		u := parse(t, tt.query)
		user, password, err := security.LoginOf(u).Read()
		if uerr := u.Err(); uerr != nil {
			t.Errorf("%s: %v", tt.query, uerr)
		}
		if tt.bad != "" {
			if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("%s: got %v, want ErrInvalid that says %q", tt.query, err, tt.bad)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: the error shows the secret: %v", tt.query, err)
			}
			continue
		}
		if err != nil || user != tt.user || password != tt.password {
			t.Errorf("%s: got %q, %q, %v", tt.query, user, password, err)
		}
	}
}
