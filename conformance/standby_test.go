package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/internal/broken"
	"github.com/succession-dev/succession/memory"
)

// Clients that wait for the sessions that may have been lost keep the rule.
func TestStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCluster()
		defer close(k.over)
		h := k.harness(plain)
		h.Only = []string{"G1.promoted", "G1.promoted-beside"}
		if report := conformance.Check(t.Context(), h, nil); report.Count(conformance.Passed) != 2 {
			t.Error(report.Results)
		}
	})
}

// A standby simulates a primary and a standby with two coordinators in memory. The second one lags from the beginning: it has
// nothing of the first. Its log begins later, as that of a standby goes on.
type standby struct {
	primary, second *memory.Coordinator
	wrap            func(backend.Backend) backend.Backend
	beside          bool // the first serves on: who leads there stays connected to it, and it acknowledges nothing more

	mu      sync.Mutex
	clients []*follower
	over    time.Time // when the second took over; zero before
}

func newStandby(wrap func(backend.Backend) backend.Backend) *standby {
	return &standby{
		primary: memory.New(&memory.Options{TTL: ttl, Slack: slack}),
		second:  memory.New(&memory.Options{TTL: ttl, Slack: slack, Index: 1 << 20}),
		wrap:    wrap,
	}
}

func (s *standby) replica() *conformance.Replica {
	return &conformance.Replica{
		Open: func(context.Context) (backend.Backend, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			f := &follower{s: s, name: fmt.Sprint(len(s.clients) + 1)}
			f.now = s.primary.Client(f.name)
			s.clients = append(s.clients, f)
			b := s.wrap(f)
			if w, ok := b.(*broken.Backend); ok {
				f.trusting = w.Trusting()
			}
			return b, nil
		},
		Lag: func(context.Context) error { return nil },
		Promote: func(context.Context) error {
			s.primary.Pause() // for good
			s.mu.Lock()
			s.over = time.Now()
			all := slices.Clone(s.clients)
			s.mu.Unlock()
			for _, f := range all {
				if !f.cut.Load() && !(s.beside && f.leads.Load()) { // its connection breaks, and the second one knows nothing of its session
					f.follow()
				}
			}
			return nil
		},
		Close: s.primary.Resume, // so that who waits for it can end
	}
}

// A follower is a client that goes to the second coordinator when that has taken over. Like a good one it then takes nobody for the
// first before those have ended that were lost.
type follower struct {
	s        *standby
	name     string
	trusting bool
	cut      atomic.Bool
	leads    atomic.Bool // it was first

	mu  sync.Mutex
	now *memory.Backend
	old *memory.Backend // nil before it has gone over
}

// Unwrap returns the client of the coordinator in use.
func (f *follower) Unwrap() backend.Backend {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *follower) Session(ctx context.Context) (backend.Session, error) {
	f.s.mu.Lock()
	over := f.s.over
	f.s.mu.Unlock()
	if !over.IsZero() {
		f.follow()
	}
	s, err := f.Unwrap().Session(ctx)
	if err != nil {
		return s, err
	}
	p := &patient{Session: s, f: f}
	if !over.IsZero() && !f.trusting {
		p.since = over.Add(ttl + ttl/20)
	}
	return p, nil
}

// follow goes over to the second coordinator. The session ends, which is of the first.
func (f *follower) follow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.old == nil {
		f.old, f.now = f.now, f.s.second.Client(f.name)
		f.old.Kill()
	}
}

// followerIn returns the client of a standby inside b, or nil.
func followerIn(b backend.Backend) *follower {
	for {
		if f, ok := b.(*follower); ok {
			return f
		}
		w, ok := b.(interface{ Unwrap() backend.Backend })
		if !ok {
			return nil
		}
		b = w.Unwrap()
	}
}

func (f *follower) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.old != nil {
		f.old.Close()
	}
	return f.now.Close()
}

// Kill ends the client without a word, as a process that dies.
func (f *follower) Kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.old != nil {
		f.old.Close()
	}
	f.now.Kill()
}

// A patient session says that somebody is first from an instant on.
type patient struct {
	backend.Session
	f     *follower
	since time.Time
}

func (s *patient) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	j, err := s.Session.Join(ctx, line, value, record)
	j.Place = nil
	return j, err
}

func (s *patient) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || !p.First {
		return p, err
	}
	s.f.leads.Store(true)
	select {
	case <-time.After(time.Until(s.since)):
	case <-ctx.Done():
		return backend.Place{}, context.Cause(ctx)
	}
	return s.Session.Ahead(ctx, m)
}

func (s *patient) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	if err := s.Session.WatchPlace(ctx, m, p); err != nil {
		return err
	}
	now, err := s.Ahead(ctx, m)
	*p = now
	return err
}
