package addresses_test

import (
	"context"
	"net"
	"testing"

	"github.com/succession-dev/succession/internal/addresses"
)

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestInTurn dials a name with three addresses. Each has its turn, and one that refuses costs
// no dial.
func TestInTurn(t *testing.T) {
	t.Parallel()
	front := listen(t, "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(front.Addr().String())
	third := listen(t, net.JoinHostPort("127.0.0.3", port))
	d := addresses.New()
	d.Lookup = func(context.Context, string) ([]string, error) {
		return []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, nil
	}
	for _, want := range []net.Listener{front, third, front, third} {
		conn, err := d.DialContext(t.Context(), "tcp", "server.test:"+port)
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.RemoteAddr().String(); got != want.Addr().String() {
			t.Errorf("dialled %s, want %s", got, want.Addr())
		}
		conn.Close()
	}
	if !d.Several("server.test:"+port) || d.Several("other.test:"+port) {
		t.Error("one name has several addresses, and the other is not known")
	}
	front.Close()
	third.Close()
	if conn, err := d.DialContext(t.Context(), "tcp", "server.test:"+port); err == nil {
		conn.Close()
		t.Error("no address listens")
	}
}
