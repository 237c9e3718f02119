package consul_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A server that is slow has no more work because it is slow: what reads a whole line or folder is asked for once in a
// TTL.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	const ttl = 4 * time.Second
	b := open(t, server(t), &consul.Options{TTL: ttl})
	var mu sync.Mutex
	var slow chan struct{} // answers come when it is closed
	var sent atomic.Int64
	consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		mu.Lock()
		until := slow
		mu.Unlock()
		switch kindOf(req) {
		case "renewal", "leader", "query":
		default:
			if until != nil {
				sent.Add(1)
				select {
				case <-until:
				case <-req.Context().Done():
				}
			}
		}
		return next.RoundTrip(req)
	})
	s := sessionOf(t, b)
	name := coordtest.Name(t)
	for what, f := range map[string]func() error{
		"Line":    func() error { _, err := s.Line(t.Context(), name); return err },
		"Lines":   func() error { _, err := s.Lines(t.Context()); return err },
		"List":    func() error { _, err := s.List(t.Context(), name); return err },
		"ReadAll": func() error { _, err := s.ReadAll(t.Context(), name); return err },
	} {
		until := make(chan struct{})
		sent.Store(0)
		mu.Lock()
		slow = until
		mu.Unlock()
		ended := make(chan error, 1)
		go func() { ended <- f() }()
		time.Sleep(ttl * 3 / 4)
		n := sent.Load()
		mu.Lock()
		slow = nil
		mu.Unlock()
		close(until)
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if n != 1 {
			t.Errorf("%s was sent %d times to a server that took %v to answer, want once", what, n, ttl*3/4)
		}
	}
}
