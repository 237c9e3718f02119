package migrate_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

const (
	ttl   = 10 * time.Second
	slack = 3 * time.Second

	oldURL = "memory:old"
	newURL = "memory:new"
)

// writes are the calls that change something.
var writes = []memory.Op{
	memory.OpJoin, memory.OpClaim, memory.OpLeave, memory.OpPin, memory.OpAppend, memory.OpRemove, memory.OpPut, memory.OpDelete,
}

// A pair is two coordinators, whose elections are brought to a phase when they are
// first used.
type pair struct {
	stage
	c       [2]*memory.Coordinator
	sides   []int // those that faults are put into
	clients atomic.Int64
}

func newPair(ph phase, sides ...int) *pair {
	p := &pair{
		c: [2]*memory.Coordinator{
			memory.New(&memory.Options{TTL: ttl, Slack: slack, Index: 1000}),
			memory.New(&memory.Options{TTL: ttl, Slack: slack}),
		},
		sides: sides,
	}
	p.stage = stage{phase: ph, open: func(context.Context) (*migrate.Backend, [2]backend.Backend, error) {
		b := p.open()
		return b.Backend, [2]backend.Backend{b.sub[0], b.sub[1]}, nil
	}}
	return p
}

// A composite is a client of both, with its halves for faults.
type composite struct {
	*migrate.Backend
	p   *pair
	sub [2]*memory.Backend
}

func (p *pair) open() *composite {
	n := p.clients.Add(1)
	name := fmt.Sprint(n)
	b := &composite{p: p}
	for side, c := range p.c {
		b.sub[side] = c.Client(name)
		// Nothing happens on both sides at the same instant.
		delay := time.Millisecond + time.Duration(side)*100*time.Microsecond
		b.sub[side].Delay(delay, delay)
		if n%2 == 0 {
			b.sub[side].Lag(5 * time.Millisecond)
		}
	}
	b.Backend = migrate.New(b.sub[0], b.sub[1], &migrate.Options{From: oldURL, To: newURL, ID: "m1", Begin: p.phase == unbegun, Leave: true})
	return b
}

func (b *composite) Session(ctx context.Context) (backend.Session, error) {
	return b.p.session(ctx, b.Backend)
}

func (p *pair) harness() conformance.Harness {
	return conformance.Harness{
		Name:     fmt.Sprintf("migrate, %s, faults on %v", p.phase, p.sides),
		TTL:      ttl,
		Slack:    slack,
		Open:     func(context.Context) (backend.Backend, error) { return p.open(), nil },
		Complete: true,
		Lacks: map[conformance.Fault]string{
			conformance.Process:       "memory lives in one process",
			conformance.Compact:       "no client of memory watches from an earlier point of its log",
			conformance.Clock:         "memory has no wall clock",
			conformance.Cluster:       "memory is one server",
			conformance.Promote:       "there is no standby",
			conformance.PromoteBeside: "there is no standby",
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
				p.halves(b, func(half *memory.Backend) { half.LoseAnswer(writes...) })
			},
			HoldBack: func(b backend.Backend, skip int) (held func() bool, release func()) {
				var each []func() (func() bool, func())
				p.halves(b, func(half *memory.Backend) {
					each = append(each, func() (func() bool, func()) { return half.HoldBack(skip, writes...) })
				})
				return rig.HoldBack(each)
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
			Bytes: func(b backend.Backend) (n int64) {
				c := b.(*composite)
				for _, side := range p.sides {
					n += p.c[side].Bytes(c.sub[side].Name())
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

// restless says why a waiter costs something at rest.
const restless = "a member of a composite may have to wait on either coordinator, so each waiter looks again once in a session time"

// costs says what a lock and a handover may cost: to lead by both, a client reads and writes on each what it needs to
// stand there and to have one token, some 30 requests and some 20, as these meet; then it only reads where the election is.
func costs(ph phase) map[string]int64 {
	if ph == unbegun || ph == gated {
		return map[string]int64{"G5.handover": 25, "Lock.cost": 35}
	}
	return map[string]int64{"G5.handover": 6, "Lock.cost": 15}
}

// TestConformance runs the suite, in virtual time, on a composite of two coordinators before the cutover, when it
// needs both. Faults are put into both of them: together they are the coordinator that a rule means.
func TestConformance(t *testing.T) { runSuite(t, gated, either...) }

// TestConformanceInPhases does the same in the other phases. ./test all also does it with faults in one of the two.
func TestConformanceInPhases(t *testing.T) {
	lane.Unraced(t)
	for _, phase := range []phase{unbegun, between, moved, aborted} {
		runSuite(t, phase, either...)
	}
	t.Run("one side", func(t *testing.T) {
		lane.All(t)
		for _, phase := range []phase{unbegun, gated} {
			runSuite(t, phase, 0)
			runSuite(t, phase, 1)
		}
	})
}

// runSuite runs the suite in a phase, with faults in the coordinators of some sides.
func runSuite(t *testing.T, phase phase, sides ...int) {
	waive := map[string]string{"G5.elections": restless}
	if slices.Equal(sides, []int{1}) { // and until the cutover the old coordinator decides
		delete(waive, "G5.elections")
		const heldBack = "until the cutover this is written on the old coordinator, where nothing was held back"
		if phase == gated { // then nobody joins the new line
			for _, r := range []string{"L1.held", "L1.held-removed", "L1.held-closed", "L1.held-cancelled"} {
				waive[r] = heldBack
			}
		}
		for reason, rules := range map[string][]string{
			"who waits stands on the old coordinator alone, and it was not deleted there":             {"L3.dropped", "L3.same-key", "L4.dropped", "G8.waiter-removed"},
			"until the cutover it is the old coordinator that says who leads, and it was not cut off": {"L5.queue", "G3.expired", "G3.removed", "G3.late", "Value.guarded"},
			"the old coordinator is asked, and was not cut off":                                       {"G9.cut-context"},
			heldBack: {"L4.held", "Records.held", "G3.held-left", "G3.held-closed", "G3.held-expired", "G3.held-killed", "G3.held-removed", "G3.held-dropped"},
		} {
			for _, r := range rules {
				waive[r] = reason
			}
		}
	}
	harness := func() conformance.Harness {
		h := newPair(phase, sides...).harness()
		h.Waive, h.Costs = waive, costs(phase)
		return h
	}
	t.Run(fmt.Sprintf("%s/%d", phase, sides), func(t *testing.T) {
		h := harness()
		h.Wrap = func(t *testing.T, rule func(*testing.T, conformance.Harness)) {
			synctest.Test(t, func(t *testing.T) { rule(t, harness()) })
		}
		conformance.Run(t, h)
	})
}
