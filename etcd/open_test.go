package etcd_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// openURL opens a backend that ends with the test, and returns its session.
func openURL(t *testing.T, url string) backend.Session {
	t.Helper()
	also := "?"
	if strings.Contains(url, "?") {
		also = "&"
	}
	b, err := succession.Connect(t.Context(), url+also+"connect="+opening.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOpen(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	operator := admin(t, addr)
	tests := []struct{ query, prefix string }{
		{"", ""},
		{"/app", "app/"},
		{"/app/", "app/"},
		{"//app", "/app/"},
		{"/a/b?margin=100ms", "a/b/"},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			query := tt.query + "?ttl=20s"
			if strings.Contains(tt.query, "?") {
				query = tt.query + "&ttl=20s"
			}
			name := coordtest.Name(t)
			s := openURL(t, "etcd://"+addr+query)
			if s.TTL() != 20*time.Second {
				t.Errorf("TTL is %v", s.TTL())
			}
			m := join(t, s, name, "x")
			if got := keys(t, operator, tt.prefix+name); len(got) != 1 || got[0] != tt.prefix+name+"/"+m.Key {
				t.Errorf("the member's key is %q", got)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ url, says string }{
		{"etcd://", "names no host"},
		{"etcd:h1", "names no host"},
		{"etcd://h1?tll=10s", "known are ca-file, cert-file, connect, key-file, margin, password-env, password-file, server-name, tls, ttl, user"},
		{"etcd://h1?ttl=6m", "TTL"},
		{"etcd://h1?tls=off", "only value is on"},
		{"etcd://h1?ca-file=/nonexistent", "ca-file"},
		{"etcd://h1?ca-file=/dev/null", "no PEM certificate"},
		{"etcd://h1?cert-file=x", "go together"},
		{"etcd://h1?user=x", "go together"},
		{"etcd://h1?user=x&password-env=SUCCESSION_NO_SUCH_VARIABLE", "is empty"},
		{"etcd://h1?user=x&password-env=A&password-file=B", "give one"},
	}
	for _, tt := range tests {
		_, err := succession.Connect(t.Context(), tt.url)
		if !isInvalid(err) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v; want ErrInvalid that says %q", tt.url, err, tt.says)
		}
	}
}

func TestOpenUnreachable(t *testing.T) {
	t.Parallel()
	silent := coordtest.NewProxy(t, sharedEtcd(t).Addrs()[0])
	silent.Cut()
	refusing := coordtest.NewProxy(t, sharedEtcd(t).Addrs()[0])
	refusing.Refuse()
	for _, addr := range []string{silent.Addr(), refusing.Addr()} {
		watch := calm.Start(t)
		_, err := succession.Connect(t.Context(), "etcd://"+addr+"?connect=500ms")
		if !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("Open failed with %v; want ErrUnavailable after 500 ms", err)
		}
		watch.Within(3*time.Second, "Open with a limit of 500 ms")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		watch = calm.Start(t)
		_, err = succession.Connect(ctx, "etcd://"+addr+"?connect=1m")
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Open with a context of 100 ms failed with %v; want the context's error", err)
		}
		watch.Within(3*time.Second, "Open with a context of 100 ms")
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := etcd.New(clientv3.NewCtxClient(t.Context()), nil); !isInvalid(err) {
		t.Errorf("a client without a connection: %v; want ErrInvalid", err)
	}
	c := admin(t, sharedEtcd(t).Addrs()[0])
	c.Watcher = namespace.NewWatcher(c.Watcher, "app/")
	if _, err := etcd.New(c, nil); !isInvalid(err) {
		t.Errorf("a client with a namespace: %v; want ErrInvalid", err)
	}
}

// TestMargin opens sessions with margins: they may be up to half of the TTL, and no more.
func TestMargin(t *testing.T) {
	t.Parallel()
	const ttl = 10 * time.Second
	for margin, ok := range map[time.Duration]bool{ttl / 2: true, ttl/2 + time.Millisecond: false, ttl * 3 / 4: false, ttl: false} {
		b, err := etcd.New(admin(t, sharedEtcd(t).Addrs()[0]), &etcd.Options{TTL: ttl, Margin: margin, ConnectTimeout: opening})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		_, err = b.Session(t.Context())
		switch {
		case !ok && (!isInvalid(err) || !strings.Contains(err.Error(), "more than half of the TTL")):
			t.Errorf("margin %v of a TTL of %v: %v; want ErrInvalid that says so", margin, ttl, err)
		case ok && err != nil:
			t.Errorf("margin %v of a TTL of %v: %v", margin, ttl, err)
		case ok:
			resign(t, campaign(t, b, coordtest.Name(t)))
		}
	}
}

// TestClosedClient closes the client before the backend.
func TestClosedClient(t *testing.T) {
	t.Parallel()
	c := admin(t, sharedEtcd(t).Addrs()[0])
	b, err := etcd.New(c, &etcd.Options{TTL: patient, ConnectTimeout: opening})
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := s.Get(t.Context(), "x"); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Get: %v; want ErrClosed", err)
	}
	if err := b.Close(); err == nil {
		t.Error("Close did not say that the members still stand")
	}
}

// TestTLS opens an etcd that demands certificates of its clients.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca, cert, key := certificates(t)
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{CertFile: cert, KeyFile: key, ClientCAFile: ca})
	url := "etcd://" + server.Addrs()[0] + "?ttl=20s"
	s := openURL(t, url+"&ca-file="+ca+"&cert-file="+cert+"&key-file="+key)
	join(t, s, "line", "x")
	openURL(t, url+"&server-name=etcd.example&ca-file="+ca+"&cert-file="+cert+"&key-file="+key)
	for what, params := range map[string]string{
		"no TLS":         "",
		"no certificate": "&ca-file=" + ca,
		"an unknown CA":  "&tls=on&cert-file=" + cert + "&key-file=" + key,
	} {
		if _, err := succession.Connect(t.Context(), url+"&connect=1s"+params); !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("%s: %v; want ErrUnavailable", what, err)
		}
	}
	_, err := succession.Connect(t.Context(), url+"&server-name=elsewhere&ca-file="+ca+"&cert-file="+cert+"&key-file="+key)
	if !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("the error does not tell that the name is wrong: %v", err)
	}
}

// TestAuthentication uses an etcd with users, whose tokens live for a second.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Args: []string{"--auth-token-ttl=1", "--bcrypt-cost=4"}})
	addr := server.Addrs()[0]
	operator := admin(t, addr)
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

	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte("guess"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := "etcd://" + addr + "/app?ttl=10s&user=app&password-file="
	for what, u := range map[string]string{
		"a wrong password": url + wrong,
		"no user":          "etcd://" + addr + "/app",
	} {
		if _, err := succession.Connect(t.Context(), u); !errors.Is(err, backend.ErrDenied) {
			t.Errorf("%s: %v; want ErrDenied", what, err)
		}
	}
	outside := openURL(t, strings.Replace(url, "/app?", "/elsewhere?", 1)+password)
	if _, err := outside.Join(t.Context(), "line", "x", ""); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Join outside of the user's prefix: %v; want ErrDenied", err)
	}
	if err := outside.Gone(t.Context(), backend.Member{Line: "line", Key: "x", Position: 1}); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Gone outside of the user's prefix: %v; want ErrDenied", err)
	}

	// Sessions and watches outlive the tokens that they began with.
	a, b := openURL(t, url+password), openURL(t, url+password)
	first := join(t, a, "line", "x")
	second := join(t, a, "line", "y")
	gone := make(chan error, 2)
	go func() { gone <- b.Gone(t.Context(), first) }()
	select {
	case err := <-gone:
		t.Fatalf("Gone has returned %v although nobody has gone", err)
	case <-time.After(3 * time.Second): // tokens of a second have expired, and a heartbeat came after that
	}
	go func() { gone <- b.Gone(t.Context(), second) }() // on the stream with the old token
	if err := a.Leave(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := a.Leave(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case err := <-gone:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("Gone has missed a departure")
		}
	}
	if err := errors.Join(a.Err(), b.Err()); err != nil {
		t.Errorf("a session has ended: %v", err)
	}
}
