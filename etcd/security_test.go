package etcd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/certs"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/security"
)

// enableAuth switches authentication on: user root has all rights, and app those on all keys
// that begin with app/. Both have the password "secret". What it returns is root's client.
func enableAuth(t *testing.T, server *coordtest.Etcd) *clientv3.Client {
	t.Helper()
	operator := admin(t, server.Addrs()...)
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(operator.UserAdd(t.Context(), "root", "secret"))
	check(operator.UserGrantRole(t.Context(), "root", "root"))
	check(operator.UserAdd(t.Context(), "app", "secret"))
	check(operator.RoleAdd(t.Context(), "app"))
	check(operator.RoleGrantPermission(t.Context(), "app", "app/", clientv3.GetPrefixRangeEnd("app/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	check(operator.UserGrantRole(t.Context(), "app", "app"))
	check(operator.AuthEnable(t.Context()))
	root, err := clientv3.New(clientv3.Config{Endpoints: server.Addrs(), Username: "root", Password: "secret", Logger: operator.GetLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// lead joins the line and requires that the member is first.
func lead(t *testing.T, s backend.Session, line string) backend.Member {
	t.Helper()
	m := join(t, s, line, "x")
	standsFirst(t, s, m)
	return m
}

func standsFirst(t *testing.T, s backend.Session, m backend.Member) {
	t.Helper()
	if p, err := s.Ahead(within(t, time.Minute), m); err != nil || !p.First {
		t.Fatalf("%+v, %v; want first", p, err)
	}
}

// TestAuthorityReplaced replaces the authority of the servers' certificates, and the
// certificate and the authority of the clients. A leader connects again.
func TestAuthorityReplaced(t *testing.T) {
	t.Parallel()
	old, next := certs.New(t, "old"), certs.New(t, "new")
	dir := t.TempDir()
	file := func(name, by string) string {
		path := filepath.Join(dir, name)
		certs.Replace(t, path, by)
		return path
	}
	node, app := old.Sign(t, "node", "127.0.0.1"), old.Sign(t, "app")
	ca, trusted := file("ca", old.File), file("trusted", old.File)
	cert, key := file("cert", app.File), file("key", app.KeyFile)
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{
		CertFile: file("node", node.File), KeyFile: file("node-key", node.KeyFile), ClientCAFile: trusted,
	})
	front := coordtest.NewProxy(t, server.Addrs()[0])
	s := openURL(t, "etcd://"+front.Addr()+"?ttl=20s&ca-file="+ca+"&cert-file="+cert+"&key-file="+key)
	m := lead(t, s, "line")

	node, app = next.Sign(t, "node", "127.0.0.1"), next.Sign(t, "app")
	file("ca", next.File)
	file("trusted", next.File)
	file("cert", app.File)
	file("key", app.KeyFile)
	file("node", node.File)
	file("node-key", node.KeyFile)
	server.Kill() // it reads the authority of the clients once
	if err := server.Servers()[0].Start(); err != nil {
		t.Fatal(err)
	}
	front.Reset()
	if p, err := s.Ahead(within(t, time.Minute), m); err != nil || !p.First {
		t.Fatalf("%+v, %v; want first", p, err)
	}
	openURL(t, "etcd://"+front.Addr()+"?ca-file="+ca+"&cert-file="+cert+"&key-file="+key)
}

// TestPasswordReplaced replaces the password in the file, and then in etcd. A leader and a waiter
// outlive both steps, with tokens that last for a second.
func TestPasswordReplaced(t *testing.T) {
	t.Parallel()
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Args: []string{"--auth-token-ttl=1", "--bcrypt-cost=4"}})
	root := enableAuth(t, server)
	password := filepath.Join(t.TempDir(), "password")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(password, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("secret\n")
	front := coordtest.NewProxy(t, server.Addrs()[0])
	url := "etcd://" + front.Addr() + "/app?ttl=15s&user=app&password-file=" + password
	a, b := openURL(t, url), openURL(t, url)
	m := lead(t, a, "line")
	next := join(t, b, "line", "y")
	turn := make(chan error, 1)
	go func() { turn <- b.Gone(context.Background(), m) }()
	reconnect := func() {
		t.Helper()
		front.Reset() // streams need a token each
		standsFirst(t, a, m)
		if _, err := a.Put(within(t, time.Minute), "record", []byte("x"), &backend.If{Member: m}); err != nil {
			t.Errorf("a guarded write: %v", err)
		}
	}

	write("another\n")
	reconnect()
	if _, err := root.UserChangePassword(t.Context(), "app", "another"); err != nil {
		t.Fatal(err)
	}
	reconnect()
	write("")
	reconnect()
	openURL(t, "etcd://"+front.Addr()+"/app?user=root&password-env="+env(t, "secret"))

	// It is replaced in etcd first.
	if _, err := root.UserChangePassword(t.Context(), "app", "third"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Get(within(t, time.Second), "record"); err == nil || errors.Is(err, backend.ErrDenied) {
		t.Errorf("a read before the file has the new password: %v; want one that waits for it", err)
	}
	write("third")
	reconnect()

	// A password that was never right is refused as before. The waiter has used the one that is right.
	if _, err := b.Get(within(t, time.Minute), "record"); err != nil {
		t.Fatal(err)
	}
	write("guess\n")
	if _, err := succession.Connect(t.Context(), url); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("a wrong password: %v; want ErrDenied", err)
	}
	if err := a.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-turn:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the waiter was not told")
	}
	standsFirst(t, b, next)
}

// TestPasswordReplacedAtOnce replaces the password in the file when a client has read it and has not
// connected yet. In etcd it is still the former one.
func TestPasswordReplacedAtOnce(t *testing.T) {
	t.Parallel()
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Args: []string{"--bcrypt-cost=4"}})
	enableAuth(t, server)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(server.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	etcd.Names.Store("replaced.test", func() []string {
		if err := os.WriteFile(password, []byte("another\n"), 0o600); err != nil {
			t.Error(err)
		}
		return []string{host}
	})
	defer etcd.Names.Delete("replaced.test")
	s := openURL(t, "etcd://replaced.test:"+port+"/app?ttl=6s&user=app&password-file="+password)
	m := lead(t, s, "line")
	gone := make(chan error, 1)
	go func() { gone <- s.Gone(context.Background(), m) }()
	select {
	case err := <-gone:
		t.Fatalf("while the member stands: %v", err)
	case <-time.After(6 * time.Second): // without a token for the stream of heartbeats, the session ends before
	}
	if err := s.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err != nil {
		t.Error(err)
	}
}

// TestMembersDenied uses an etcd that lets only root list its members, as 3.6.9 does with
// authentication. A leader outlives its TTL, and a change of etcd's term.
func TestMembersDenied(t *testing.T) {
	t.Parallel()
	server := coordtest.NewEtcd(t, nil)
	const ttl = 8 * time.Second // outlives a restart
	c := newClientOf(t, server.Addrs()[0], ttl)
	c.meter.unlisted.Store(true)
	s := c.session(t)
	m, watch := lead(t, s, "line"), calm.Start(t)
	for round := range 2 {
		if round > 0 {
			if err := server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		end := time.Now().Add(ttl + ttl/4)
		for time.Now().Before(end) {
			if _, err := s.Put(t.Context(), "record", nil, &backend.If{Member: m}); err != nil {
				if !watch.NotJudged(ttl/4, "a guarded write: %v", err) {
					t.Fatal(err)
				}
				return
			}
			time.Sleep(ttl / 20)
		}
		standsFirst(t, s, m)
	}
}

// TestTokensShared changes a role of an etcd with JWT, which makes all tokens invalid, and then sends
// many requests at the same time. They share a few tokens: etcd hashes the password for each.
func TestTokensShared(t *testing.T) {
	t.Parallel()
	pair := certs.New(t, "jwt")
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Args: []string{
		"--auth-token=jwt,sign-method=ES256,ttl=10m,pub-key=" + pair.File + ",priv-key=" + pair.KeyFile,
	}})
	root := enableAuth(t, server)
	s := openURL(t, "etcd://"+server.Addrs()[0]+"/app?ttl=1m&user=app&password-env="+env(t, "secret"))
	m := lead(t, s, "line")
	before := authentications(t, server.Addrs()[0])
	if _, err := root.RoleAdd(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	for range 64 {
		asking.Go(func() {
			if _, err := s.Get(t.Context(), "record"); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	standsFirst(t, s, m)
	// How many share one depends on how long the server takes; without sharing it is one for each request.
	if n := authentications(t, server.Addrs()[0]) - before; n > 32 {
		t.Errorf("a change of a role costs %d tokens for 64 requests", n)
	} else {
		t.Logf("a change of a role costs %d tokens", n)
	}
}

// A hinderedAuth asks a server for tokens, and first does what hinder says.
type hinderedAuth struct {
	clientv3.Auth
	asked  atomic.Int32
	hinder func(ctx context.Context, n int32) error // n counts the requests from 1 on
}

func (a *hinderedAuth) Authenticate(ctx context.Context, user, password string) (*clientv3.AuthenticateResponse, error) {
	if err := a.hinder(ctx, a.asked.Add(1)); err != nil {
		return nil, err
	}
	return a.Auth.Authenticate(ctx, user, password)
}

// hinder returns what asks a server for tokens as hinder lets it, and what shares them.
func hinder(t *testing.T, hinder func(ctx context.Context, n int32) error) (*hinderedAuth, clientv3.Auth) {
	t.Helper()
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Args: []string{"--bcrypt-cost=4"}})
	auth := &hinderedAuth{Auth: enableAuth(t, server).Auth, hinder: hinder}
	return auth, etcd.NewAuthenticator(t.Context(), auth, security.NewSecret("password", "", env(t, "secret")))
}

// authenticate asks for many tokens at the same time, and fails the test if one cannot be had within the limit, or if more
// than most requests are sent for them.
func authenticate(t *testing.T, auth *hinderedAuth, a clientv3.Auth, limit time.Duration, most int32) {
	t.Helper()
	watch := calm.Start(t)
	var asking sync.WaitGroup
	for range 64 {
		asking.Go(func() {
			if resp, err := a.Authenticate(within(t, time.Minute), "app", ""); err != nil || resp.Token == "" {
				t.Errorf("a request for a token: %v", err)
			}
		})
	}
	asking.Wait()
	if asked := auth.asked.Load(); asked > most && !watch.NotJudged(time.Second/4, "%d requests were sent", asked) {
		t.Errorf("%d requests were sent", asked)
	}
	watch.Within(limit, "many tokens")
}

// TestTokenOfNobody asks for tokens when the caller or the client has ended. No request is sent, which Close might not wait for.
func TestTokenOfNobody(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, caller := range map[string]context.Context{"caller": ended, "client": t.Context()} {
		auth := &hinderedAuth{hinder: func(context.Context, int32) error { return errors.New("a request was sent") }}
		a := etcd.NewAuthenticator(t.Context(), auth, security.NewSecret("password", "", env(t, "secret")))
		if name == "client" {
			etcd.EndAuthenticator(a)
		}
		for range 10_000 { // which case a select takes is left to chance
			if _, err := a.Authenticate(caller, "app", ""); !errors.Is(err, context.Canceled) {
				t.Errorf("the %s has ended: %v", name, err)
				break
			}
		}
		if n := auth.asked.Load(); n > 0 {
			t.Errorf("the %s has ended, and %d requests were sent", name, n)
		}
	}
}

// TestTokenSilentServer asks for tokens while the first request for one is not answered. The others do not
// wait for that answer, and share what they get, with who has sent the first request too.
func TestTokenSilentServer(t *testing.T) {
	t.Parallel()
	first := make(chan struct{})
	auth, a := hinder(t, func(ctx context.Context, n int32) error {
		if n > 1 {
			return nil
		}
		close(first)
		<-ctx.Done()
		return ctx.Err()
	})
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		if resp, err := a.Authenticate(within(t, time.Minute), "app", ""); err != nil || resp.Token == "" {
			t.Errorf("who has sent the request that is not answered: %v", err)
		}
	})
	<-first
	authenticate(t, auth, a, ttl, 16)
}

// TestTokenLate has tokens take longer than a heartbeat waits, and breaks the connection of a session once. Requests for tokens
// outlive the heartbeats that need them, and the session lives.
func TestTokenLate(t *testing.T) {
	t.Parallel()
	const ttl = 8 * time.Second // a heartbeat waits for one second
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Args: []string{"--bcrypt-cost=4"}})
	enableAuth(t, server)
	front := coordtest.NewProxy(t, server.Addrs()[0])
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{front.Addr()}, Username: "app", Password: "secret", Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	auth := &hinderedAuth{Auth: c.Auth, hinder: func(ctx context.Context, _ int32) error {
		select {
		case <-time.After(3 * time.Second / 2):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	c.Auth = etcd.NewAuthenticator(c.Ctx(), auth, security.NewSecret("password", "", env(t, "secret")))
	b, err := etcd.New(c, &etcd.Options{TTL: ttl, Prefix: "app/", ConnectTimeout: opening})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, watch := lead(t, s, "line"), calm.Start(t)
	front.Reset()
	for broken := time.Now(); !s.Deadline().After(broken.Add(s.TTL())); { // a heartbeat was sent since
		select {
		case <-time.After(5 * time.Millisecond):
		case <-s.Done():
			if !watch.NotJudged(ttl/4, "%v", s.Err()) {
				t.Fatalf("after %d requests for tokens: %v", auth.asked.Load(), s.Err())
			}
			return
		}
	}
	standsFirst(t, s, m)
}

// TestTokenBusyServer asks for many tokens at the same time a server that takes long for each. It is not given more
// and more to do meanwhile.
func TestTokenBusyServer(t *testing.T) {
	t.Parallel()
	const long = 4 * time.Second
	auth, a := hinder(t, func(context.Context, int32) error {
		time.Sleep(long)
		return nil
	})
	authenticate(t, auth, a, 4*long, 8)
}

// authentications returns how many tokens the server was asked for.
func authentications(t *testing.T, addr string) (n int) {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		if strings.HasPrefix(name, "grpc_server_started_total{") && strings.Contains(name, `grpc_method="Authenticate"`) {
			if _, err := fmt.Sscan(value, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the server does not count requests for tokens")
	return 0
}

// env returns a variable of the environment that has the value. It is left behind: a test that
// runs beside others may not use [testing.T.Setenv].
func env(t *testing.T, value string) string {
	t.Helper()
	const name = "SUCCESSION_ETCD_TEST_SECRET"
	if err := os.Setenv(name, value); err != nil {
		t.Fatal(err)
	}
	return name
}
