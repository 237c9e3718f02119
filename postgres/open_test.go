//go:build linux

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/postgres"
)

// What is wrong with a URL is told before anything is sent, and without what may be a secret.
func TestInvalidURLs(t *testing.T) {
	for rawURL, want := range map[string]string{
		"postgres://h/db?ttl=1ms":                                  "TTL",
		"postgres://h/db?ttl=2h":                                   "TTL",
		"postgres://h/db?schema=A":                                 "schema",
		"postgres://h/db?tls=on":                                   "unknown parameter",
		"postgres://h/db?sslmode=perhaps":                          "sslmode",
		"postgres://h/db?sslrootcert=/no/such&sslmode=verify-full": "/no/such",
		"postgres://h/db?password-file=/no/such":                   "password-file",
		"postgres://h/db?password-env=NO_SUCH_VARIABLE":            "NO_SUCH_VARIABLE",
		"postgres://h/db?service=nosuch":                           "service",
		"postgres://user:secret@h/db":                              "password",
	} {
		b, err := succession.Open(rawURL)
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", rawURL, err)
		}
	}
	for _, o := range []*postgres.Options{{TTL: -1}, {ConnectTimeout: -1}, {Schema: "pg_x"}} {
		if _, err := postgres.New(configOf(t, "127.0.0.1:1"), o); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// What an administrator applies is for the role and the schema that a client would have, and nothing where that is not clear.
func TestRights(t *testing.T) {
	t.Setenv("PGUSER", "environment")
	d, err := coordinator.DefaultMux.Driver(&coordinator.URL{Scheme: "postgres"})
	if err != nil {
		t.Fatal(err)
	}
	for rawURL, want := range map[string]string{
		"postgres://h/db?user=svc&schema=jobs": `GRANT USAGE ON SCHEMA "jobs" TO "svc";`,
		"postgres://h/db":                      `GRANT USAGE ON SCHEMA "succession" TO "environment";`,
		// The files are on another machine.
		"postgres://h/db?user=svc&password-file=/no/such&sslmode=verify-full&sslrootcert=/no/such": `TO "svc";`,
		"postgres://h/db?usr=svc":                  "",
		"postgres://h/db?user=svc&shcema=jobs":     "",
		"postgres://h/db?user=svc&schema=Jobs":     "",
		"postgres://h/db?user=svc&schema=a&ttl=no": "",
	} {
		u, err := coordinator.ParseURL(rawURL)
		if err != nil {
			t.Fatal(err)
		}
		rights, err := d.Rights(u, "e")
		if want != "" && (err != nil || !strings.Contains(rights, want)) || want == "" && (rights != "" || !errors.Is(err, backend.ErrInvalid)) {
			t.Errorf("%s: %v\n%s", rawURL, err, rights)
		}
		if setup, err := d.Setup(u); (setup != "") == (err != nil) || strings.Contains(rawURL, "user=svc") && (err == nil) != (want != "") {
			t.Errorf("the schema of %s: %v\n%.200s", rawURL, err, setup)
		}
	}
}

// Whoever looks at the server's connections sees what the URL calls the application.
func TestApplicationName(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	b, err := succession.Open(urlOf(addr) + "&application_name=it's+me")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := run(t, addr, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'it''s me'"); n != "1" {
		t.Errorf("%s connections have the name", n)
	}
}

// The password is read for each connection, so it can be replaced while a process runs, whichever file it is in. One that is refused in
// between is no reason to give up.
func TestPasswordReplaced(t *testing.T) {
	t.Parallel()
	addr := coordtest.NewPostgres(t, nil).Addrs()[0]
	rules := run(t, addr, "SHOW hba_file")
	old, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rules, append([]byte("host all secretive 127.0.0.1/32 scram-sha-256\n"), old...), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, addr, "CREATE ROLE secretive LOGIN SUPERUSER; SELECT pg_reload_conf()")
	for parameter, before := range map[string]string{"password-file": "", "passfile": "*:*:*:*:"} {
		t.Run(parameter, func(t *testing.T) {
			run(t, addr, "ALTER ROLE secretive PASSWORD 'first'")
			file := filepath.Join(t.TempDir(), "password")
			write := func(password string) {
				t.Helper()
				if err := os.WriteFile(file, []byte(before+password+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("wrong")
			b, err := succession.Open(strings.Replace(urlOf(addr), "user=postgres", "user=secretive", 1) + "&" + parameter + "=" + file)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			for end := time.Now().Add(time.Minute); ; { // the server has not read its rules yet
				s, err := b.Session(t.Context())
				if errors.Is(err, backend.ErrDenied) {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("with a wrong password: %v", err)
				}
				if err == nil {
					s.Close(t.Context())
				}
			}
			// session opens one, and ends it.
			session := func(ctx context.Context) error {
				s, err := b.Session(ctx)
				if err != nil {
					return err
				}
				return s.Close(t.Context())
			}
			write("first")
			if err := session(t.Context()); err != nil {
				t.Fatal(err)
			}
			write("second") // first in the file, as the page says
			if err := session(t.Context()); err != nil {
				t.Fatalf("while the file has the new one, and the server the old one: %v", err)
			}
			run(t, addr, "ALTER ROLE secretive PASSWORD 'second'")
			if err := session(t.Context()); err != nil {
				t.Fatalf("when both have the new one: %v", err)
			}
			run(t, addr, "ALTER ROLE secretive PASSWORD 'third'") // first at the server
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := session(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("while the server has the new one, and the file the old one: %v", err)
			}
			write("third")
			if err := session(t.Context()); err != nil {
				t.Errorf("when both have the newest: %v", err)
			}
		})
	}
}

// An address where nothing answers is told within the time to connect.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]string{"refused": coordtest.Refused(t), "silent": silent(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := backendOf(t, configOf(t, addr), postgres.Options{ConnectTimeout: ttl / 2})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := b.Session(ctx); !errors.Is(err, backend.ErrUnavailable) || ctx.Err() != nil {
				t.Errorf("a session: %v", err)
			}
		})
	}
}

// TestNameOfSeveralAddresses says that a session opens where a name has two addresses, and the first takes connections and says nothing.
func TestNameOfSeveralAddresses(t *testing.T) {
	t.Parallel()
	host, port, err := net.SplitHostPort(sharedPostgres(t).Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port)) // the kernel takes the connections
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := configOf(t, net.JoinHostPort("pg.example", port))
	cfg.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"127.0.0.2", host}, nil }
	b := backendOf(t, cfg, postgres.Options{ConnectTimeout: 4 * time.Second})
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// silent returns the address of what takes connections and says nothing.
func silent(t *testing.T) string {
	p := coordtest.NewProxy(t, coordtest.Refused(t))
	p.Cut()
	return p.Addr()
}

// A session whose role may not log in any more says so when its deadline has passed.
func TestLoginTakenAway(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	newClient(t, addr, postgres.Options{}).live(t) // the schema is there
	run(t, addr, "CREATE ROLE taken_away LOGIN SUPERUSER")
	cfg := configOf(t, addr)
	cfg.User = "taken_away"
	s, err := backendOf(t, cfg, postgres.Options{TTL: 4 * time.Second}).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, addr, "ALTER ROLE taken_away NOLOGIN")
	run(t, addr, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'taken_away'")
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("the session goes on")
	}
	if err := s.Err(); !errors.Is(err, backend.ErrSessionEnded) || !strings.Contains(err.Error(), "not permitted to log in") {
		t.Errorf("the session has ended because of %v", err)
	}
}

// A file that is read for each connection, and that is not whole for a moment, ends no session, and nobody who asks for one gives up.
func TestServiceFileIsReplaced(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "services")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	whole := fmt.Sprintf("[app]\nhost=%s\nport=%s\nuser=postgres\nsslmode=disable\napplication_name=replaced\n", host, port)
	write(whole)
	b, err := succession.Open("postgres:///postgres?service=app&servicefile=" + file + "&ttl=1m&connect=1s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	write("[app")
	if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("the first session, while the file is not whole: %v", err)
	}
	write(whole)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	write("[app")
	run(t, addr, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'replaced'")
	put := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Put(ctx, coordtest.Name(t), nil, nil)
		return err
	}
	if err := put(); !errors.Is(err, backend.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the file is not whole: %v", err)
	}
	if err := s.Err(); err != nil {
		t.Fatalf("the session has ended: %v", err)
	}
	write(whole)
	for end := time.Now().Add(30 * time.Second); ; {
		if err = put(); err == nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		t.Errorf("when it is whole again: %v", err)
	}
}
