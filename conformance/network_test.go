package conformance_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/proxy"
)

// A fronted backend connects through proxies to servers that echo.
type fronted struct {
	backend.Backend
	proxies []*proxy.Proxy
}

// echo starts a server that sends back what it gets, and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

// reached returns when the proxy has counted n bytes to the server, which it may do after the server has answered them.
func reached(t *testing.T, p *proxy.Proxy, n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := p.Wait(ctx, func(s proxy.Stats) bool { return s.ToServer == n }); err != nil {
		t.Errorf("%d bytes have not reached the server at %s: %v", n, p.Addr(), err)
	}
}

// Each network fault hits all proxies of a client, in the direction of the fault, until it is
// healed.
func TestNetwork(t *testing.T) {
	var f conformance.Faults
	f.Network(func(b backend.Backend) []*proxy.Proxy { return b.(*fronted).proxies })
	const request = "request"
	for _, tt := range []struct {
		name    string
		fault   func(backend.Backend) func()
		reaches bool // the server, while the fault is there
		breaks  bool // the connection
	}{
		{"Cut", f.Cut, false, false},
		{"Mute", f.Mute, false, false},
		{"Deafen", f.Deafen, true, false},
		{"Sever", f.Sever, true, true},
		{"Hide", f.Hide, false, true},
		{"Kill", func(b backend.Backend) func() { f.Kill(b); return nil }, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := new(fronted)
			var conns []net.Conn
			for range 2 {
				p, err := proxy.Start(echo(t), nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(p.Close)
				c, err := net.Dial("tcp", p.Addr())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				b.proxies, conns = append(b.proxies, p), append(conns, c)
				says(t, c, request) // so it is open on both sides
				reached(t, p, int64(len(request)))
			}
			heal := tt.fault(b)
			for i, c := range conns {
				c.Write([]byte(request)) // it fails if the connection is broken already
				c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
				if tt.breaks {
					c.SetReadDeadline(time.Now().Add(10 * time.Second))
				}
				n, err := c.Read(make([]byte, 1))
				if n > 0 || errors.Is(err, os.ErrDeadlineExceeded) == tt.breaks {
					t.Errorf("server %d: read %d bytes, %v", i, n, err)
				}
				if tt.reaches {
					reached(t, b.proxies[i], 2*int64(len(request)))
				} else if got := b.proxies[i].Stats().ToServer; got != int64(len(request)) {
					t.Errorf("server %d: %d bytes have reached it, want those of the first request", i, got)
				}
			}
			if heal == nil {
				return
			}
			heal()
			for i, c := range conns {
				if !tt.breaks {
					c.SetReadDeadline(time.Now().Add(10 * time.Second))
					if _, err := io.ReadFull(c, make([]byte, len(request))); err != nil {
						t.Errorf("server %d: what was held back: %v", i, err)
					}
				}
				again, err := net.Dial("tcp", b.proxies[i].Addr())
				if err != nil {
					t.Fatal(err)
				}
				defer again.Close()
				says(t, again, request)
			}
		})
	}
}

// says checks that the server echoes what it is told.
func says(t *testing.T, c net.Conn, what string) {
	t.Helper()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	defer c.SetDeadline(time.Time{})
	if _, err := io.WriteString(c, what); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(what))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != what {
		t.Fatalf("read %q, %v; want %q", b, err, what)
	}
}
