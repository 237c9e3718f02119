package memory_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
)

const (
	ttl      = 10 * time.Second
	election = "app/reports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs f in virtual time with a fresh coordinator. When f and its cleanups
// are done, nobody may stand in line whose session has ended.
func bubble(t *testing.T, f func(t *testing.T, c *memory.Coordinator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(&memory.Options{TTL: ttl})
		t.Cleanup(func() { noGhosts(t, c, election) })
		f(t, c)
	})
}

// noGhosts fails the test where a member stands that nobody owns.
func noGhosts(t *testing.T, c *memory.Coordinator, line string) {
	t.Helper()
	owned := map[uint64]int{}
	for _, s := range c.Sessions() {
		for _, m := range s.Members {
			owned[m.Position]++
		}
	}
	for _, m := range c.Members(line) {
		want := 1
		if m.Pinned {
			want = 0
		}
		if owned[m.Position] != want {
			t.Errorf("member %s (pinned: %v) is owned by %d sessions", m.Key, m.Pinned, owned[m.Position])
		}
	}
}

// client returns a client with a live session; it is closed with the test.
func client(t *testing.T, c *memory.Coordinator, name string) (*memory.Backend, backend.Session) {
	t.Helper()
	b := c.Client(name)
	t.Cleanup(func() { b.Close() })
	return b, session(t, b)
}

func session(t *testing.T, b backend.Backend) backend.Session {
	t.Helper()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatalf("Session: %v", err)
	}
	return s
}

func join(t *testing.T, s backend.Session, value string) backend.Member {
	t.Helper()
	m, err := s.Join(t.Context(), election, value, "")
	if err != nil {
		t.Fatalf("Join: %v", err)
	}
	return m.Member
}

func ahead(t *testing.T, s backend.Session, m backend.Member) backend.Place {
	t.Helper()
	p, err := s.Ahead(t.Context(), m)
	if err != nil {
		t.Fatalf("Ahead(%s): %v", m.Key, err)
	}
	return p
}

func ok(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// is fails the test unless err is target, wrapped in a *backend.Error.
func is(t *testing.T, what string, err, target error) {
	t.Helper()
	var e *backend.Error
	if !errors.Is(err, target) || !errors.As(err, &e) || e.Backend != "memory" {
		t.Fatalf("%s: got %v, want %q in a *backend.Error of memory", what, err, target)
	}
}

// values returns the values of who stands in line, as the coordinator knows it.
func values(c *memory.Coordinator) []string {
	var out []string
	for _, m := range c.Members(election) {
		out = append(out, m.Value)
	}
	return out
}

func wantLine(t *testing.T, c *memory.Coordinator, want ...string) {
	t.Helper()
	if got := values(c); !slices.Equal(got, want) {
		t.Fatalf("in line stand %q, want %q", got, want)
	}
}

// A pending call runs in the background, in a bubble.
type pending struct {
	done chan struct{}
	err  error
	at   time.Time
}

// begin starts a call and returns when it has returned or blocks.
func begin(f func() error) *pending {
	p := &pending{done: make(chan struct{})}
	go func() {
		p.err = f()
		p.at = time.Now()
		close(p.done)
	}()
	synctest.Wait()
	return p
}

func (p *pending) blocks(t *testing.T, what string) {
	t.Helper()
	synctest.Wait()
	select {
	case <-p.done:
		t.Fatalf("%s has returned %v, want it to block", what, p.err)
	default:
	}
}

func (p *pending) returned(t *testing.T, what string) error {
	t.Helper()
	synctest.Wait()
	select {
	case <-p.done:
	default:
		t.Fatalf("%s still blocks", what)
	}
	return p.err
}

func ended(s backend.Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

func timeout(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
