package zookeeper_test

import (
	"cmp"
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/zookeeper"
)

// shared is a server for the tests that do it no harm. Each uses a chroot of its
// own.
var shared = sync.OnceValues(func() (*coordtest.ZooKeeper, error) {
	return coordtest.StartZooKeeper(context.Background(), nil)
})

func TestMain(m *testing.M) {
	rig.Candidate()
	if os.Getenv(ourPeer) != "" {
		peerMain()
	}
	coordtest.Main(m, 16, func() {
		if z, err := shared(); err == nil {
			z.Stop()
		}
	})
}

// server returns the shared server's address.
func server(t testing.TB) string {
	t.Helper()
	z, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return z.Addrs()[0]
}

// own starts a server for one test.
func own(t testing.TB) *coordtest.ZooKeeper {
	t.Helper()
	return coordtest.NewZooKeeper(t, nil)
}

// open returns a backend, which is closed when the test ends. Its sessions, and the opening of one, have so much time that no test fails
// because something was slow, unless the test is about that time.
func open(t testing.TB, o zookeeper.Options, addrs ...string) *zookeeper.Backend {
	t.Helper()
	if o.Prefix == "" {
		o.Prefix = chroot(t)
	}
	o.TTL = cmp.Or(o.TTL, 20*time.Second)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 20*time.Second)
	b, err := zookeeper.New(addrs, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func session(t testing.TB, b *zookeeper.Backend) backend.Session {
	t.Helper()
	s, err := b.Session(within(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func join(t testing.TB, s backend.Session, line, value string) backend.Member {
	t.Helper()
	m, err := s.Join(within(t, time.Minute), line, value, "")
	if err != nil {
		t.Fatal(err)
	}
	return m.Member
}

func appendItem(t testing.TB, s backend.Session, line, value string) backend.Member {
	t.Helper()
	m, err := s.Append(within(t, time.Minute), line, value)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ahead(t testing.TB, s backend.Session, m backend.Member) backend.Place {
	t.Helper()
	p, err := s.Ahead(within(t, time.Minute), m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func line(t testing.TB, s backend.Session, name string) backend.Line {
	t.Helper()
	l, err := s.Line(within(t, time.Minute), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// background runs f and returns where its result comes.
func background(f func() error) <-chan error {
	ch := make(chan error, 1)
	go func() { ch <- f() }()
	return ch
}

// result waits for what background started.
func result(t testing.TB, ch <-chan error, limit time.Duration) error {
	t.Helper()
	watch := calm.Start(t)
	select {
	case err := <-ch:
		watch.Within(limit, "what was begun before")
		return err
	case <-time.After(limit + time.Minute):
		t.Fatalf("still blocked after %v", limit+time.Minute)
		return nil
	}
}

// still fails the test if what background started returns within d.
func still(t testing.TB, ch <-chan error, d time.Duration) {
	t.Helper()
	select {
	case err := <-ch:
		t.Fatalf("returned early: %v", err)
	case <-time.After(d):
	}
}

func chroot(t testing.TB) string { return "/" + safe(t.Name()) }

func safe(name string) string {
	out := []byte(name)
	for i, c := range out {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9') {
			out[i] = '_'
		}
	}
	return string(out)
}
