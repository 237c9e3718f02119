package spread_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/spread"
)

const ttl = 10 * time.Second

// A world is several clusters in memory, and everybody who leads there.
type world struct {
	t *testing.T
	c map[string]*memory.Coordinator

	mu     sync.Mutex
	leads  map[string]*elect.Term // by election
	who    map[string]string      // who leads, by election
	newest map[string]uint64      // token, by election
	terms  map[string]int         // how many there were, by election
	wg     sync.WaitGroup
	ctx    context.Context
}

// inWorld runs f in virtual time, with clusters of these names.
func inWorld(t *testing.T, f func(t *testing.T, w *world), names ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, end := newWorld(t)
		defer end()
		for i, name := range names {
			w.c[name] = memory.New(&memory.Options{TTL: ttl, Slack: time.Second, Index: uint64(500 * i)})
		}
		f(t, w)
	})
}

// newWorld returns a world without clusters. The caller calls end, which stops and closes all processes.
func newWorld(t *testing.T) (w *world, end func()) {
	w = &world{
		t: t, c: make(map[string]*memory.Coordinator), leads: make(map[string]*elect.Term),
		who: make(map[string]string), newest: make(map[string]uint64), terms: make(map[string]int),
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.ctx = ctx
	return w, func() { cancel(); w.wg.Wait() }
}

// list is a list of clusters. A name is that of a coordinator of the world; NAME=COORDINATOR gives one
// another name.
func list(names ...string) []spread.Cluster {
	var all []spread.Cluster
	for _, name := range names {
		name, c, ok := strings.Cut(name, "=")
		if !ok {
			c = name
		}
		all = append(all, spread.Cluster{Name: name, URL: "memory:" + c})
	}
	return all
}

// A process is one that has a list of clusters.
type process struct {
	*spread.Backend
	w    *world
	name string

	trace   func(trace.Event)                  // of its campaigns; may be nil
	early   time.Duration                      // how much shorter a TTL of the clusters' clocks is than one of its clock; longer below 0
	works   func(context.Context, *elect.Term) // is called in each term; may be nil
	before  func(call, on string)              // is called before calls of tapped sessions; may be nil
	running sync.WaitGroup                     // its campaigns
	stop    func()                             // ends them
	killed  atomic.Bool

	mu      sync.Mutex
	clients map[string][]*memory.Backend // by coordinator
}

// process starts one. It is closed at the end of the test.
func (w *world) process(name string, clusters ...string) *process {
	p := &process{w: w, name: name, clients: make(map[string][]*memory.Backend)}
	p.Backend = spread.New(spread.List(list(clusters...)...), &spread.Options{Open: p.open})
	return p.start()
}

// start has the process closed at the end of the test, when its campaigns have ended.
func (p *process) start() *process {
	p.w.wg.Go(func() {
		<-p.w.ctx.Done()
		p.running.Wait()
		p.Close()
	})
	return p
}

func (p *process) open(url string) (backend.Backend, error) {
	name := strings.TrimPrefix(url, "memory:")
	c := p.w.c[name]
	if c == nil {
		return nil, fmt.Errorf("there is no coordinator %s", name)
	}
	b := c.Client(p.name)
	b.Delay(time.Millisecond, time.Millisecond)
	b.Drift(float64(ttl) / float64(ttl-p.early))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[name] = append(p.clients[name], b)
	if p.before != nil {
		return tapped{b, p.before}, nil
	}
	return b, nil
}

// kill makes the process vanish, like one that crashes.
func (p *process) kill() {
	p.killed.Store(true)
	for cluster := range p.w.c {
		p.each(cluster, (*memory.Backend).Kill)
	}
}

// A tapped backend tells of the calls that change something, and of those of Head, before they begin, and
// of those of Get when they have read.
type tapped struct {
	backend.Backend
	before func(call, on string)
}

func (b tapped) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	return tappedSession{s, b.before}, nil
}

type tappedSession struct {
	backend.Session
	before func(call, on string)
}

func (s tappedSession) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	s.before("join", line)
	return s.Session.Join(ctx, line, value, record)
}

func (s tappedSession) Leave(ctx context.Context, m backend.Member) error {
	s.before("leave", m.Line)
	return s.Session.Leave(ctx, m)
}

func (s tappedSession) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	s.before("pin", m.Line)
	return s.Session.Pin(ctx, m, h, at)
}

func (s tappedSession) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	s.before("put", name)
	return s.Session.Put(ctx, name, value, cond)
}

func (s tappedSession) Delete(ctx context.Context, name string, cond *backend.If) error {
	s.before("delete", name)
	return s.Session.Delete(ctx, name, cond)
}

// Get tells that it has read.
func (s tappedSession) Get(ctx context.Context, name string) (backend.Record, error) {
	r, err := s.Session.Get(ctx, name)
	s.before("got", name)
	return r, err
}

func (s tappedSession) Head(ctx context.Context, line string) (backend.Line, error) {
	s.before("head", line)
	return s.Session.Head(ctx, line)
}

// uses joins the line of an election, as a candidate does, and leaves it.
func uses(ctx context.Context, b backend.Backend, election string) error {
	s, err := backend.For(b, election).Session(ctx)
	if err != nil {
		return err
	}
	j, err := s.Join(ctx, election, "", "")
	if err != nil {
		return err
	}
	return s.Leave(ctx, j.Member)
}

// run campaigns for the elections until the world ends, or stop is called. It reports an error that
// ends a campaign before.
func (p *process) run(elections ...string) (stop func()) {
	ctx, cancel := context.WithCancel(p.w.ctx)
	var running sync.WaitGroup
	for _, name := range elections {
		running.Add(1)
		p.running.Go(func() {
			defer running.Done()
			err := elect.New(p.For(name), name, &elect.Options{ID: p.name, Trace: p.trace}).Run(ctx, func(ctx context.Context, t *elect.Term) error {
				p.w.began(p, name, t)
				if p.works != nil {
					p.works(ctx, t)
				}
				<-ctx.Done()
				p.w.ended(name, t)
				return nil
			})
			if ctx.Err() == nil && !p.killed.Load() {
				p.w.t.Errorf("%s: campaign for %s: %v", p.name, name, err)
			}
		})
	}
	return func() { cancel(); running.Wait() }
}

// began notes that p leads, and that nobody else does.
func (w *world) began(p *process, name string, t *elect.Term) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if other := w.leads[name]; other != nil && other.Check() == nil {
		w.t.Errorf("%s leads %s with token %d, while %s does with token %d", p.name, name, t.Token(), w.who[name], other.Token())
	}
	if t.Token() <= w.newest[name] {
		w.t.Errorf("%s leads %s with token %d, after one with %d", p.name, name, t.Token(), w.newest[name])
	}
	w.leads[name], w.who[name], w.newest[name] = t, p.name, t.Token()
	w.terms[name]++
}

func (w *world) ended(name string, t *elect.Term) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leads[name] == t {
		delete(w.leads, name)
	}
}

// leader returns who leads now, or "".
func (w *world) leader(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.leads[name]; t != nil && t.Check() == nil {
		return w.who[name]
	}
	return ""
}

// token returns the newest token of the election.
func (w *world) token(name string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.newest[name]
}

// count returns how many terms the election had.
func (w *world) count(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.terms[name]
}

// until waits until cond holds.
func (w *world) until(what string, d time.Duration, cond func() bool) {
	w.t.Helper()
	for end := time.Now().Add(d); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not after %v: %s", d, what)
		}
	}
}

// at returns the cluster on which somebody stands in the line of the election, or "" if there is none.
func (w *world) at(name string) (at string) {
	for cluster, c := range w.c {
		for _, m := range c.Members(name) {
			if !m.Pinned {
				if at != "" && at != cluster {
					w.t.Errorf("candidates of %s stand on %s and on %s", name, at, cluster)
				}
				at = cluster
			}
		}
	}
	return at
}

// names returns names of elections.
func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("jobs/", i))
	}
	return all
}

func want(t *testing.T, err, target error, words ...string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v; want %v", err, target)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error %q does not say %q", err, word)
		}
	}
}
