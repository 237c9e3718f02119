package consul_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A muting makes connections that it can silence: nothing breaks, and nothing arrives any more. Those that it makes
// afterwards work.
type muting struct {
	mu    sync.Mutex
	conns []*muted
}

type muted struct {
	net.Conn
	silent atomic.Bool
}

func (m *muting) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &muted{Conn: conn}
	m.conns = append(m.conns, c)
	return c, nil
}

func (m *muting) silence() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		c.silent.Store(true)
	}
}

func (c *muted) Read(b []byte) (int, error) {
	for {
		if n, err := c.Conn.Read(b); err != nil || !c.silent.Load() {
			return n, err
		}
	}
}

func (c *muted) Write(b []byte) (int, error) {
	if c.silent.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// All connections fall silent with the server that led, while many write. A write waits for its answer
// for a whole TTL. Meanwhile the session must move its members, and other calls are answered.
func TestSilentConnectionsOfWriters(t *testing.T) {
	t.Parallel()
	const ttl, writers = 9 * time.Second, 10
	var m muting
	tr := newTransport(t)
	tr.DialContext = m.dial
	b := openWith(t, &api.Config{Address: server(t), Transport: tr}, &consul.Options{TTL: ttl})
	var leader atomic.Pointer[string]
	tapLeader(b, &leader)
	s := sessionOf(t, b)
	name := coordtest.Name(t)
	member := join(t, s, name, "")
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	defer writing.Wait()
	defer cancel()
	var written sync.WaitGroup
	written.Add(writers)
	for i := range writers {
		writing.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, _ = s.Put(ctx, fmt.Sprint(name, "-", i), nil, &backend.If{Member: member})
				if n == 0 {
					written.Done()
				}
			}
		})
	}
	written.Wait()
	m.silence()
	old, other := consul.SessionID(s), `"10.0.0.9:8300"`
	leader.Store(&other)
	watch, silent := calm.Start(t), calm.Start(t)
	if _, err := s.Ahead(t.Context(), member); err != nil && !silent.NotJudged(ttl/3, "Ahead: %v", err) {
		t.Error("Ahead: ", err)
	}
	if _, err := s.Get(t.Context(), name); err != nil && !silent.NotJudged(ttl/3, "Get: %v", err) {
		t.Error("Get: ", err)
	}
	watch.Within(ttl*5/6, "Ahead and Get, while writers' connections are silent,") // two attempts, one after the other
	for consul.SessionID(s) == old {
		select {
		case <-s.Done():
			if !silent.NotJudged(ttl/3, "the session has ended: %v", s.Err()) {
				t.Fatalf("the session has ended %v after its connections fell silent: %v", time.Since(silent.Began()), s.Err())
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// tapLeader has b be told that the given server leads, once one is given.
func tapLeader(b *consul.Backend, leader *atomic.Pointer[string]) {
	consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if says := leader.Load(); kindOf(req) == "leader" && says != nil {
			return answering(req, http.StatusOK, *says), nil
		}
		return next.RoundTrip(req)
	})
}
