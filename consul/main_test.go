package consul_test

import (
	"cmp"
	"context"
	"io"
	"log"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

// long is the session time of most tests, and ttl that of those that wait for the end of a session, or for what a session does
// in its time. Consul ends a session after twice that.
const (
	long = 15 * time.Second
	ttl  = 2 * time.Second
)

// shared is the server that most tests share. They keep apart by the names of their
// elections.
var shared struct {
	once   sync.Once
	server *coordtest.Consul
	err    error
}

func TestMain(m *testing.M) {
	rig.Candidate()
	// Package net/http writes there what a server answers that refuses a connection.
	log.SetOutput(io.Discard)
	coordtest.Main(m, 10, func() {
		if shared.server != nil {
			shared.server.Stop()
		}
	})
}

// server returns the address of the shared server.
func server(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = coordtest.StartConsul(context.Background(), nil) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("log of the server ends:\n" + shared.server.Servers()[0].LogTail(40))
		}
	})
	return shared.server.Addrs()[0]
}

// open returns a backend on the agent at addr, closed when the test ends.
func open(t testing.TB, addr string, o *consul.Options) *consul.Backend {
	t.Helper()
	return openWith(t, &api.Config{Address: addr}, o)
}

// openWith is open with other settings of a client.
func openWith(t testing.TB, cfg *api.Config, o *consul.Options) *consul.Backend {
	t.Helper()
	var opts consul.Options
	if o != nil {
		opts = *o
	}
	opts.TTL, opts.ConnectTimeout = cmp.Or(opts.TTL, long), time.Minute
	b, err := consul.New(cfg, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() }) // where it matters, the test has checked the error
	return b
}

// session returns a live session of a new backend.
func session(t testing.TB, addr string, o *consul.Options) backend.Session {
	t.Helper()
	return sessionOf(t, open(t, addr, o))
}

func sessionOf(t testing.TB, b backend.Backend) backend.Session {
	t.Helper()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// renewed waits until a renewal counts that is sent from now on.
func renewed(t testing.TB, s backend.Session) {
	t.Helper()
	for now := time.Now(); !s.Deadline().After(now.Add(s.TTL())); {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-s.Done():
			t.Fatal(s.Err())
		}
	}
}

func join(t testing.TB, s backend.Session, line, value string) backend.Member {
	t.Helper()
	m, err := s.Join(t.Context(), line, value, "")
	if err != nil {
		t.Fatal(err)
	}
	return m.Member
}

// admin returns a client of Consul's own, as an operator has it.
func admin(t testing.TB, addr string) *api.Client {
	t.Helper()
	c, err := api.NewClient(&api.Config{Address: addr, Transport: newTransport(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
