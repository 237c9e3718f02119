package target

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// proxied returns a new proxy and the listener that it forwards to.
func proxied(t *testing.T) (*proxy, *net.TCPListener) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p, err := newProxy(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p, l.(*net.TCPListener)
}

// pipe returns both ends of a connection through a new proxy.
func pipe(t *testing.T) (p *proxy, client, server *net.TCPConn) {
	t.Helper()
	p, l := proxied(t)
	return p, dial(t, p), accept(t, l)
}

func dial(t *testing.T, p *proxy) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", p.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func accept(t *testing.T, l net.Listener) *net.TCPConn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func send(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatal(err)
	}
}

func receives(t *testing.T, c net.Conn, want string) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("received %q, %v; want %q", b, err, want)
	}
}

// receivesNothing looks for a twentieth of a second.
func receivesNothing(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("received %d bytes, %v; want nothing", n, err)
	}
}

func TestProxyHolds(t *testing.T) {
	p, client, server := pipe(t)
	send(t, client, "one")
	receives(t, server, "one")
	send(t, server, "uno")
	receives(t, client, "uno")

	p.hold(toClient)
	send(t, client, "two")
	receives(t, server, "two")
	send(t, server, "due")
	receivesNothing(t, client)

	p.hold(toServer)
	send(t, client, "three")
	receivesNothing(t, server)

	p.release()
	receives(t, client, "due")
	receives(t, server, "three")
}

func TestProxyHoldsNewConnections(t *testing.T) {
	p, l := proxied(t)
	p.hold(toClient)
	client := dial(t, p)
	send(t, client, "hello")
	l.SetDeadline(time.Now().Add(50 * time.Millisecond))
	if c, err := l.Accept(); err == nil {
		c.Close()
		t.Fatal("a cut network carried a handshake")
	}
	l.SetDeadline(time.Time{})
	p.release()
	receives(t, accept(t, l), "hello")
}

// Who does not read must not keep hold from returning, and loses nothing.
func TestProxyHoldsAWriteThatBlocks(t *testing.T) {
	p, client, server := pipe(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	sent := make(chan error, 1)
	go func() {
		_, err := client.Write(data)
		if err == nil {
			err = client.CloseWrite()
		}
		sent <- err
	}()
	receives(t, server, "0123") // so the proxy writes, and nobody reads on
	p.hold(toServer)
	p.release()
	rest, err := io.ReadAll(server)
	if err := errors.Join(err, <-sent); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(rest, data[4:]) {
		t.Errorf("%d bytes arrived, not the %d that were sent", len(rest)+4, len(data))
	}
	send(t, server, "got it") // the other direction is open still
	receives(t, client, "got it")
}

func TestProxyAbandons(t *testing.T) {
	p, client, server := pipe(t)
	p.hold(toServer)
	p.abandon()
	breaks(t, client)
	breaks(t, server)
	refused(t, p)
}

// A connection that is severed carries what it is given first, and no answer to it;
// after the release all is well.
func TestProxySevers(t *testing.T) {
	p, l := proxied(t)
	p.sever()
	for range 2 {
		client := dial(t, p)
		server := accept(t, l)
		send(t, server, "hello") // this way it carries all
		receives(t, client, "hello")
		send(t, client, "one")
		breaks(t, client)
		breaks(t, server)
	}
	p.release()
	client := dial(t, p)
	send(t, client, "one")
	receives(t, accept(t, l), "one")
}

// However quick an answer is, it does not come through.
func TestProxySeversAnswers(t *testing.T) {
	p, l := proxied(t)
	p.sever()
	for i := range 200 {
		client := dial(t, p)
		server := accept(t, l)
		go func() {
			if b := make([]byte, 1); server.SetReadDeadline(time.Now().Add(10*time.Second)) == nil {
				if _, err := server.Read(b); err == nil {
					server.Write(b)
				}
			}
		}()
		send(t, client, "x")
		client.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := client.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d: read %d bytes, %v; want an end", i, n, err)
		}
	}
}

func TestProxyHides(t *testing.T) {
	p, l := proxied(t)
	old := dial(t, p)
	send(t, old, "x")
	receives(t, accept(t, l), "x")
	p.hide()
	breaks(t, old)
	refused(t, p)
	p.release()
	client := dial(t, p)
	send(t, client, "one")
	receives(t, accept(t, l), "one")
}

// breaks waits until the connection has ended, whatever it still carries.
func breaks(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection is still there")
	}
}

// refused checks that a new connection breaks, which may be before Dial has returned.
func refused(t *testing.T, p *proxy) {
	t.Helper()
	c, err := net.Dial("tcp", p.addr())
	if err != nil {
		return
	}
	defer c.Close()
	breaks(t, c)
}

// The suite counts goroutines by their labels, which are inherited.
func TestProxyHasNoLabels(t *testing.T) {
	pprof.Do(t.Context(), pprof.Labels("proxy-test", "x"), func(context.Context) {
		_, client, server := pipe(t)
		send(t, client, "x")
		receives(t, server, "x")
	})
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		t.Fatal(err)
	}
	for stack := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(stack, "(*conn).carry") && strings.Contains(stack, "proxy-test") {
			t.Errorf("a goroutine of the proxy has the label of who opened it:\n%s", stack)
		}
	}
	if !strings.Contains(b.String(), "(*conn).carry") {
		t.Error("no goroutine of the proxy was found")
	}
}
