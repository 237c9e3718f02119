package page_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/door"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/memory"
)

// A wire is a listener in virtual time.
type wire struct {
	dialed chan net.Conn
	close  sync.Once
}

func (w *wire) Accept() (net.Conn, error) {
	if c, ok := <-w.dialed; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (w *wire) Close() error {
	w.close.Do(func() { close(w.dialed) })
	return nil
}

func (*wire) Addr() net.Addr { return loopback }

// An end is that of the server.
type end struct{ net.Conn }

func (end) LocalAddr() net.Addr  { return loopback }
func (end) RemoteAddr() net.Addr { return loopback }

// onWire serves the page as the command does, until the test ends, and returns what connects to it.
func onWire(t *testing.T, s *page.Server) (dial func() net.Conn) {
	t.Helper()
	l := &wire{dialed: make(chan net.Conn)}
	hs := &http.Server{Handler: s, IdleTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = door.Serve(hs, l, "too many connections", "/healthz") })
	var all []net.Conn
	t.Cleanup(func() {
		for _, c := range all {
			c.Close()
		}
		s.Close()
		hs.Close()
		serving.Wait()
	})
	return func() net.Conn {
		here, there := net.Pipe()
		l.dialed <- end{there}
		all = append(all, here)
		return here
	}
}

// A request whose body does not come keeps a connection for a while, and not for ever: also one that should have none, and one
// that is a connection too many.
func TestBodyThatDoesNotCome(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, _ *memory.Coordinator, s *page.Server) {
		dial := onWire(t, s)
		asks := func(method, path, code string) {
			t.Helper()
			c := dial()
			fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Length: 1\r\n\r\n", method, path)
			_ = c.SetReadDeadline(time.Now().Add(time.Hour))
			if answer, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+code) {
				t.Errorf("%s %s with a body that does not come: %v, %.100q; want %s, and the end", method, path, err, answer, code)
			}
		}
		asks("GET", "/healthz", "200")
		asks("POST", "/healthz", "405")
		for range door.Most {
			dial()
		}
		asks("GET", "/", "503")
	})
}
