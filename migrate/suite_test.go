package migrate_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/coordtest"
	"github.com/succession-dev/succession/internal/coordtest/rig"
	"github.com/succession-dev/succession/migrate"
)

var allSuites = flag.Bool("all-suites", false, "TestConformanceOfPairs: every pair in both directions, one after the other, in every phase")

// realTTL is the session time of both coordinators of a pair.
const realTTL = 2 * time.Second

// TestConformanceOfPairs runs the suite on composites of real coordinators: by default
// each pair in one direction and one phase, and what an abort leaves to ZooKeeper, which
// keeps no deadline for who stands nowhere there.
func TestConformanceOfPairs(t *testing.T) {
	type direction struct {
		from, to string
		phases   []phase
	}
	directions := []direction{
		{"zookeeper", "etcd", []phase{gated}},
		{"consul", "zookeeper", []phase{moved}},
		{"etcd", "consul", []phase{between}},
		{"zookeeper", "local", []phase{unbegun}},
		{"local", "etcd", []phase{gated}},
		{"consul", "local", []phase{aborted}},
		{"etcd", "zookeeper", []phase{aborted}},
	}
	if *allSuites {
		directions = nil
		for _, from := range slices.Sorted(maps.Keys(kinds)) {
			for _, to := range slices.Sorted(maps.Keys(kinds)) {
				if from != to {
					directions = append(directions, direction{from, to, []phase{unbegun, gated, between, moved, aborted}})
				}
			}
		}
	}
	for _, tt := range directions {
		t.Run(tt.from+"-"+tt.to, func(t *testing.T) {
			if !*allSuites {
				t.Parallel()
			}
			for _, ph := range tt.phases {
				t.Run(string(ph), func(t *testing.T) {
					t.Parallel() // they wait most of the time
					conformance.Run(t, newRealPair(t, tt.from, tt.to, ph).harness())
				})
			}
		})
	}
}

// A realPair is two coordinators, whose elections are brought to a phase when they are
// first used.
type realPair struct {
	stage
	name     string
	slack    time.Duration
	clusters []*coordtest.Cluster // without those that have no servers
	kinds    [2]kind
	urls     [2]string
	addrs    [2]string
	operator [2]backend.Backend
}

func newRealPair(t *testing.T, from, to string, ph phase) *realPair {
	p := &realPair{name: fmt.Sprintf("migrate, %s to %s, %s", from, to, ph)}
	for side, k := range []kind{kinds[from], kinds[to]} {
		cluster, addr := k.start(t)
		if cluster != nil {
			p.clusters = append(p.clusters, cluster)
		}
		p.kinds[side], p.addrs[side], p.urls[side] = k, addr, fmt.Sprintf(k.url, addr)
		p.slack = max(p.slack, k.slack)
		b, err := backend.Open(t.Context(), p.urls[side])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		p.operator[side] = b
	}
	p.stage = stage{phase: ph, open: func(ctx context.Context) (*migrate.Backend, [2]backend.Backend, error) {
		return p.compose(ctx, p.addrs)
	}}
	if p.beforeCutover() && !p.kinds[0].large && !p.kinds[1].large {
		p.advance(t)
	}
	return p
}

// advance has positions on the old coordinator larger than those on the new one will be,
// so that a rule does not hang on which of them has counted further.
func (p *realPair) advance(t *testing.T) {
	s, err := p.operator[0].Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for w := range 50 {
		writers.Go(func() {
			for range 200 {
				if _, err := s.Put(t.Context(), fmt.Sprintf("advance-%d", w), nil, nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// compose returns a composite of clients that connect to the addresses, which may be
// those of proxies.
func (p *realPair) compose(ctx context.Context, addrs [2]string) (*migrate.Backend, [2]backend.Backend, error) {
	var sub [2]backend.Backend
	for side, k := range p.kinds {
		var err error
		if k.open != nil {
			sub[side], err = k.open(addrs[side])
		} else {
			sub[side], err = backend.Open(ctx, fmt.Sprintf(k.url, addrs[side]))
		}
		if err != nil {
			return nil, sub, err
		}
	}
	return migrate.New(sub[0], sub[1], &migrate.Options{From: p.urls[0], To: p.urls[1], Begin: p.phase == unbegun}), sub, nil
}

// A proxied is a client of both, each behind a proxy of its own.
type proxied struct {
	*migrate.Backend
	p       *realPair
	proxies []*proxy.Proxy
}

func (p *realPair) client(ctx context.Context) (*proxied, error) {
	c := &proxied{p: p}
	addrs := p.addrs
	for side, addr := range addrs {
		if filepath.IsAbs(addr) { // of a folder
			continue
		}
		front, err := coordtest.StartProxy(addr)
		if err != nil {
			return nil, err
		}
		c.proxies = append(c.proxies, front)
		addrs[side] = front.Addr()
	}
	var err error
	c.Backend, _, err = p.compose(ctx, addrs)
	return c, err
}

func (c *proxied) Session(ctx context.Context) (backend.Session, error) {
	return c.p.session(ctx, c.Backend)
}

func (c *proxied) Close() error {
	err := c.Backend.Close()
	for _, p := range c.proxies {
		p.Close()
	}
	return err
}

func (p *realPair) harness() conformance.Harness {
	const drivers = "it takes each coordinator's own client; it is tested on both in virtual time, and on each alone"
	h := conformance.Harness{
		Name:    p.name,
		TTL:     realTTL,
		Slack:   p.slack,
		Latency: 4 * time.Second,
		Open: func(ctx context.Context) (backend.Backend, error) {
			c, err := p.client(ctx)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
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
		NotWired: map[conformance.Fault]string{
			conformance.Expire:     drivers,
			conformance.LoseAnswer: drivers,
			conformance.Reset:      drivers,
			conformance.Rewind:     drivers,
			conformance.Compact:    drivers,
			conformance.Clock:      drivers,
			conformance.Requests:   drivers,
		},
		Lacks: map[conformance.Fault]string{
			conformance.Cluster: "each coordinator is one server",
			conformance.Isolate: "each coordinator is one server",
		},
		Waive: make(map[string]string),
	}
	if p.beforeCutover() && p.kinds[1].large {
		h.Waive["L7.foreign"] = "positions on the new coordinator are larger, so the fence on the old one is raised, in the record that held a stranger's data"
	}
	if len(p.clusters) < 2 {
		const half = "one of the two is this machine, from which nobody can be cut off"
		for _, f := range []conformance.Fault{
			conformance.Cut, conformance.Mute, conformance.Deafen, conformance.Sever, conformance.Hide,
			conformance.Restart, conformance.Pause, conformance.Kill,
		} {
			h.Lacks[f] = half
		}
		p.limit(&h)
		return h
	}
	h.Faults.Network(func(b backend.Backend) []*proxy.Proxy { return b.(*proxied).proxies })
	h.Faults.Restart = func(ctx context.Context) (err error) {
		for _, c := range p.clusters {
			err = errors.Join(err, c.Restart(ctx))
		}
		return err
	}
	h.Faults.Pause = func(context.Context) (func(), error) {
		var err error
		for _, c := range p.clusters {
			err = errors.Join(err, c.Pause())
		}
		return func() {
			for _, c := range p.clusters {
				_ = c.Resume() // who waits for that fails
			}
		}, err
	}
	return h
}

func (p *realPair) beforeCutover() bool { return p.phase == unbegun || p.phase == gated }

// limit leaves out what the phase of an election takes from the rules where one of the two
// coordinators is this machine.
func (p *realPair) limit(h *conformance.Harness) {
	local := filepath.IsAbs(p.addrs[0]) // else the new one is
	if p.beforeCutover() || p.phase == aborted {
		h.Faults.Process = nil
		h.Lacks[conformance.Process] = "a process that is stopped keeps its place on this machine, and loses its session with the other"
	}
	switch {
	case p.beforeCutover() && local:
		h.Waive["L6.advances"] = "who waits stands on this machine alone, and has no deadline"
	case !p.beforeCutover() && local == (p.phase == aborted):
		h.Lacks[conformance.Deadlines] = "the election is on this machine, where the death of a process is known at once"
	}
}

// lines has do look at the line of each side.
func (p *realPair) lines(ctx context.Context, election string, do func(side int, l backend.Line) error) error {
	for side, b := range p.operator {
		s, err := b.Session(ctx)
		if err != nil {
			return err
		}
		l, err := s.Line(ctx, election)
		if err == nil {
			err = do(side, l)
		}
		if err != nil {
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
		return p.kinds[side].remove(ctx, p.addrs[side], l.Members[i])
	})
}

// drop deletes the election, but for what holds the migration together; see [pair.drop].
func (p *realPair) drop(ctx context.Context, election string) error {
	return p.lines(ctx, election, func(side int, l backend.Line) error {
		pinned := func(m backend.Member) bool { return m.Pinned }
		if l.Header.Sealed == "" && !slices.ContainsFunc(l.Members, pinned) {
			return p.kinds[side].drop(ctx, p.addrs[side], election)
		}
		for _, m := range slices.DeleteFunc(l.Members, pinned) {
			if err := p.kinds[side].remove(ctx, p.addrs[side], m); err != nil {
				return err
			}
		}
		return nil
	})
}
