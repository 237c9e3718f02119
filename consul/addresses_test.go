package consul_test

import (
	"net"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// Of two addresses of a name, the first accepts connections and stays silent. A process that starts
// connects, and so does one whose connections break, in time for its session.
func TestSilentAddress(t *testing.T) {
	t.Parallel()
	const ttl = 2 * ttl
	front := coordtest.NewProxy(t, server(t))
	_, port, err := net.SplitHostPort(front.Addr())
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	consul.Names.Store("silent-address.test", []string{"127.0.0.2", "127.0.0.1"})
	b, err := succession.Connect(t.Context(), "consul://silent-address.test:"+port+"?ttl="+ttl.String())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, name := sessionOf(t, b), coordtest.Name(t)
	m := join(t, s, name, "")
	w := watchPlace(t, s, m)
	for range 3 {
		watch := calm.Start(t)
		front.Reset()
		broken := time.Now()
		for !s.Deadline().After(broken.Add(ttl)) { // a renewal was sent since
			select {
			case <-time.After(ttl / 100):
			case <-s.Done():
				if !watch.NotJudged(ttl/3, "%v", s.Err()) {
					t.Fatal(s.Err())
				}
				return
			}
		}
		t.Logf("renewed %v after the connections broke", time.Since(broken).Round(time.Millisecond))
		if p, err := s.Ahead(t.Context(), m); err != nil || !p.First {
			t.Fatalf("it stands at %+v, %v", p, err)
		}
	}
	if err := s.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.returns(t, ttl)
}
