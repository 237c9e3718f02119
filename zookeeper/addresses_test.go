package zookeeper

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/addresses"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// named returns a dialer for which every name has these addresses, always in this order.
func named(addrs ...string) Dialer {
	d := addresses.New()
	d.Lookup = func(context.Context, string) ([]string, error) { return append([]string(nil), addrs...), nil }
	return d.DialContext
}

// listen accepts connections and stays silent.
func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// One address of a name accepts connections and stays silent. A session is then opened at
// another address, and a leader keeps its term.
func TestSilentAddress(t *testing.T) {
	t.Parallel()
	z := coordtest.NewZooKeeper(t, nil)
	front := coordtest.NewProxy(t, z.Addrs()[0])
	_, port, err := net.SplitHostPort(front.Addr())
	if err != nil {
		t.Fatal(err)
	}
	listen(t, net.JoinHostPort("127.0.0.2", port))
	b, err := New([]string{"ensemble.test:" + port}, &Options{
		TTL:            8 * time.Second,
		ConnectTimeout: 20 * time.Second,
		Dialer:         named("127.0.0.2", "127.0.0.1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Join(t.Context(), "e", "", "")
	if err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	for range 3 {
		if p, err := s.Ahead(t.Context(), m.Member); err != nil || !p.First {
			t.Fatalf("%+v, %v", p, err)
		}
		front.Reset()
		answered := make(chan error, 1)
		go func() {
			_, err := s.Get(t.Context(), "r")
			answered <- err
		}()
		least := time.Hour
		for waiting := true; waiting; {
			select {
			case err := <-answered:
				if err != nil && watch.NotJudged(s.TTL()/4, "%v", err) {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				waiting = false
			case <-time.After(5 * time.Millisecond):
			}
			least = min(least, time.Until(s.Deadline()))
		}
		// Package elect ends a term a tenth of the session before the deadline.
		if least < s.TTL()/10 && !watch.NotJudged(s.TTL()/4, "only %v were left until the deadline", least) {
			t.Errorf("only %v were left until the deadline", least)
		}
		t.Logf("at least %v were left", least)
	}
}

// The address that a leader is connected to goes silent. The next address of the name is tried in
// time.
func TestAddressGoesSilent(t *testing.T) {
	t.Parallel()
	z := coordtest.NewZooKeeper(t, nil)
	front := coordtest.NewProxy(t, z.Addrs()[0])
	_, port, err := net.SplitHostPort(front.Addr())
	if err != nil {
		t.Fatal(err)
	}
	forward(t, listen(t, net.JoinHostPort("127.0.0.2", port)), z.Addrs()[0])
	b, err := New([]string{"ensemble.test:" + port}, &Options{
		TTL:            4 * time.Second,
		ConnectTimeout: 20 * time.Second,
		Dialer:         named("127.0.0.1", "127.0.0.2"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	watch := calm.Start(t)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Join(t.Context(), "e", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := s.Ahead(t.Context(), m.Member); err != nil || !p.First {
		t.Fatalf("%+v, %v", p, err)
	}
	time.Sleep(s.TTL() / 2) // some heartbeats
	front.Cut()
	least := time.Hour
	for begin := time.Now(); time.Since(begin) < s.TTL(); time.Sleep(5 * time.Millisecond) {
		least = min(least, time.Until(s.Deadline()))
	}
	if err := s.Err(); (err != nil || least < s.TTL()/10) && !watch.NotJudged(s.TTL()/4, "%v; only %v were left until the deadline", err, least) {
		t.Errorf("%v; only %v were left until the deadline", err, least)
	}
	t.Logf("at least %v were left", least)
}

// forward passes on what comes from the connections of l to the server, and back.
func forward(t *testing.T, l net.Listener, server string) {
	t.Helper()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				in.Close()
				return
			}
			go func() { defer out.Close(); io.Copy(out, in) }()
			go func() { defer in.Close(); io.Copy(in, out) }()
		}
	}()
}
