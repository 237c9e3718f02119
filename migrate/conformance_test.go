package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	side  int // the side that faults are put into

	mu       sync.Mutex
	clients  int
	prepared map[string]chan struct{}
}

func newPair(ph phase, side int) *pair {
	return &pair{
		c: [2]*memory.Coordinator{
			memory.New(&memory.Options{TTL: ttl, Slack: slack, Index: 1000}),
			memory.New(&memory.Options{TTL: ttl, Slack: slack}),
		},
		phase:    ph,
		side:     side,
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
	// A header is written to an election, which may not have been used yet.
	if len(value) > 13 && string(value[:14]) == `{"succession":` {
		if err := s.p.prepare(ctx, name); err != nil {
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
		p.c[0].Drop(line) // it has touched the record: rules begin with none
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
	// What remains is the seal. Rules begin with an election without a record.
	p.c[1].Drop(line)
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
	of := func(b backend.Backend) *memory.Backend { return b.(*composite).sub[p.side] }
	c := p.c[p.side]
	return conformance.Harness{
		Name:  fmt.Sprintf("migrate, %s, faults on side %d", p.phase, p.side),
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
			Expire: func(_ context.Context, b backend.Backend) error { of(b).Expire(); return nil },
			Cut: func(b backend.Backend) func() {
				of(b).Cut()
				return of(b).Heal
			},
			Deafen: func(b backend.Backend) func() {
				of(b).CutAnswers()
				return of(b).Heal
			},
			Mute: func(b backend.Backend) func() {
				of(b).CutRequests()
				return of(b).Heal
			},
			Sever: func(b backend.Backend) func() {
				of(b).Sever()
				return of(b).Heal
			},
			Hide: func(b backend.Backend) func() {
				of(b).Hide()
				return of(b).Heal
			},
			Rewind: func(context.Context) (func(context.Context) error, error) {
				restore := c.Snapshot()
				return func(context.Context) error { restore(); return nil }, nil
			},
			LoseAnswer: func(b backend.Backend) {
				of(b).LoseAnswer(memory.OpJoin, memory.OpLeave, memory.OpPin, memory.OpPut, memory.OpDelete)
			},
			Kill: func(b backend.Backend) {
				for _, sub := range b.(*composite).sub {
					sub.Kill()
				}
			},
			Restart: func(context.Context) error { c.Restart(); return nil },
			Pause: func(context.Context) (func(), error) {
				c.Pause()
				return c.Resume, nil
			},
			Remove: func(_ context.Context, m backend.Member) error { return p.remove(m) },
			Drop:   func(_ context.Context, line string) error { p.drop(line); return nil },
			Reset:  func(context.Context) error { c.Reset(); return nil },
			Requests: func(b backend.Backend) int64 {
				return int64(c.Requests().Of(of(b).Name()))
			},
		},
	}
}

// remove removes a member on the side of faults: its own, or the one of the same
// candidate.
func (p *pair) remove(m backend.Member) error {
	for _, o := range p.c[p.side].Members(m.Line) {
		if o.Value == m.Value && !o.Pinned {
			p.c[p.side].Remove(m.Line, o.Key)
			return nil
		}
	}
	return fmt.Errorf("%s does not stand in %s", m.Key, m.Line)
}

// drop deletes the election, but for a gate.
func (p *pair) drop(line string) {
	c := p.c[p.side]
	if p.side == 0 || p.phase != gated {
		c.Drop(line)
		return
	}
	for _, m := range c.Members(line) {
		if !m.Pinned {
			c.Remove(line, m.Key)
		}
	}
}

// TestConformance runs the suite, in virtual time, on a composite of two
// coordinators in each phase, with faults in either.
func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		phase phase
		side  int
		only  []string
		waive map[string]string
	}{
		{phase: gated, side: 0},
		{phase: gated, side: 1, waive: waive(nil, map[string][]string{
			"who waits stands on the old coordinator alone, and cannot be removed from the new one": {
				"L2.removed", "L3.removed", "L3.dropped", "L3.same-key", "L4.removed", "L4.dropped", "G8.waiter-removed", "Fault.predecessor-removed"},
			"until the cutover it is the old coordinator that says who leads, and it was not cut off": {
				"L5.queue", "G3.expired", "G3.removed", "G3.late"},
			"the next one waits until the new coordinator, too, has ended the session": {"L6.cut", "L6.old-answer"},
			"the old coordinator is asked, and was not cut off":                        {"G9.cut-context"},
		})},
		{phase: moved, side: 1, waive: after},
		{phase: between, side: 1, waive: waive(after, map[string][]string{
			"the second step of the cutover writes the record, which these expect to be absent": {
				"L7.folder", "L7.header", "Pin.closed", "Pin.expired", "Pin.left", "Pin.gone", "Pin.foreign", "Pin.gate", "Pin.lost-answer", "Pin.sealed", "L5.queue"},
			"the election has a fence, from the leader before":          {"L2.order", "L7.fence"},
			"the fence is in the record, and goes when that is deleted": {"G2.drop", "Fault.dropped"},
		})},
		{phase: aborted, side: 0},
	} {
		t.Run(fmt.Sprintf("%s/%d", tt.phase, tt.side), func(t *testing.T) {
			set := func(h conformance.Harness) conformance.Harness {
				h.Only, h.Waive = tt.only, tt.waive
				return h
			}
			h := set(newPair(tt.phase, tt.side).harness())
			h.Wrap = func(t *testing.T, rule func(*testing.T, conformance.Harness)) {
				synctest.Test(t, func(t *testing.T) {
					rule(t, set(newPair(tt.phase, tt.side).harness()))
				})
			}
			conformance.Run(t, h)
		})
	}
}

// after are the rules that do not hold when an election has moved.
var after = waive(nil, map[string][]string{
	"a client that has never seen the election does not know that it has moved, nor its records": {
		"G3.resigned", "G3.expired", "G3.removed", "G3.dropped"},
	"the old coordinator is asked, and was not cut off": {"G9.cut-context"},
})

func waive(base map[string]string, why map[string][]string) map[string]string {
	all := make(map[string]string)
	maps.Copy(all, base)
	for reason, rules := range why {
		for _, r := range rules {
			all[r] = reason
		}
	}
	return all
}
