package etcd_test

import (
	"net"
	"testing"
	"time"

	"github.com/succession-dev/succession/etcd"
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
	s := openURL(t, "etcd://silent-address.test:"+port+"?ttl=4s")
	m := lead(t, s, coordtest.Name(t))
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
					t.Fatal(err)
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
