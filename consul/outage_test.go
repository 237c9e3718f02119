package consul_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// dialing opens a backend whose connections are made by dial.
func dialing(t *testing.T, addr string, ttl time.Duration, dial func(ctx context.Context, addr string) (net.Conn, error)) *consul.Backend {
	t.Helper()
	tr := newTransport(t)
	tr.DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) }
	return openWith(t, &api.Config{Address: addr, Transport: tr}, &consul.Options{TTL: ttl})
}

// The agent falls silent, and nobody closes its connections. New ones reach another agent,
// as behind a name or an address that moves. No term ends, and a departure is noticed,
// although the queries that wait for it are dead.
func TestSilentAgentBehindAName(t *testing.T) {
	t.Parallel()
	const ttl = 4 * time.Second
	addr, name := server(t), coordtest.Name(t)
	one, two := coordtest.NewProxy(t, addr), coordtest.NewProxy(t, addr)
	var now atomic.Pointer[proxy.Proxy]
	now.Store(one)
	b := dialing(t, addr, ttl, func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", now.Load().Addr())
	})
	s := sessionOf(t, b)
	leader, err := elect.New(b, name, nil).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := session(t, addr, nil)
	behind := name + "-behind"
	front := join(t, other, behind, "")
	m := join(t, s, behind, "")
	p, err := s.Ahead(t.Context(), m)
	if err != nil || p.First {
		t.Fatalf("it stands at %+v, %v", p, err)
	}
	placed, watch := make(chan backend.Place, 1), calm.Start(t)
	go func() {
		if err := s.WatchPlace(t.Context(), m, &p); err != nil && !watch.NotJudged(ttl/3, "WatchPlace: %v", err) {
			t.Error(err)
		}
		placed <- p
	}()
	// Keep some connections that wait for use.
	for range 3 {
		go s.Line(t.Context(), name)
	}
	time.Sleep(100 * time.Millisecond)

	now.Store(two)
	one.Cut()
	told := calm.Start(t)
	cut := told.Began()
	if err := other.Leave(t.Context(), front); err != nil {
		t.Fatal(err)
	}
	select {
	case p := <-placed:
		t.Logf("told %v after the agent fell silent", time.Since(cut).Round(time.Millisecond))
		told.Within(2*ttl, "to be told of a departure")
		if s.Err() == nil && !p.First {
			t.Errorf("it stands at %+v", p)
		}
	case <-within(t, time.Minute).Done():
		t.Error("a minute after the agent fell silent, a waiter has not been told of a departure")
	}
	time.Sleep(2*ttl - time.Since(cut))
	if err := leader.Check(); err != nil && !watch.NotJudged(ttl/3, "the term has ended: %v", err) {
		t.Errorf("the term has ended: %v", err)
	}
}

// A dial has a time limit, so that the dialer goes on to the next address of a name.
func TestEveryAddressIsTried(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second
	addr := server(t)
	b := dialing(t, addr, ttl, func(ctx context.Context, addr string) (net.Conn, error) {
		// As net.Dialer does if the first of two addresses is silent.
		end, ok := ctx.Deadline()
		if !ok {
			<-ctx.Done()
			return nil, errors.New("the dial has no time limit")
		}
		select {
		case <-time.After(time.Until(end) / 2):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	})
	s := sessionOf(t, b)
	join(t, s, coordtest.Name(t), "")
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}
