package etcd_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// TestSilentAddress uses a name with two addresses of which the first accepts connections and
// stays silent. A session is opened at the other one, and a leader whose connection breaks
// connects again before its term would end.
func TestSilentAddress(t *testing.T) {
	t.Parallel()
	front := coordtest.NewProxy(t, sharedEtcd(t).Addrs()[0])
	_, port, err := net.SplitHostPort(front.Addr())
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	etcd.Names.Store("silent-address.test", []string{"127.0.0.2", "127.0.0.1"})
	s := openURL(t, "etcd://silent-address.test:"+port+"?ttl=10s")
	m, watch := lead(t, s, coordtest.Name(t)), calm.Start(t)
	for range 3 {
		front.Reset()
		least := s.TTL()
		answered := make(chan error, 1)
		go func() {
			_, err := s.Get(t.Context(), "record")
			answered <- err
		}()
		for waiting := true; waiting; {
			select {
			case err := <-answered:
				if err != nil {
					if !watch.NotJudged(s.TTL()/4, "a read: %v", err) {
						t.Fatal(err)
					}
					return
				}
				waiting = false
			case <-time.After(5 * time.Millisecond):
			}
			least = min(least, time.Until(s.Deadline()))
		}
		t.Logf("at least %v were left", least)
		standsFirst(t, s, m)
	}
}

// TestIsolatedServer uses a name with two addresses. The server at the first is cut off from the others, and answers its clients on. A
// leader finds the server at the other address in time, and so does a process that starts.
func TestIsolatedServer(t *testing.T) {
	t.Parallel()
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3, Links: true})
	leads := leader(t, cluster)
	first, second := cluster.Servers()[(leads+1)%3], cluster.Servers()[leads]
	front := coordtest.NewProxy(t, first.Addr())
	_, port, err := net.SplitHostPort(front.Addr())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	forward(l, second.Addr())
	etcd.Names.Store("isolated-server.test", []string{"127.0.0.1", "127.0.0.2"})
	at := "etcd://isolated-server.test:" + port + "?ttl=10s"
	s := openURL(t, at)
	m := lead(t, s, coordtest.Name(t))

	watch := calm.Start(t)
	if err := cluster.Isolate(first); err != nil {
		t.Fatal(err)
	}
	isolated := time.Now()
	lead(t, openURL(t, at), coordtest.Name(t))
	for !s.Deadline().After(isolated.Add(s.TTL())) { // a heartbeat was sent since
		select {
		case <-time.After(5 * time.Millisecond):
		case <-s.Done():
			if !watch.NotJudged(s.TTL()/4, "%v", s.Err()) {
				t.Fatal(s.Err())
			}
			return
		}
	}
	standsFirst(t, s, m)
}

// TestServersReplaced gives a name another address, and lets the one that it had vanish, as when
// members of etcd are replaced one by one. A leader goes on at the new one.
func TestServersReplaced(t *testing.T) {
	t.Parallel()
	const name = "replaced.test"
	first := coordtest.NewProxy(t, sharedEtcd(t).Addrs()[0])
	_, port, err := net.SplitHostPort(first.Addr())
	if err != nil {
		t.Fatal(err)
	}
	etcd.Names.Store(name, []string{"127.0.0.1"})
	s := openURL(t, "etcd://"+name+":"+port+"?ttl=20s")
	m := lead(t, s, coordtest.Name(t))
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	forward(l, sharedEtcd(t).Addrs()[0])
	etcd.Names.Store(name, []string{"127.0.0.2"})
	first.Kill()
	standsFirst(t, s, m)
}

// TestZone uses an IPv6 address with a zone.
func TestZone(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	forward(l, sharedEtcd(t).Addrs()[0])
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, zone := range []string{"%25lo", "%lo"} {
		lead(t, openURL(t, "etcd://[::1"+zone+"]:"+port), coordtest.Name(t))
	}
}

// forward passes on what comes from the connections of l to the server, and back, until l is
// closed.
func forward(l net.Listener, server string) {
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
			go func() { defer out.Close(); _, _ = io.Copy(out, in) }()
			go func() { defer in.Close(); _, _ = io.Copy(in, out) }()
		}
	}()
}
