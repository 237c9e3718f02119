//go:build linux

package postgres_test

import (
	"net"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/postgres"
)

// PgBouncer in transaction mode takes LISTEN, and no notice arrives. A member is told all the same, soon if it is next.
func TestPooler(t *testing.T) {
	t.Parallel()
	p := coordtest.NewPostgres(t, nil)
	addr := coordtest.NewPgBouncer(t, p, "transaction")
	b := hosts(t, postgres.Options{TTL: 4 * ttl}, addr)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !postgres.Polled(s) {
		t.Fatal("the pooler was not noticed")
	}
	for range 5 {
		one, two, three := join(t, s, "e", "1"), join(t, s, "e", "2"), join(t, s, "e", "3")
		for _, step := range []struct{ leaves, next backend.Member }{{one, two}, {two, three}} {
			place, err := s.Ahead(t.Context(), step.next)
			if err != nil || place.First {
				t.Fatalf("%+v, %v", place, err)
			}
			told := make(chan error, 1)
			go func() { told <- s.WatchPlace(t.Context(), step.next, &place) }()
			c := calm.Start(t)
			if err := s.Leave(t.Context(), step.leaves); err != nil {
				t.Fatal(err)
			}
			if err := <-told; err != nil || !place.First {
				t.Fatalf("%+v, %v", place, err)
			}
			c.Within(ttl/2, "the next one was told")
		}
		if err := s.Leave(t.Context(), three); err != nil {
			t.Fatal(err)
		}
	}
	// Its session lives on, and ends as others do.
	select {
	case <-s.Done():
		t.Fatal(s.Err())
	case <-time.After(5 * ttl):
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// In session mode, too, the driver knows that there is a pooler, and not in which mode it is.
func TestPoolerInSessionMode(t *testing.T) {
	t.Parallel()
	p := coordtest.NewPostgres(t, nil)
	s, err := hosts(t, postgres.Options{}, coordtest.NewPgBouncer(t, p, "session")).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !postgres.Polled(s) {
		t.Error("the pooler was not noticed: the page says that members look again and again in session mode, too")
	}
}

// A pooler comes to stand between a session and its server. Who waited before is told all the same.
func TestPoolerComes(t *testing.T) {
	t.Parallel()
	p := coordtest.NewPostgres(t, nil)
	addr := p.Addrs()[0]
	cfg, leads := balanced(t)
	shown := &net.TCPAddr{Port: 1}
	leads(addr, shown)
	other, s := opens(t, hosts(t, postgres.Options{}, addr)), opens(t, backendOf(t, cfg, postgres.Options{}))
	leader, m := join(t, other, "e", "1"), join(t, s, "e", "2")
	ctx := within(t, time.Minute)
	place, err := s.Ahead(ctx, m)
	if err != nil || place.First {
		t.Fatalf("%+v, %v", place, err)
	}
	told := make(chan error, 1)
	go func() { told <- s.WatchPlace(ctx, m, &place) }()
	for !postgres.Told(s) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	leads(coordtest.NewPgBouncer(t, p, "transaction"), shown)
	run(t, addr, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
	for !postgres.Polled(s) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if err := other.Leave(ctx, leader); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err != nil || !place.First {
		t.Errorf("the next one was told %+v, %v", place, err)
	}
}

// The suite's rules of waiting hold behind a pooler, too.
func TestConformanceBehindPooler(t *testing.T) {
	p := coordtest.NewPostgres(t, nil)
	pooled(t, coordtest.NewPgBouncer(t, p, "transaction"))
}
