// Package example is a complete driver on package kit. Its coordinator exists only for this
// example: a server that keeps lines in memory and speaks HTTP (server_test.go, messages.go). A driver is
// its recipe, its deadline rule and its wire. Here the recipe is in line.go, from Join to
// Pin, and in records.go; deadline.go and wire.go have the others. Package
// conformance tests the driver, under every fault that a harness can wire.
package example

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/backend/kit/lease"
)

const driver kit.Scheme = "example"

const defaultPort = "8080"

func init() {
	coordinator.Register(coordinator.Driver{
		Scheme:  string(driver),
		Open:    kit.Opener(Open),
		Title:   "Example",
		Example: "example://h1:8080?ttl=10s",
		About:   "the server of an example",
		Port:    defaultPort,
	})
}

// A Backend is a long-lived handle on one server. It is safe for concurrent use.
type Backend struct {
	client   *http.Client
	url      string
	ttl      time.Duration
	sessions *kit.Sessions
	log      string // the log that the server must have; empty before the first session; only open uses it
}

// Open returns a backend for a URL such as example://host:8080?ttl=10s. It does not connect.
func Open(u *coordinator.URL) (*Backend, error) {
	ttl := u.Duration("ttl", 10*time.Second)
	err := u.Err()
	if err == nil && (len(u.Hosts) != 1 || u.Path != "") {
		err = fmt.Errorf("%w URL %s: write example://host:8080", backend.ErrInvalid, u)
	}
	if err != nil {
		return nil, driver.Wrap("open", "", err)
	}
	return New(new(http.Transport), u.HostPorts(defaultPort)[0], ttl), nil
}

// New returns a backend for the server at addr, which owns the transport. It does not block.
func New(transport *http.Transport, addr string, ttl time.Duration) *Backend {
	b := &Backend{client: &http.Client{Transport: transport}, url: "http://" + addr + "/", ttl: ttl}
	b.sessions = kit.NewSessions(kit.Config{Scheme: driver, Open: b.open, Connect: 5 * time.Second, Attempt: time.Second, Patience: 2 * time.Second})
	return b
}

func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	return b.sessions.Session(ctx)
}

func (b *Backend) Close() error {
	err := b.sessions.Close()
	b.client.CloseIdleConnections()
	return err
}

// open opens a session. If the answer is lost, it is called again, and the first session ends by itself.
func (b *Backend) open(ctx context.Context) (kit.Session, error) {
	sent := clock.Now()
	a, err := b.send(ctx, b.ttl/2, "open", request{Log: b.log, TTL: b.ttl})
	if err != nil {
		return nil, err
	}
	b.log = a.Log
	s := &session{b: b, log: a.Log, id: a.Session}
	s.lease.Extend(sent, b.ttl)
	if !s.lease.Hold(true) {
		return nil, fmt.Errorf("%w: the session was opened too late", backend.ErrUnavailable)
	}
	s.Life = b.sessions.NewLife(kit.Rules{
		Over:    s.over,
		Left:    s.lease.Left,
		Ending:  s.lease.End,
		Release: s.release,
		Stands:  func() string { return fmt.Sprintf("the server ends the session, within %v", b.ttl) },
	})
	s.lease.Confirmed = s.Beat
	s.Start(s.keepAlive)
	return s, nil
}

// pause returns the pauses between attempts. They are short compared with the TTL.
func (b *Backend) pause() backoff.Backoff { return backoff.Backoff{Min: b.ttl / 100, Max: b.ttl / 10} }

// A session is one session at the server. [kit.Life] implements Done, Err and Close. Callers
// have it in a [kit.Adapter], which checks what they pass and wraps errors.
type session struct {
	kit.NoShares
	kit.NoItems
	kit.AlwaysFresh
	kit.NoLines
	kit.NoSurvey
	kit.NoImports
	kit.NoDates
	kit.NoFiles
	*kit.Life
	b       *Backend
	log, id string
	lease   lease.Lease
}

// release has the server end the session. It tries for a TTL: then the session ends by itself.
func (s *session) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.b.ttl)
	defer cancel()
	_, err := kit.Retry(ctx, s.b.pause(), lost, func(ctx context.Context) (answer, error) {
		return s.b.send(ctx, s.b.ttl/3, "end", request{Log: s.log, Session: s.id})
	})
	if errors.Is(err, errEnded) || errors.Is(err, backend.ErrReset) {
		return nil
	}
	return err
}
