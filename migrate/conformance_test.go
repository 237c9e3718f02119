package migrate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

const (
	ttl   = 10 * time.Second
	slack = 3 * time.Second

	oldURL = "memory:old"
	newURL = "memory:new"
)

// A phase is how far the migration of every election has come before a rule uses it.
type phase string

const (
	gated   phase = "gated"   // the gate stands
	between phase = "between" // a leader has sealed, and crashed before it took the gate away
	moved   phase = "moved"   // both steps are done
	aborted phase = "aborted"
)

// A pair is two coordinators whose elections are brought to a phase when they are
// first used.
type pair struct {
	c     [2]*memory.Coordinator
	phase phase
	sides []int // those that faults are put into

	mu       sync.Mutex
	clients  int
	prepared map[string]chan struct{}
}

func newPair(ph phase, sides ...int) *pair {
	return &pair{
		c: [2]*memory.Coordinator{
			memory.New(&memory.Options{TTL: ttl, Slack: slack, Index: 1000}),
			memory.New(&memory.Options{TTL: ttl, Slack: slack}),
		},
		phase:    ph,
		sides:    sides,
		prepared: make(map[string]chan struct{}),
	}
}

// A composite is a client of both, with its halves for faults.
type composite struct {
	*migrate.Backend
	p   *pair
	sub [2]*memory.Backend
}

func (p *pair) open(name string) *composite {
	p.mu.Lock()
	p.clients++
	if name == "" {
		name = fmt.Sprint(p.clients)
	}
	p.mu.Unlock()
	b := &composite{p: p}
	for side, c := range p.c {
		b.sub[side] = c.Client(name)
		b.sub[side].Delay(time.Millisecond, time.Millisecond)
	}
	b.Backend = migrate.New(b.sub[0], b.sub[1], &migrate.Options{From: oldURL, To: newURL, ID: "m1"})
	return b
}

func (b *composite) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	return preparing{s, b.p}, nil
}

// preparing brings an election to the pair's phase before it is used.
type preparing struct {
	backend.Session
	p *pair
}

func (s preparing) Join(ctx context.Context, line, value string) (backend.Member, error) {
	if err := s.p.prepare(ctx, line); err != nil {
		return backend.Member{}, err
	}
	return s.Session.Join(ctx, line, value)
}

func (s preparing) Line(ctx context.Context, line string) (backend.Line, error) {
	if err := s.p.prepare(ctx, line); err != nil {
		return backend.Line{}, err
	}
	return s.Session.Line(ctx, line)
}

func (s preparing) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	// A header, or the fence beside it, is written to an election which may not have been
	// used yet.
	if bytes.HasPrefix(value, []byte(`{"succession":`)) {
		if err := s.p.prepare(ctx, strings.TrimSuffix(name, ".fence")); err != nil {
			return 0, err
		}
	}
	return s.Session.Put(ctx, name, value, cond)
}

// prepare is called by whoever uses the election; the first one does it.
func (p *pair) prepare(ctx context.Context, line string) error {
	if backend.CheckName(line) != nil || ctx.Err() != nil {
		return nil // the call itself says what is wrong
	}
	p.mu.Lock()
	done, known := p.prepared[line]
	if !known {
		done = make(chan struct{})
		p.prepared[line] = done
	}
	p.mu.Unlock()
	if known {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer close(done)
	return p.bring(line)
}

// bring brings the election to the phase, with clients of its own, which end. It does
// not heed the context of a rule, which may have ended for the rule's own reasons.
func (p *pair) bring(line string) error {
	ctx := context.Background()
	op := p.open("operator")
	defer op.Close()
	if _, err := op.Begin(ctx, line); err != nil || p.phase == gated {
		return err
	}
	if p.phase == aborted {
		_, err := op.Abort(ctx, line)
		return err
	}
	b := p.open("leader")
	defer b.Close()
	s, err := b.Backend.Session(ctx)
	if err != nil {
		return err
	}
	m, err := s.Join(ctx, line, "leader")
	if err != nil {
		return err
	}
	if pl, err := s.Ahead(ctx, m); err != nil || !pl.First {
		return fmt.Errorf("the leader of the preparation does not lead: %+v, %w", pl, err)
	}
	if p.phase == between {
		// The answer to the seal is lost, and the leader with it.
		mig := backend.Migration{ID: "m1", From: oldURL, To: newURL, Step: "sealed"}
		return sealAndCrash(ctx, b, m, mig)
	}
	term, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Gone(term, m) }()
	_, err = op.Cutover(ctx, line)
	stop()
	if gerr := <-done; err == nil && !errors.Is(gerr, context.Canceled) {
		err = gerr
	}
	if err == nil {
		err = s.Leave(ctx, m)
	}
	return err
}

func sealAndCrash(ctx context.Context, b *composite, m backend.Member, mig backend.Migration) error {
	raw, err := b.sub[0].Session(ctx)
	if err != nil {
		return err
	}
	l, err := raw.Line(ctx, m.Line)
	if err != nil {
		return err
	}
	h := l.Header
	h.Sealed, h.Migration = mig.To, mig
	if err := raw.Pin(ctx, m, h, l.Version); err != nil {
		return err
	}
	b.sub[1].Expire() // so that nobody waits for that
	for _, sub := range b.sub {
		sub.Kill()
	}
	return nil
}

func (p *pair) harness() conformance.Harness {
	return conformance.Harness{
		Name:  fmt.Sprintf("migrate, %s, faults on %v", p.phase, p.sides),
		TTL:   ttl,
		Slack: slack,
		Open:  func(context.Context) (backend.Backend, error) { return p.open(""), nil },
		Lacks: map[conformance.Fault]string{
			conformance.Process: "memory lives in one process",
			conformance.Compact: "no client of memory watches from an earlier point of its log",
			conformance.Clock:   "memory has no wall clock",
			conformance.Cluster: "memory is one server",
			conformance.Isolate: "memory is one server",
		},
		Faults: conformance.Faults{
			Expire: func(_ context.Context, b backend.Backend) error {
				p.halves(b, (*memory.Backend).Expire)
				return nil
			},
			Cut:    p.until((*memory.Backend).Cut),
			Deafen: p.until((*memory.Backend).CutAnswers),
			Mute:   p.until((*memory.Backend).CutRequests),
			Sever:  p.until((*memory.Backend).Sever),
			Hide:   p.until((*memory.Backend).Hide),
			Rewind: func(context.Context) (func(context.Context) error, error) {
				var restore []func()
				p.coordinators(func(c *memory.Coordinator) { restore = append(restore, c.Snapshot()) })
				return func(context.Context) error {
					for _, r := range restore {
						r()
					}
					return nil
				}, nil
			},
			LoseAnswer: func(b backend.Backend) {
				p.halves(b, func(half *memory.Backend) {
					half.LoseAnswer(memory.OpJoin, memory.OpLeave, memory.OpPin, memory.OpPut, memory.OpDelete)
				})
			},
			Kill: func(b backend.Backend) {
				for _, half := range b.(*composite).sub {
					half.Kill()
				}
			},
			Restart: func(context.Context) error { p.coordinators((*memory.Coordinator).Restart); return nil },
			Pause: func(context.Context) (func(), error) {
				p.coordinators((*memory.Coordinator).Pause)
				return func() { p.coordinators((*memory.Coordinator).Resume) }, nil
			},
			Remove: func(_ context.Context, m backend.Member) error { return p.remove(m) },
			Drop:   func(_ context.Context, line string) error { p.drop(line); return nil },
			Reset:  func(context.Context) error { p.coordinators((*memory.Coordinator).Reset); return nil },
			Requests: func(b backend.Backend) (n int64) {
				c := b.(*composite)
				for _, side := range p.sides {
					n += int64(p.c[side].Requests().Of(c.sub[side].Name()))
				}
				return n
			},
		},
	}
}

// coordinators does a fault to those that faults are put into.
func (p *pair) coordinators(do func(*memory.Coordinator)) {
	for _, side := range p.sides {
		do(p.c[side])
	}
}

// halves does a fault to a composite's clients of those.
func (p *pair) halves(b backend.Backend, do func(*memory.Backend)) {
	for _, side := range p.sides {
		do(b.(*composite).sub[side])
	}
}

// until returns a fault of a client that lasts until it is healed.
func (p *pair) until(do func(*memory.Backend)) func(backend.Backend) func() {
	return func(b backend.Backend) func() {
		p.halves(b, do)
		return func() { p.halves(b, (*memory.Backend).Heal) }
	}
}

// remove removes a candidate's members where faults are put into: the one that m is, and
// the one under the same value on the other side. Who stands on one side alone is removed
// there.
func (p *pair) remove(m backend.Member) error {
	for _, sides := range [][]int{p.sides, either} {
		found := false
		for _, side := range sides {
			for _, o := range p.c[side].Members(m.Line) {
				if o.Value == m.Value && !o.Pinned {
					found = p.c[side].Remove(m.Line, o.Key)
					break
				}
			}
		}
		if found {
			return nil
		}
	}
	return fmt.Errorf("%s does not stand in %s", m.Key, m.Line)
}

// drop deletes the election, but for what holds the migration together: a gate, a
// seal, and the record that says that the election is on the other one.
func (p *pair) drop(line string) {
	p.coordinators(func(c *memory.Coordinator) {
		members := c.Members(line)
		h, err := backend.ParseHeader(c.Record(line).Value)
		if err == nil && h.Sealed == "" && !slices.ContainsFunc(members, func(m backend.Member) bool { return m.Pinned }) {
			c.Drop(line)
			return
		}
		for _, m := range members {
			if !m.Pinned {
				c.Remove(line, m.Key)
			}
		}
	})
}

var either = []int{0, 1}

// TestConformance runs the suite, in virtual time, on a composite of two coordinators in
// each phase. Faults are put into both: together they are the coordinator that a rule
// means. As long as both are needed, the suite also runs with faults in one of them.
func TestConformance(t *testing.T) {
	waive := make(map[string]string)
	for reason, rules := range map[string][]string{
		"who waits stands on the old coordinator alone, and it was not deleted there":             {"L3.dropped", "L3.same-key", "L4.dropped", "G8.waiter-removed"},
		"until the cutover it is the old coordinator that says who leads, and it was not cut off": {"L5.queue", "G3.expired", "G3.removed", "G3.late"},
		"the next one waits until the new coordinator, too, has ended the session":                {"L6.cut", "L6.old-answer"},
		"the old coordinator is asked, and was not cut off":                                       {"G9.cut-context"},
	} {
		for _, r := range rules {
			waive[r] = reason
		}
	}
	for _, tt := range []struct {
		phase phase
		sides []int
		waive map[string]string
	}{
		{phase: gated, sides: either},
		{phase: between, sides: either},
		{phase: moved, sides: either},
		{phase: aborted, sides: either},
		{phase: gated, sides: []int{0}},
		{phase: gated, sides: []int{1}, waive: waive},
	} {
		t.Run(fmt.Sprintf("%s/%d", tt.phase, tt.sides), func(t *testing.T) {
			h := newPair(tt.phase, tt.sides...).harness()
			h.Waive = tt.waive
			h.Wrap = func(t *testing.T, rule func(*testing.T, conformance.Harness)) {
				synctest.Test(t, func(t *testing.T) {
					h := newPair(tt.phase, tt.sides...).harness()
					h.Waive = tt.waive
					rule(t, h)
				})
			}
			conformance.Run(t, h)
		})
	}
}
