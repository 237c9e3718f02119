package etcd_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/certs"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/recipes/record"
)

// A grant is one right of a role: op on a key, or on all that begin with it.
type grant struct {
	op, key string
	prefix  bool
}

// Roles as in docs/etcd.md, for the election "svc" with the prefix "app/".
var (
	observing   = []grant{{"read", "app/svc/", true}, {"read", "app/svc", false}}
	standing    = slices.Concat(observing, []grant{{"write", "app/svc/", true}, {"read", "app/svc.fence", false}})
	recording   = slices.Concat(standing, []grant{{"write", "app/svc", false}})
	permissions = map[string]clientv3.PermissionType{
		"read": clientv3.PermissionType(clientv3.PermRead), "write": clientv3.PermissionType(clientv3.PermWrite),
		"readwrite": clientv3.PermissionType(clientv3.PermReadWrite),
	}
)

// stand does what a candidate does that only leads.
func stand(ctx context.Context, b backend.Backend) error {
	t, err := elect.New(b, "svc", nil).Campaign(ctx)
	if err != nil {
		return err
	}
	return errors.Join(t.Check(), t.Resign(ctx))
}

// acknowledge does what a leader does that acknowledges its term.
func acknowledge(ctx context.Context, b backend.Backend) error {
	t, err := elect.New(b, "svc", nil).Campaign(ctx)
	if err != nil {
		return err
	}
	defer t.Resign(ctx)
	return t.Acknowledge(ctx)
}

// watch does what an observer does, until it has seen something.
func watch(ctx context.Context, b backend.Backend) error {
	for _, err := range elect.New(b, "svc", nil).Observe(ctx) {
		return err
	}
	return context.Cause(ctx)
}

// wait waits for somebody to join, and for the record to be written, until it is refused or ctx ends.
func wait(ctx context.Context, b backend.Backend) error {
	s, err := b.Session(ctx)
	if err != nil {
		return err
	}
	refused := make(chan error, 2)
	go func() { _, err := s.WatchLine(ctx, "svc", backend.Line{}); refused <- err }()
	go func() {
		if _, err := s.Watch(ctx, "svc", backend.Absent); err != nil { // a leader may have written it before
			refused <- err
		}
	}()
	if err = <-refused; errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// set does what the writer of a record does that is nobody's.
func set(ctx context.Context, b backend.Backend) error {
	_, err := record.New(b, "limits", record.Text()).Set(ctx, "x")
	return err
}

// TestLeastRights has users do what the rights in docs/etcd.md are for. With one right
// less they are refused at once, and the error names the right.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	issuer := certs.New(t, "authority")
	ca := issuer.File
	cert, key := issue(t, issuer, "root")
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{
		CertFile: cert, KeyFile: key, ClientCAFile: ca, Args: []string{"--bcrypt-cost=4"},
	})
	operator := rootOf(t, server, ca, cert, key)
	tests := []struct {
		who  string
		do   func(context.Context, backend.Backend) error
		role []grant
	}{
		{"candidate", stand, standing},
		{"leader that acknowledges", acknowledge, recording},
		{"observer", watch, observing},
		{"waiter", wait, observing},
		{"writer of a record", set, []grant{{"read", "app/limits", false}, {"write", "app/limits", false}}},
	}
	for i, tt := range tests {
		t.Run(tt.who, func(t *testing.T) {
			for n := -1; n < len(tt.role); n++ {
				role, lacks := slices.Clone(tt.role), ""
				if n >= 0 {
					g := role[n]
					lacks = "lacks the right to " + g.op + " the key " + g.key + ": "
					if g.prefix {
						lacks = "lacks the right to " + g.op + " all keys that begin with " + g.key + ": "
					}
					role = slices.Delete(role, n, n+1)
				}
				b := openAs(t, server, operator, issuer, strings.Repeat("u", i+1)+string(rune('a'+n+1)), role)
				patience := time.Minute
				if n < 0 && tt.who == "waiter" {
					patience = time.Second // nothing comes
				}
				ctx, watch := within(t, patience), calm.Start(t)
				err := tt.do(ctx, b)
				watch.Within(5*time.Second, "with the rights %v, it", role)
				switch {
				case n < 0 && err != nil:
					t.Errorf("with the rights %v: %v", role, err)
				case n >= 0 && (ctx.Err() != nil || !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), lacks)):
					t.Errorf("with the rights %v: %v; want ErrDenied that says %q", role, err, lacks)
				}
				b.Close()
			}
		})
	}

	t.Run("a neighbour without rights", func(t *testing.T) {
		neighbours(t, openAs(t, server, operator, issuer, "neighbour", standing))
	})

	t.Run("password", func(t *testing.T) {
		check(t)(operator.UserAdd(t.Context(), "bypass", "secret"))
		passwords := map[string]string{"right": "secret\n", "wrong": "guess"}
		for what, password := range passwords {
			file := filepath.Join(t.TempDir(), what)
			if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
				t.Fatal(err)
			}
			watch := calm.Start(t)
			b, err := succession.Connect(t.Context(), "etcd://"+server.Addrs()[0]+"/app?ca-file="+ca+"&cert-file="+cert+"&key-file="+key+"&user=bypass&password-file="+file)
			watch.Within(5*time.Second, "%s: it", what)
			switch {
			case what == "wrong" && (!errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), "invalid user ID or password")):
				t.Errorf("a wrong password: %v; want ErrDenied that says so", err)
			case what == "right" && err != nil:
				t.Error(err)
			}
			if err != nil {
				continue
			}
			// The password counts, not the certificate, which is root's.
			if err := stand(t.Context(), b); !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), "user bypass lacks the right to read") {
				t.Errorf("a user without a role: %v; want ErrDenied", err)
			}
			b.Close()
		}
	})
}

// A leader that may not watch its own member any more would not be told if an operator removed it. So its session ends, although its
// lease could be kept alive, and the error says why. The same holds for who watches by Gone, or by other calls than WatchPlace, as
// while the election moves.
func TestRightOfLeaderTakenAway(t *testing.T) {
	t.Parallel()
	issuer := certs.New(t, "authority")
	cert, key := issue(t, issuer, "root")
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{
		CertFile: cert, KeyFile: key, ClientCAFile: issuer.File, Args: []string{"--bcrypt-cost=4"},
	})
	operator := rootOf(t, server, issuer.File, cert, key)
	for by, watch := range map[string]func(context.Context, backend.Session, backend.Member) error{
		"place": func(ctx context.Context, s backend.Session, m backend.Member) error {
			p, err := s.Ahead(ctx, m)
			if err != nil {
				p = backend.Place{First: true, Token: m.Position} // it stood first before
			}
			return s.WatchPlace(ctx, m, &p)
		},
		"calls": func(ctx context.Context, s backend.Session, m backend.Member) error {
			return kit.WatchPlace(ctx, s, m, &backend.Place{First: true, Token: m.Position})
		},
		"gone": func(ctx context.Context, s backend.Session, m backend.Member) error { return s.Gone(ctx, m) },
	} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			s, err := openFor(t, ttl, server, operator, issuer, by, []grant{{"read", "app/", true}, {"write", "app/", true}}).Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			m := lead(t, s, by)
			// It may still write the key, which it takes to keep the lease alive.
			check(t)(operator.RoleGrantPermission(t.Context(), by, "app/", clientv3.GetPrefixRangeEnd("app/"), permissions["write"]))
			for ctx := within(t, time.Minute); s.Err() == nil; {
				if err := watch(ctx, s, m); !errors.Is(err, backend.ErrDenied) && !errors.Is(err, backend.ErrSessionEnded) {
					t.Fatalf("the watch ended with %v", err)
				}
				select {
				case <-s.Done():
				case <-time.After(ttl / 50): // as who asks again does
				}
			}
			if err := s.Err(); !strings.Contains(fmt.Sprint(err), backend.ErrDenied.Error()) {
				t.Errorf("the session has ended because of %v", err)
			}
		})
	}
}

// Without the right to write its members, a session cannot keep its lease alive. A warning says so when that begins, and the error with
// which the session ends.
func TestRightToWriteTakenAway(t *testing.T) {
	t.Parallel()
	issuer := certs.New(t, "authority")
	cert, key := issue(t, issuer, "root")
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{
		CertFile: cert, KeyFile: key, ClientCAFile: issuer.File, Args: []string{"--bcrypt-cost=4"},
	})
	operator := rootOf(t, server, issuer.File, cert, key)
	role := []grant{{"read", "app/", true}, {"write", "app/", true}}
	certificate, own := userWith(t, operator, issuer, "writer", role)
	c := connected(t, server, issuer.File, certificate, own)
	var told output
	b, err := etcd.New(c, &etcd.Options{TTL: ttl, Prefix: "app/", ConnectTimeout: opening, Logger: slog.New(slog.NewTextHandler(&told, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lead(t, s, "line")
	check(t)(operator.RoleGrantPermission(t.Context(), "writer", "app/", clientv3.GetPrefixRangeEnd("app/"), permissions["read"]))
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("the session goes on")
	}
	if err := s.Err(); errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), "the right to write") {
		t.Errorf("the session has ended because of %v; want an error that says so, and does not claim that a request was denied", err)
	}
	if n := strings.Count(told.String(), "heartbeats fail"); n != 1 {
		t.Errorf("%d warnings: %s", n, told.String())
	}
}

// With an empty prefix, who may not see all keys is told the right as etcdctl takes it.
func TestRightToAll(t *testing.T) {
	t.Parallel()
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Args: []string{"--bcrypt-cost=4"}})
	root := enableAuth(t, server)
	s := openURL(t, "etcd://"+server.Addrs()[0]+"?user=app&password-env="+env(t, "secret"))
	const means = `lacks the right to read all keys: etcdctl role grant-permission ROLE read "" --prefix;`
	if _, err := s.Lines(t.Context()); !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), means) {
		t.Errorf("%v; want ErrDenied that says %q", err, means)
	}
	check(t)(root.RoleGrantPermission(t.Context(), "app", "\x00", "\x00", permissions["read"])) // as etcdctl does then
	if _, err := s.Lines(t.Context()); err != nil {
		t.Error(err)
	}
}

// neighbours makes one session wait at a key that it may read, and again and again at one
// that it may not. Both watches share a stream.
func neighbours(t *testing.T, b backend.Backend) {
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := join(t, s, "svc", "x")
	gone := make(chan error, 1)
	go func() { gone <- s.Gone(t.Context(), m) }()
	for range 5 {
		if err := s.Gone(t.Context(), backend.Member{Line: "other", Key: "x", Position: 1}); !errors.Is(err, backend.ErrDenied) {
			t.Errorf("Gone without the right: %v; want ErrDenied", err)
		}
	}
	select {
	case err := <-gone:
		t.Fatalf("Gone returned %v because another call was refused", err)
	default:
	}
	if err := s.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-gone:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("Gone has missed the departure")
	}
}

// check returns a func that fails the test if an administrator's call fails.
func check(t *testing.T) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// rootOf turns on authentication and returns a client of the user root, whose name the
// certificate has.
func rootOf(t *testing.T, server *coordtest.Etcd, ca, cert, key string) *clientv3.Client {
	t.Helper()
	c := connected(t, server, ca, cert, key)
	check(t)(c.UserAdd(t.Context(), "root", "secret"))
	check(t)(c.UserGrantRole(t.Context(), "root", "root"))
	check(t)(c.AuthEnable(t.Context()))
	return c
}

// connected returns a client of etcd with a certificate.
func connected(t *testing.T, server *coordtest.Etcd, ca, cert, key string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: server.Addrs(), TLS: tlsOf(t, ca, cert, key), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func tlsOf(t *testing.T, ca, cert, key string) *tls.Config {
	t.Helper()
	info := transport.TLSInfo{TrustedCAFile: ca, CertFile: cert, KeyFile: key}
	conf, err := info.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	return conf
}

// openAs makes a user, see [userWith], and opens a backend as that user.
func openAs(t *testing.T, server *coordtest.Etcd, operator *clientv3.Client, issuer *certs.Certificate, user string, role []grant) backend.Backend {
	t.Helper()
	return openFor(t, time.Minute, server, operator, issuer, user, role)
}

// openFor is openAs with another session time.
func openFor(t *testing.T, ttl time.Duration, server *coordtest.Etcd, operator *clientv3.Client, issuer *certs.Certificate, user string, role []grant) backend.Backend {
	t.Helper()
	cert, key := userWith(t, operator, issuer, user, role)
	b, err := succession.Connect(t.Context(), "etcd://"+server.Addrs()[0]+"/app?ttl="+ttl.String()+"&connect="+opening.String()+"&ca-file="+issuer.File+"&cert-file="+cert+"&key-file="+key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// userWith makes a user with exactly these rights, and with a certificate in place of a
// password.
func userWith(t *testing.T, operator *clientv3.Client, issuer *certs.Certificate, user string, role []grant) (cert, key string) {
	t.Helper()
	check(t)(operator.RoleAdd(t.Context(), user))
	ops := make(map[grant][]string) // etcd knows one right for each range
	for _, g := range role {
		at := grant{"", g.key, g.prefix}
		ops[at] = append(ops[at], g.op)
	}
	for at, names := range ops {
		slices.Sort(names)
		end := ""
		if at.prefix {
			end = clientv3.GetPrefixRangeEnd(at.key)
		}
		check(t)(operator.RoleGrantPermission(t.Context(), user, at.key, end, permissions[strings.Join(names, "")]))
	}
	check(t)(operator.UserAddWithOptions(t.Context(), user, "", &clientv3.UserAddOptions{NoPassword: true}))
	check(t)(operator.UserGrantRole(t.Context(), user, user))
	return issue(t, issuer, user)
}
