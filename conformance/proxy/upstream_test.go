package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/conformance/proxy"
)

const (
	// soon is longer than anything takes that happens at all.
	soon = 10 * time.Second
	// silence is how long a test listens to be sure that nothing comes.
	silence = 50 * time.Millisecond
)

// An upstream is a TCP server whose connections the test serves itself.
type upstream struct {
	net.Listener
	t     *testing.T
	conns chan net.Conn
}

// listenUpstream starts an upstream. Its connections are closed at the end of the test.
func listenUpstream(t *testing.T) *upstream {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{Listener: l, t: t, conns: make(chan net.Conn, 16)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(u.conns)
				return
			}
			u.conns <- c
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
		for c := range u.conns {
			c.Close()
		}
	})
	return u
}

// accept returns the next connection.
func (u *upstream) accept() net.Conn {
	u.t.Helper()
	select {
	case c := <-u.conns:
		u.t.Cleanup(func() { c.Close() })
		return c
	case <-time.After(soon):
		u.t.Fatal("nobody connected")
		return nil
	}
}

// through starts a proxy and returns both ends of one connection through it.
func through(t *testing.T) (p *proxy.Proxy, client, server net.Conn) {
	t.Helper()
	checkLeaks(t)
	u := listenUpstream(t)
	p = start(t, u)
	client = dial(t, p)
	return p, client, u.accept()
}

// start starts a proxy in front of u. It is closed at the end of the test.
func start(t *testing.T, u *upstream) *proxy.Proxy {
	t.Helper()
	p, err := proxy.Start(u.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// checkLeaks fails the test if goroutines are left after everything has been closed.
func checkLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		err := goleak.Find(before)
		for end := time.Now().Add(soon); err != nil && time.Now().Before(end); { // nothing tells that one has ended
			err = goleak.Find(before)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

func dial(t *testing.T, p *proxy.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func send(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatal(err)
	}
}

// expect reads exactly s.
func expect(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, len(s))
	if n, err := io.ReadFull(c, buf); err != nil || string(buf) != s {
		t.Fatalf("read %q, %v; want %q", buf[:n], err, s)
	}
}

// expectSilence reads, and checks that nothing comes and the connection does not end.
func expectSilence(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(silence)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	if n, err := c.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %q, %v; want nothing", buf[:n], err)
	}
}

// expectReset reads, and checks that a TCP reset comes.
func expectReset(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 100)); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read %d bytes, %v; want a reset", n, err)
	}
}

// expectRefusal connects, and checks that a TCP reset comes. It may come before Dial returns.
func expectRefusal(t *testing.T, p *proxy.Proxy) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if errors.Is(err, syscall.ECONNRESET) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	expectReset(t, c)
}

func wait(t *testing.T, p *proxy.Proxy, cond func(proxy.Stats) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if err := p.Wait(ctx, cond); err != nil {
		t.Fatal(err)
	}
}
