package migrate_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/migrate"
)

var allSuites = flag.Bool("all-suites", false, "TestConformanceOfPairs: every pair in both directions, one after the other, in every phase")

// realTTL is the session time of both coordinators of a pair.
const realTTL = 2 * time.Second

// TestConformanceOfPairs runs the suite on composites of real coordinators: by default, on one pair while both are at
// work, what two real ones could break together. The rules that disturb servers are left to the rehearsal, which kills
// and pauses those of both, and those of the laws and the recipes to the composites in memory. ./test all runs every pair.
func TestConformanceOfPairs(t *testing.T) {
	lane.Real(t)
	if *allSuites {
		for _, from := range slices.Sorted(maps.Keys(kinds)) {
			for _, to := range slices.Sorted(maps.Keys(kinds)) {
				if from == to {
					continue
				}
				t.Run(from+"-"+to, func(t *testing.T) {
					for _, ph := range []phase{unbegun, gated, between, moved, aborted} {
						testPair(t, from, to, ph, conformance.Rules())
					}
				})
			}
		}
		return
	}
	var rules []conformance.Rule
	for _, r := range conformance.Rules() {
		// Those that hold a request back take long, and disturb others. A handover (G8) between two coordinators is some eight
		// requests one after the other: on a busy machine together they are not at once, though each is soon enough for calm.
		if !r.Alone() && !strings.Contains(r.ID, ".held") && slices.Contains([]string{"Pin", "G1", "G2", "G3"}, r.Group()) {
			rules = append(rules, r)
		}
	}
	t.Run("zookeeper-etcd", func(t *testing.T) { testPair(t, "zookeeper", "etcd", gated, rules) })
}

// testPair runs rules on a pair in a phase, beside others: they wait most of the time.
func testPair(t *testing.T, from, to string, ph phase, rules []conformance.Rule) {
	t.Run(string(ph), func(t *testing.T) {
		t.Parallel()
		newRealPair(t, from, to, ph).run(t, rules)
	})
}

// A realPair is two coordinators, whose elections are brought to a phase when they are
// first used.
type realPair struct {
	stage
	name         string
	slack        time.Duration
	names        [2]string // of its kinds
	coordinators [2]started
	urls         [2]string
}

func newRealPair(t *testing.T, from, to string, ph phase) *realPair {
	p := &realPair{name: fmt.Sprintf("migrate, %s to %s, %s", from, to, ph), names: [2]string{from, to}}
	for side, k := range []kind{kinds[from], kinds[to]} {
		c, addr := k.start(t)
		p.coordinators[side], p.urls[side] = c, fmt.Sprintf(k.url, addr)
		p.coordinators[side].Operator = rig.OperatorOf(t, p.urls[side])
		p.slack = max(p.slack, k.slack)
	}
	p.stage = stage{phase: ph, open: func(ctx context.Context) (*migrate.Backend, [2]backend.Backend, error) {
		var sub [2]backend.Backend
		for side, url := range p.urls {
			var err error
			if sub[side], err = succession.Connect(ctx, url); err != nil {
				return nil, sub, err
			}
		}
		return p.compose(sub), sub, nil
	}}
	return p
}

// compose returns the composite of two halves.
func (p *realPair) compose(sub [2]backend.Backend) *migrate.Backend {
	return migrate.New(sub[0], sub[1], &migrate.Options{From: p.urls[0], To: p.urls[1], Begin: p.phase == unbegun, Leave: true})
}

// A proxied is a client of both, each behind a proxy of its own.
type proxied struct {
	*migrate.Backend
	p    *realPair
	rigs []rig.Client // of the coordinators that have servers
}

func (p *realPair) client() (backend.Backend, error) {
	c := &proxied{p: p}
	var sub [2]backend.Backend
	for side, of := range p.coordinators {
		b, r, err := of.open()
		if err != nil {
			return nil, err
		}
		sub[side] = b
		if r != nil {
			c.rigs = append(c.rigs, r)
		}
	}
	c.Backend = p.compose(sub)
	return c, nil
}

func (c *proxied) Session(ctx context.Context) (backend.Session, error) {
	return c.p.session(ctx, c.Backend)
}

func (c *proxied) Close() error {
	err := c.Backend.Close()
	for _, r := range c.rigs {
		r.Close()
	}
	return err
}

// both has do do something to each coordinator that has servers, at once.
func (p *realPair) both(do func(side int, c started) error) error {
	var errs [2]error
	var done sync.WaitGroup
	for side, c := range p.coordinators {
		if c.cluster != nil {
			done.Go(func() { errs[side] = do(side, c) })
		}
	}
	done.Wait()
	return errors.Join(errs[:]...)
}

// apart are the rules whose bounds hold what the session of one coordinator costs. That of
// G5.cost does not: a composite makes the tokens of both coordinators equal, and which of the two
// it writes to for that depends on which log is ahead.
var apart = []string{"G5.rest"}

// run runs the rules. A composite keeps a session on each of its coordinators, so that
// requests are counted on each alone by the rules whose bounds are for one session.
func (p *realPair) run(t *testing.T, rules []conformance.Rule) {
	h := p.harness()
	var counting []string
	for _, r := range rules {
		if h.Faults.Requests != nil && slices.Contains(apart, r.ID) {
			counting = append(counting, r.ID)
		} else {
			h.Only = append(h.Only, r.ID)
		}
	}
	conformance.Run(t, h)
	if counting == nil {
		return
	}
	for side, url := range p.urls {
		h := p.harness()
		h.Name += ", requests to " + url
		h.Only = counting
		if strings.HasPrefix(url, "etcd:") {
			h.Unfit["G5.rest"] = "its bound is for the probes of etcd's watches or a slow re-check, and who waits behind a composite has both"
		}
		h.Faults.Requests = func(b backend.Backend) int64 { return b.(*proxied).rigs[side].Requests() }
		conformance.Run(t, h)
	}
}

func (p *realPair) harness() conformance.Harness {
	h := conformance.Harness{
		Name:    p.name,
		TTL:     realTTL,
		Slack:   p.slack,
		Latency: 4 * time.Second,
		Reference: func(ctx context.Context) error {
			return p.both(func(_ int, c started) error { return c.reference(ctx) })
		},
		Open: func(context.Context) (backend.Backend, error) { return p.client() },
		Faults: conformance.Faults{
			Remove: p.remove,
			Drop:   p.drop,
			Process: func(election, id string) *exec.Cmd {
				if err := p.prepare(context.Background(), election); err != nil {
					return &exec.Cmd{Err: err}
				}
				both := "migrate:?from=" + url.QueryEscape(p.urls[0]) + "&to=" + url.QueryEscape(p.urls[1])
				if p.phase == unbegun {
					both += "&begin=true"
				}
				return rig.Process(both)(election, id)
			},
		},
		Lacks: map[conformance.Fault]string{
			conformance.Compact:       "neither keeps a history for those who watch",
			conformance.Clock:         "neither ends sessions by its wall clock",
			conformance.Cluster:       "each coordinator is one server",
			conformance.Promote:       "there is no standby",
			conformance.PromoteBeside: "there is no standby",
		},
		Waive: map[string]string{"G5.elections": restless},
		Costs: map[string]int64{"Lock.cost": 20}, // ZooKeeper, where every lock also reads the record of the other one
		Unfit: make(map[string]string),
	}
	if p.beforeCutover() {
		h.Costs["Lock.cost"] = 40 // a fence is raised on each side
		if slices.Contains(p.names[:], "zookeeper") {
			h.Costs["Lock.cost"] = 56
		}
		const raised = "a handover raises a fence on one side or the other, as the logs of two real coordinators go"
		h.Unfit["G5.cost"], h.Unfit["G5.handover"] = raised, raised
	}
	for _, c := range p.coordinators {
		if c.compact != nil {
			h.Faults.Compact = c.compact
			delete(h.Lacks, conformance.Compact)
		}
		if c.setClock != nil {
			h.Faults.Clock = func(_ context.Context, shift time.Duration) (func(), error) {
				return func() { _ = c.setClock(0) }, c.setClock(shift) // what outlives it fails the next rule
			}
			delete(h.Lacks, conformance.Clock)
		}
	}
	rigs := func(b backend.Backend) []rig.Client { return b.(*proxied).rigs }
	if p.coordinators[0].cluster == nil || p.coordinators[1].cluster == nil {
		var faults conformance.Faults
		rig.Clients(&faults, rigs)
		p.limit(&h, faults)
		return h
	}
	rig.Clients(&h.Faults, rigs)
	h.Faults.Restart = func(ctx context.Context) error {
		return p.both(func(_ int, c started) error { return c.cluster.Restart(ctx) })
	}
	h.Faults.Reset = func(ctx context.Context) error {
		return p.both(func(_ int, c started) error { return c.cluster.Wipe(ctx) })
	}
	h.Faults.Rewind = p.rewind
	h.Faults.Pause = func(context.Context) (func(), error) {
		return func() {
			_ = p.both(func(_ int, c started) error { return c.cluster.Resume() }) // who waits for that fails
		}, p.both(func(_ int, c started) error { return c.cluster.Pause() })
	}
	return h
}

// rewind remembers the state of both. It is restored on both at once: nobody goes on with
// the other meanwhile.
func (p *realPair) rewind(ctx context.Context) (back func(context.Context) error, err error) {
	var restore [2]func(context.Context) error
	err = p.both(func(side int, c started) (err error) {
		restore[side], err = c.backup(ctx)
		return err
	})
	return func(ctx context.Context) error {
		return p.both(func(side int, _ started) error { return restore[side](ctx) })
	}, err
}

func (p *realPair) beforeCutover() bool { return p.phase == unbegun || p.phase == gated }

// limit leaves out what the phase of an election takes from the rules where one of the two
// coordinators is this machine. faults are those of clients of the other one.
func (p *realPair) limit(h *conformance.Harness, faults conformance.Faults) {
	const half = "one of the two is this machine, from which nobody can be cut off"
	for _, f := range []conformance.Fault{
		conformance.Cut, conformance.Mute, conformance.Deafen, conformance.Sever, conformance.Hide,
		conformance.Restart, conformance.Pause, conformance.Kill, conformance.Reset, conformance.Rewind, conformance.Requests, conformance.Bytes,
	} {
		h.Lacks[f] = half
	}
	delete(h.Waive, "G5.elections")           // nor are requests counted
	local := p.coordinators[0].cluster == nil // else the new one is
	if p.beforeCutover() || p.phase == aborted {
		h.Faults.Process = nil
		h.Lacks[conformance.Process] = "a process that is stopped keeps its place on this machine, and loses its session with the other"
	}
	if p.beforeCutover() && local {
		h.Waive["L6.advances"] = "who waits stands on this machine alone, and has no deadline"
	}
	if local != (p.beforeCutover() || p.phase == aborted) { // who waits stands on the other one
		h.Faults.Expire, h.Faults.LoseAnswer, h.Faults.HoldBack = faults.Expire, faults.LoseAnswer, faults.HoldBack
		if local {
			h.Waive["Records.held"] = "records that are not the election's stay on the old coordinator, which is this machine, where nothing can be held back"
		}
		return
	}
	for _, f := range []conformance.Fault{conformance.Expire, conformance.LoseAnswer, conformance.HoldBack} {
		h.Lacks[f] = "who waits stands on this machine alone, where a session lives as long as its process"
	}
	if !p.beforeCutover() {
		h.Lacks[conformance.Deadlines] = "the election is on this machine, where the death of a process is known at once"
	}
}

// lines has do look at the line of each side, as clients of their own do that end: one
// that lasts would refuse to go on after a reset.
func (p *realPair) lines(ctx context.Context, election string, do func(side int, l backend.Line) error) error {
	look := func(side int) error {
		b, err := succession.Connect(ctx, p.urls[side])
		if err != nil {
			return err
		}
		defer b.Close()
		s, err := b.Session(ctx)
		if err != nil {
			return err
		}
		l, err := s.Line(ctx, election)
		if err != nil {
			return err
		}
		return do(side, l)
	}
	for side := range p.urls {
		if err := look(side); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a candidate's members: the one that m is, and the one under the same
// value on the other side.
func (p *realPair) remove(ctx context.Context, m backend.Member) error {
	return p.lines(ctx, m.Line, func(side int, l backend.Line) error {
		i := slices.IndexFunc(l.Members, func(o backend.Member) bool { return o.Value == m.Value && !o.Pinned })
		if i < 0 {
			return nil
		}
		return p.coordinators[side].Remove(ctx, l.Members[i])
	})
}

// drop deletes the election, but for what holds the migration together; see [pair.drop].
func (p *realPair) drop(ctx context.Context, election string) error {
	return p.lines(ctx, election, func(side int, l backend.Line) error {
		pinned := func(m backend.Member) bool { return m.Pinned }
		if l.Header.Sealed == "" && !slices.ContainsFunc(l.Members, pinned) {
			return p.coordinators[side].Drop(ctx, election)
		}
		for _, m := range slices.DeleteFunc(l.Members, pinned) {
			if err := p.coordinators[side].Remove(ctx, m); err != nil {
				return err
			}
		}
		return nil
	})
}
