package coordtest

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/succession-dev/succession/conformance/proxy"
)

// StartProxy starts a proxy on a free port of the loopback address that forwards to
// target, a host:port. The caller closes it.
func StartProxy(target string) (*proxy.Proxy, error) { return startProxy(target, nil) }

// NewProxy starts a proxy for one test and closes it when the test ends; see
// [StartProxy].
func NewProxy(t testing.TB, target string) *proxy.Proxy {
	t.Helper()
	p, err := StartProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// startProxy is StartProxy, for a server that is reached as dial does; nil is as usual.
func startProxy(target string, dial func(string, time.Duration) (net.Conn, error)) (*proxy.Proxy, error) {
	l, err := listen()
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	return proxy.Start(target, &proxy.Options{Listener: l, Dial: dial})
}

// listen listens on a free port outside the range of outgoing connections: a client
// that dials a closed port of that range may be connected to itself.
func listen() (net.Listener, error) {
	for attempt := 1; ; attempt++ {
		ports, err := freePorts(1)
		if err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", loopback(ports[0]))
		if err == nil || attempt == portAttempts {
			return l, err
		}
	}
}
