package spread_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/spread"
)

// TestConformance runs the rules about lines and about elections on those that a list puts on a cluster:
// in virtual time, each rule on a cluster of its own. The list has one, as sessions on two clusters end
// at different times; what several have to say to each other is in the other tests. Deadlines, pins and
// records are the cluster's own.
func TestConformance(t *testing.T) {
	h := harness()
	h.Wrap = func(t *testing.T, rule func(*testing.T, conformance.Harness)) {
		synctest.Test(t, func(t *testing.T) { rule(t, harness()) })
	}
	conformance.Run(t, h)
}

// A client is a process with a list of one cluster. Each line that the suite uses is an election, with
// a backend of its own.
type client struct {
	whole   *spread.Backend
	cluster *memory.Backend

	mu    sync.Mutex
	views map[string]backend.Backend
	live  *session
}

func newClient(c *memory.Coordinator, name string) *client {
	b := c.Client(name)
	b.Delay(time.Millisecond, time.Millisecond)
	open := func(string) (backend.Backend, error) { return b, nil }
	return &client{
		whole:   spread.New(spread.List(list("only")...), &spread.Options{Open: open}),
		cluster: b, views: make(map[string]backend.Backend),
	}
}

// view returns the backend of one election.
func (c *client) view(election string) backend.Backend {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.views[election] == nil {
		c.views[election] = c.whole.For(election)
	}
	return c.views[election]
}

// Session returns the session that all elections share, as they live on one cluster.
func (c *client) Session(ctx context.Context) (backend.Session, error) {
	s, err := c.view("conformance-session").Session(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil || c.live.Done() != s.Done() {
		c.live = &session{s, c}
	}
	return c.live, nil
}

func (c *client) Close() error { return c.whole.Close() }

// A session asks the backend of each election about that.
type session struct {
	backend.Session
	c *client
}

func (s *session) of(ctx context.Context, election string) (backend.Session, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	v, err := s.c.view(election).Session(ctx)
	if err == nil && v.Done() != s.Done() {
		err = fmt.Errorf("%w: there is another by now", backend.ErrSessionEnded)
	}
	return v, err
}

func (s *session) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	v, err := s.of(ctx, line)
	if err != nil {
		return backend.Joined{}, err
	}
	return v.Join(ctx, line, value, record)
}

func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	v, err := s.of(ctx, m.Line)
	if err != nil {
		return backend.Place{}, err
	}
	return v.Ahead(ctx, m)
}

func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	v, err := s.of(ctx, m.Line)
	if err != nil {
		return err
	}
	return v.WatchPlace(ctx, m, p)
}

func (s *session) Leave(ctx context.Context, m backend.Member) error {
	v, err := s.of(ctx, m.Line)
	if err != nil {
		return err
	}
	return v.Leave(ctx, m)
}

func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	v, err := s.of(ctx, line)
	if err != nil {
		return backend.Line{}, err
	}
	return v.Line(ctx, line)
}

func (s *session) Head(ctx context.Context, line string) (backend.Line, error) {
	v, err := s.of(ctx, line)
	if err != nil {
		return backend.Line{}, err
	}
	return v.Head(ctx, line)
}

// writes are the calls that change something.
var writes = []memory.Op{
	memory.OpJoin, memory.OpClaim, memory.OpLeave, memory.OpPin, memory.OpAppend, memory.OpRemove, memory.OpPut, memory.OpDelete,
}

// harness is that of a new cluster.
func harness() conformance.Harness {
	const slack = 3 * time.Second
	c := memory.New(&memory.Options{TTL: ttl, Slack: slack})
	of := func(b backend.Backend) *memory.Backend { return b.(*client).cluster }
	until := func(begin func(*memory.Backend)) func(backend.Backend) func() {
		return func(b backend.Backend) func() {
			begin(of(b))
			return of(b).Heal
		}
	}
	var clients atomic.Int64
	return conformance.Harness{
		Name:     "spread",
		TTL:      ttl,
		Slack:    slack,
		Open:     func(context.Context) (backend.Backend, error) { return newClient(c, fmt.Sprint(clients.Add(1))), nil },
		Complete: true,
		Only:     []string{"L1", "L2", "L3", "L4", "L5", "G1", "G4", "G6", "G7", "G8", "G9", "G10", "Run"},
		Lacks: map[conformance.Fault]string{
			conformance.Process:       "memory lives in one process",
			conformance.Compact:       "no client of memory watches from an earlier point of its log",
			conformance.Clock:         "memory has no wall clock",
			conformance.Cluster:       "memory is one server",
			conformance.Promote:       "there is no standby",
			conformance.PromoteBeside: "there is no standby",
			conformance.Reset:         "a cluster that has forgotten who it is is refused, see TestWrongLists",
			conformance.Rewind:        "a cluster that has forgotten who it is is refused, see TestWrongLists",
		},
		Faults: conformance.Faults{
			Expire: func(_ context.Context, b backend.Backend) error { of(b).Expire(); return nil },
			Cut:    until((*memory.Backend).Cut),
			Deafen: until((*memory.Backend).CutAnswers),
			Mute:   until((*memory.Backend).CutRequests),
			Sever:  until((*memory.Backend).Sever),
			Hide:   until((*memory.Backend).Hide),
			LoseAnswer: func(b backend.Backend) {
				of(b).LoseAnswer(writes...)
			},
			HoldBack: func(b backend.Backend, skip int) (func() bool, func()) { return of(b).HoldBack(skip, writes...) },
			Kill:     func(b backend.Backend) { of(b).Kill() },
			Restart:  func(context.Context) error { c.Restart(); return nil },
			Pause:    func(context.Context) (func(), error) { c.Pause(); return c.Resume, nil },
			Remove: func(_ context.Context, m backend.Member) error {
				if !c.Remove(m.Line, m.Key) {
					return fmt.Errorf("%s does not stand in %s", m.Key, m.Line)
				}
				return nil
			},
			Drop:     func(_ context.Context, line string) error { c.Drop(line); return nil },
			Requests: func(b backend.Backend) int64 { return int64(c.Requests().Of(of(b).Name())) },
			Bytes:    func(b backend.Backend) int64 { return c.Bytes(of(b).Name()) },
		},
	}
}
