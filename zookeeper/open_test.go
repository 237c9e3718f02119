package zookeeper_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/zookeeper"
)

func TestOpen(t *testing.T) {
	b, err := succession.Connect(t.Context(), "zookeeper://"+server(t)+chroot(t)+"/sub?connect=20s&relay=1s&ttl=17s&name-prefix=guid_")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.TTL() != 17*time.Second {
		t.Errorf("TTL %v", s.TTL())
	}
	if again, err := b.Session(t.Context()); err != nil || again != s {
		t.Errorf("another session: %v", err)
	}
	if m := join(t, s, "e", ""); m.Key != "guid_0000000000" {
		t.Errorf("%+v", m)
	}
	if ok, _, err := raw(t, server(t)).Exists(chroot(t) + "/sub/e/guid_0000000000"); !ok || err != nil {
		t.Errorf("member is not under the chroot: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !errors.Is(s.Err(), backend.ErrSessionEnded) {
		t.Error(s.Err())
	}
	next, err := b.Session(t.Context())
	if err != nil || next == s {
		t.Errorf("after Close: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		url  string
		want error
		says string
	}{
		{"zookeeper://127.0.0.1:1/x?connect=200ms", backend.ErrUnavailable, "connect"},
		{"zookeeper://no-such-host.invalid/x?connect=3s", backend.ErrUnavailable, "no-such-host.invalid"},
		{"zookeeper:///x", backend.ErrInvalid, "name the servers"},
		{"zookeeper://h/x?sesion=1s", backend.ErrInvalid, "known are acl, as, ca-file, cert-file, connect, key-file, name-prefix, password-env, password-file, relay, server-name, tls, ttl, user"},
		{"zookeeper://h/x?ttl=ten", backend.ErrInvalid, "ttl"},
		{"zookeeper://h/x?ttl=ten", backend.ErrInvalid, "ttl"},
		{"zookeeper://h/x?ttl=2s&ttl=2s", backend.ErrInvalid, "2 times"},
		{"zookeeper://h/x?ttl=1ms", backend.ErrInvalid, "TTL"},
		{"zookeeper://h/x?ttl=600h", backend.ErrInvalid, "between 100ms and 576h"},
		{"zookeeper://h/x?name-prefix=n1", backend.ErrInvalid, "digit"},
		{"zookeeper://h/x?name-prefix=member", backend.ErrInvalid, "must end with '_'"},
		{"zookeeper://h/x?name-prefix=n_-", backend.ErrInvalid, "must end with '_'"},
		{"zookeeper://h/x?name-prefix=read-", backend.ErrInvalid, "names of shared members"},
		{"zookeeper://h/x?name-prefix=x__rlock__", backend.ErrInvalid, "names of shared members"},
		{"zookeeper://h/x?name-prefix=a/b", backend.ErrInvalid, "name-prefix"},
		{"zookeeper://h/x?as=curator", backend.ErrInvalid, "known are [election-support curator-latch curator-selector curator-rw kazoo kazoo-rw]"},
		{"zookeeper://h/x?as=kazoo&name-prefix=n_", backend.ErrInvalid, "one of them"},
		{"zookeeper://h/x?tls=yes", backend.ErrInvalid, "the only value is on"},
		{"zookeeper://h/x?ca-file=/no/such/file", backend.ErrInvalid, "ca-file"},
		{"zookeeper://h/x?ca-file=/dev/null", backend.ErrInvalid, "no PEM certificate"},
		{"zookeeper://h/x?cert-file=/dev/null", backend.ErrInvalid, "go together"},
		{"zookeeper://h/x?cert-file=/dev/null&key-file=/dev/null", backend.ErrInvalid, "key-file"},
		{"zookeeper://h/x?user=alice", backend.ErrInvalid, "go together"},
		{"zookeeper://h/x?password-env=HOME", backend.ErrInvalid, "go together"},
		{"zookeeper://h/x?user=alice&password-env=NO_SUCH_VARIABLE", backend.ErrInvalid, "is empty"},
		{"zookeeper://h/x?user=alice&password-file=/no/such/file", backend.ErrInvalid, "password-file"},
		{"zookeeper://h/x?user=alice&password-file=/f&password-env=HOME", backend.ErrInvalid, "one of them"},
		{"zookeeper://h/x?user=a:b&password-env=HOME", backend.ErrInvalid, "colon"},
		{"zookeeper://h/x?acl=creator", backend.ErrInvalid, "needs credentials"},
		{"zookeeper://h/x?acl=world", backend.ErrInvalid, "known are creator and open"},
		{"zookeeper://h/x%20y", backend.ErrInvalid, "prefix"},
		{"zookeeper://h/x?relay=9s", backend.ErrInvalid, "relay"},
	} {
		b, err := succession.Connect(t.Context(), test.url)
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.url, err)
		}
	}
	if _, err := zookeeper.New(nil, nil); !errors.Is(err, backend.ErrInvalid) {
		t.Error(err)
	}
	if _, err := zookeeper.New([]string{"h:0"}, nil); !errors.Is(err, backend.ErrInvalid) {
		t.Error(err)
	}
}

// What is not there, or is something else, is told within five seconds, in words
// that help somebody who has never seen ZooKeeper.
func TestWrongAddress(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	silent := coordtest.NewProxy(t, server(t))
	silent.Cut()
	full := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{Config: []string{"maxClientCnxns=1"}}).Addrs()[0]
	session(t, open(t, zookeeper.Options{}, full))
	closing := listener(t, func(c net.Conn) { io.ReadFull(c, make([]byte, 44)) })
	chatty := listener(t, func(c net.Conn) {
		io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
		io.Copy(io.Discard, c)
	})
	for _, test := range []struct {
		name, addr string
		says       []string
	}{
		{"nobody listens", "127.0.0.1:1", []string{"127.0.0.1:1", "connection refused"}},
		{"unknown name", "no-such-host.invalid:2181", []string{"lookup no-such-host.invalid"}},
		{"web server that waits for more", web.Listener.Addr().String(), []string{web.Listener.Addr().String(), "is this ZooKeeper's clientPort?"}},
		{"server that speaks first", chatty, []string{chatty, "is not ZooKeeper"}},
		{"silent server", silent.Addr(), []string{silent.Addr(), "is this ZooKeeper's clientPort?"}},
		{"server that hangs up", closing, []string{closing, "tls=on", "quorum"}},
		{"server with too many connections", full, []string{full, "maxClientCnxns"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			watch := calm.Start(t)
			b, err := succession.Connect(t.Context(), "zookeeper://"+test.addr)
			if err == nil {
				b.Close()
			}
			if !errors.Is(err, backend.ErrUnavailable) {
				t.Errorf("%v", err)
			}
			for _, says := range test.says {
				if !strings.Contains(err.Error(), says) && !watch.NotJudged(time.Second, "%v: it does not say %q", err, says) {
					t.Errorf("%v: it does not say %q", err, says)
				}
			}
			watch.Within(5*time.Second, "Open")
			t.Log(err)
		})
	}
}

// listener serves each connection with f, and closes it then.
func listener(t *testing.T, f func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				f(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// An IPv6 address may have a zone.
func TestZone(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server(t))
			if err != nil {
				in.Close()
				return
			}
			go func() { defer out.Close(); io.Copy(out, in) }()
			go func() { defer in.Close(); io.Copy(in, out) }()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	openAt(t, "zookeeper://[::1%25lo]:"+port+"?connect=20s")
	session(t, open(t, zookeeper.Options{}, "[::1%lo]:"+port))
}
