package security_test

import (
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/internal/rig/certs"
	"github.com/succession-dev/succession/internal/security"
)

func parse(t *testing.T, query string) *coordinator.URL {
	t.Helper()
	u, err := coordinator.ParseURL("x://h?" + query)
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
	if len(cfg.Certificates) != 1 {
		t.Errorf("the client has %d certificates, want 1", len(cfg.Certificates))
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

// TestReplaced replaces what the parameters of a URL name.
func TestReplaced(t *testing.T) {
	old, next := certs.New(t, "old"), certs.New(t, "new")
	ca, cert, key := write(t, "ca", nil), write(t, "cert", nil), write(t, "key", nil)
	params := security.TLSOf(parse(t, "ca-file="+ca+"&cert-file="+cert+"&key-file="+key))
	for _, c := range []*certs.Certificate{old, next} {
		certs.Replace(t, ca, c.File)
		certs.Replace(t, cert, c.File)
		certs.Replace(t, key, c.KeyFile)
		cfg, err := params.Config()
		if err != nil {
			t.Fatal(err)
		}
		leaf := cfg.Certificates[0].Leaf
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: cfg.RootCAs}); err != nil {
			t.Errorf("the certificate and the authority are not of one moment: %v", err)
		}
		if name := leaf.Subject.CommonName + ".pem"; name != filepath.Base(c.File) {
			t.Errorf("got the certificate %s, want %s", name, c.File)
		}
	}
}

// TestSecretUse shows a secret to a server while it is replaced: in the file and at the server,
// in either order.
func TestSecretUse(t *testing.T) {
	errRefused := errors.New("refused")
	refused := func(err error) bool { return err == errRefused }
	const gone = "(no file)"
	tests := []struct {
		file      string // what it contains
		accepts   string // what the server accepts, separated by spaces
		meanwhile string // what the file contains once a secret was refused; empty for the same
		shown     string // what the server is shown, in turn
		ok        bool
	}{
		{file: "guess", accepts: "one", shown: "guess"}, // nothing was accepted before
		{file: gone, accepts: "one"},
		{file: "one\n", accepts: "one", shown: "one", ok: true},
		{file: "two\n", accepts: "one", shown: "two one", ok: true}, // the server is still to be changed
		{file: "two\n", accepts: "two", shown: "two", ok: true},
		{file: "two\n", accepts: "three", meanwhile: "three\n", shown: "two three", ok: true},
		{file: gone, accepts: "three", shown: "three", ok: true},
		{file: "", accepts: "three", shown: "three", ok: true},
		{file: "three\n", accepts: "", shown: "three"},
		{file: "four\n", accepts: "", shown: "four three"},
		{file: "four\n", accepts: "", meanwhile: "five\n", shown: "four five"},
	}
	file := write(t, "secret", nil)
	put := func(content string) {
		t.Helper()
		err := os.WriteFile(file, []byte(content), 0o600)
		if content == gone {
			err = os.Remove(file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := security.NewSecret("token", file, "")
	for i, tt := range tests {
		put(tt.file)
		var shown []string
		err := s.Use(refused, func(secret string) error {
			shown = append(shown, secret)
			if slices.Contains(strings.Fields(tt.accepts), secret) {
				return nil
			}
			if tt.meanwhile != "" {
				put(tt.meanwhile)
			}
			return errRefused
		})
		if (err == nil) != tt.ok || strings.Join(shown, " ") != tt.shown {
			t.Errorf("%d: showed %q, %v; want %q", i, shown, err, tt.shown)
		}
	}
	if !s.Unsettled() {
		t.Error("a refusal counts at once, of what was accepted before")
	}
	put("six")
	calls := 0
	other := errors.New("no answer")
	if err := s.Use(refused, func(string) error { calls++; return other }); err != other || calls != 1 {
		t.Errorf("an error that is no refusal: %d calls, %v", calls, err)
	}
}

// A secret may come from a function, and be none.
func TestSecretFrom(t *testing.T) {
	secret, errRefused := "", errors.New("refused")
	s := security.SecretFrom(func() (string, error) { return secret, nil })
	server := func(is string) func(string) error {
		return func(shown string) error {
			if shown != is {
				return errRefused
			}
			return nil
		}
	}
	refused := func(err error) bool { return err == errRefused }
	if err := s.Use(refused, server("")); err != nil || s.Unsettled() {
		t.Errorf("without one: %v, unsettled %t", err, s.Unsettled())
	}
	secret = "one"
	if err := s.Use(refused, server("one")); err != nil {
		t.Error(err)
	}
	secret = "two"
	if err := s.Use(refused, server("one")); err != nil {
		t.Errorf("the one that was accepted is not tried: %v", err)
	}
	if err := s.Use(refused, server("three")); err != errRefused || !s.Unsettled() {
		t.Errorf("another: %v, unsettled %t", err, s.Unsettled())
	}
}

// A secret that was accepted and is refused now may be on its way to the file, for a while.
func TestSecretUnsettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errRefused := errors.New("refused")
		refused := func(err error) bool { return err == errRefused }
		s := security.NewSecret("token", write(t, "secret", []byte("one")), "")
		show := func(answer error, unsettled bool) {
			t.Helper()
			if err := s.Use(refused, func(string) error { return answer }); err != answer {
				t.Errorf("Use returned %v, want %v", err, answer)
			}
			if s.Unsettled() != unsettled {
				t.Errorf("unsettled is %t after the answer %v", !unsettled, answer)
			}
		}
		show(errRefused, false) // one that no server has accepted
		show(nil, true)
		show(errRefused, true)
		time.Sleep(9 * time.Second)
		show(errRefused, true)
		show(nil, true)
		show(errRefused, true)
		time.Sleep(10 * time.Second)
		show(errRefused, false)
	})
}
