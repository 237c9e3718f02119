//go:build linux

package chaos

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/chaos/worker"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// Options say what is run.
type Options struct {
	On     string        // the coordinator; see Coordinators
	For    time.Duration // how long there are faults, at least: each kind comes once; what comes before and after takes up to a minute more
	Seed   uint64        // of the schedule
	Dir    string        // an existing folder, empty, for all that the run writes
	Worker []string      // the beginning of the command that runs [worker.Main]
	Env    []string      // of the workers, as NAME=VALUE, beside what this process has
	Out    io.Writer     // gets a line for each fault, and what else happens
	// Heedless runs faulty workers, to see them caught; see [worker.Config].
	Heedless bool

	steps []step // instead of a schedule, in tests
}

const (
	candidates = 5

	pace = 200 * time.Millisecond // of the writes of a leader
	work = 100 * time.Millisecond // longest time from a check to a write

	quitLimit  = 20 * time.Second // for a worker to end in good order
	readyLimit = time.Minute      // for a server to serve again

	exitUnclosed = 3 // see package worker
)

// An arena is a run.
type arena struct {
	o          Options
	origin     time.Duration
	clock      func() time.Duration
	elections  []string
	c          *coordinator
	candidates []*candidate
	observer   backend.Backend // of this process, past all proxies
	notes      *history.Recorder
	live       *live
	steps      []step
	// servers is held by the fault that servers suffer, until somebody leads again: two
	// faults may take all servers there are.
	servers sync.Mutex

	mu    sync.Mutex // guards Out and found
	found []history.Violation
}

// Run runs candidates against a coordinator while faults hit both, stops everything,
// and returns what the files that they leave behind prove. An error says that the run
// was not possible, or that ctx has ended; nothing that it started is left in either
// case. It blocks for Options.For and about a minute.
func Run(ctx context.Context, o Options) (*Report, error) {
	a := &arena{o: o, origin: worker.Now(), elections: []string{"alpha", "beta"}, live: newLive()}
	a.clock = worker.Clock(a.origin)
	notes, err := os.Create(filepath.Join(o.Dir, "nemesis.history.jsonl"))
	if err != nil {
		return nil, err
	}
	defer notes.Close()
	a.notes = history.NewRecorder(a.clock, notes)

	a.say("starting %s", o.On)
	if a.c, err = startCoordinator(ctx, o.On, o.Dir, servers); err != nil {
		return nil, err
	}
	records, err := a.play(ctx)
	if a.c.Cluster != nil {
		a.keepLogs()
		a.c.Stop()
	}
	if err != nil {
		return nil, err
	}
	for _, p := range leftovers(o.Dir) {
		a.fail("leftover", "process %s is left", p)
	}
	a.say("checking")
	r, err := a.report(records)
	if err == nil && len(r.Violations) == 0 {
		a.dropLogs()
	}
	return r, err
}

// play is the run itself, with a coordinator that serves. It returns what the guarded
// records hold at the end.
func (a *arena) play(ctx context.Context) (records map[string]string, err error) {
	if err := a.draw(); err != nil {
		return nil, err
	}
	defer a.close()
	if err := a.open(ctx); err != nil {
		return nil, err
	}
	for _, c := range a.candidates {
		if err := c.start(); err != nil {
			return nil, err
		}
	}
	a.say("%d candidates for %v of faults", len(a.candidates), a.o.For)
	if err := a.strike(ctx); err != nil {
		return nil, err
	}
	a.say("the faults are over; everybody is to lead again")
	a.rotate(ctx)
	a.say("everybody leaves")
	a.dismiss()
	return a.look(ctx)
}

// draw draws the schedule and prints it.
func (a *arena) draw() error {
	t := terrain{
		candidates: candidates, elections: len(a.elections), servers: servers,
		session: a.c.ttl, vacancy: a.c.vacancy(), length: a.o.For, can: a.can,
	}
	if t.session == 0 {
		t.session = unhurried
	}
	if a.steps = a.o.steps; a.steps == nil {
		a.steps = schedule(a.o.Seed, t)
	}
	a.o.For = max(a.o.For, end(a.steps))
	all := fmt.Sprintf("%s, seed %d, %v\n%s", a.o.On, a.o.Seed, a.o.For, text(a.steps))
	a.say("%s", strings.TrimSpace(all))
	return os.WriteFile(filepath.Join(a.o.Dir, "schedule.txt"), []byte(all), 0o644)
}

// can reports whether what a fault needs is there.
func (a *arena) can(n need) bool {
	switch n {
	case network:
		return a.c.Cluster != nil
	case isolation:
		return a.c.Cluster != nil && links()
	case sessionEnd:
		return a.c.end != nil
	}
	return true
}

// open connects this process and makes the candidates.
func (a *arena) open(ctx context.Context) (err error) {
	var addrs []string
	if a.c.Cluster != nil {
		addrs = a.c.Addrs()
	}
	if a.observer, err = backend.Open(ctx, a.c.url(0, addrs)); err != nil {
		return err
	}
	for i := range candidates {
		c := &candidate{a: a, id: fmt.Sprintf("c%d", i+1)}
		a.candidates = append(a.candidates, c)
		var fronts []string
		for _, addr := range addrs {
			p, err := coordtest.StartProxy(addr)
			if err != nil {
				return err
			}
			c.proxies = append(c.proxies, p)
			fronts = append(fronts, p.Addr())
		}
		c.url = a.c.url(i, fronts)
	}
	return nil
}

// strike goes through the schedule, and returns when all faults have been undone.
func (a *arena) strike(ctx context.Context) error {
	var faults sync.WaitGroup
	defer faults.Wait()
	began := a.clock()
	for _, s := range a.steps {
		if err := backoff.Sleep(ctx, began+s.At-a.clock()); err != nil {
			return err
		}
		faults.Go(func() { a.do(ctx, s) })
	}
	return backoff.Sleep(ctx, began+a.o.For-a.clock())
}

// rotate lets leader after leader resign until each candidate has led each election
// once more.
func (a *arena) rotate(ctx context.Context) {
	since := a.clock()
	limit := 2*a.c.vacancy() + time.Duration(len(a.candidates))*recovery
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	led := func(c *candidate, election string) bool { return a.live.wonSince(seat{c.id, election}, since) }
	for {
		all := true
		for _, election := range a.elections {
			for _, c := range a.candidates {
				if !led(c, election) {
					all = false
				}
			}
			if e, ok := a.live.leader(election); ok && !all {
				a.candidate(e.Candidate).process().send(worker.Resign)
			}
		}
		if all {
			return
		}
		if backoff.Sleep(ctx, rotation) != nil {
			break
		}
	}
	for _, election := range a.elections {
		for _, c := range a.candidates {
			if !led(c, election) {
				a.fail("stuck", "%s has not led %s in the %v since the faults were over", c.id, election, limit)
			}
		}
	}
}

// candidate returns the candidate with the id.
func (a *arena) candidate(id string) *candidate {
	return a.candidates[slices.IndexFunc(a.candidates, func(c *candidate) bool { return c.id == id })]
}

// rotation is how long each leads before its turn is over.
const rotation = time.Second

// dismiss ends all workers, who must end in good order now.
func (a *arena) dismiss() {
	var all sync.WaitGroup
	for _, c := range a.candidates {
		all.Go(func() {
			if err := c.process().quit(quitLimit); err != nil {
				a.fail("end", "%s: %v; see %s.%d.log", c.id, err, c.id, c.runs)
			}
		})
	}
	all.Wait()
}

// look returns what the records hold, and finds fault with a line that is not empty.
func (a *arena) look(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	s, err := a.observer.Session(ctx)
	if err != nil {
		return nil, err
	}
	// What a session reads is at least as fresh as what it has written.
	if _, err := s.Put(ctx, "chaos/end", []byte("read"), nil); err != nil {
		return nil, err
	}
	records := make(map[string]string)
	for _, election := range a.elections {
		line, err := s.Line(ctx, election)
		if err != nil {
			return nil, err
		}
		for _, m := range line.Members {
			a.fail("ghost", "%s stands in %s as %s (position %d), and everybody has left", m.Value, election, m.Key, m.Position)
		}
		for _, target := range []string{worker.Counter, worker.Last} {
			r, err := s.Get(ctx, worker.Record(target, election))
			if err != nil {
				return nil, err
			}
			records[r.Name] = string(r.Value)
		}
	}
	return records, nil
}

// close ends what is left of the run, whatever became of it.
func (a *arena) close() {
	for _, c := range a.candidates {
		if p := c.process(); p != nil {
			p.kill()
		}
		for _, p := range c.proxies {
			p.Close()
		}
	}
	if a.observer != nil {
		if err := a.observer.Close(); err != nil {
			a.say("%v", err)
		}
	}
}

// keepLogs copies the servers' logs to the folder of the run.
func (a *arena) keepLogs() {
	for i, s := range a.c.Servers() {
		b, err := os.ReadFile(s.LogFile())
		if err == nil {
			err = os.WriteFile(a.serverLog(i), b, 0o644)
		}
		if err != nil {
			a.say("the log of server %d: %v", i+1, err)
		}
	}
}

// dropLogs removes the servers' logs, which nobody needs.
func (a *arena) dropLogs() {
	for i := range servers {
		_ = os.Remove(a.serverLog(i)) // there is none without servers
	}
}

func (a *arena) serverLog(i int) string {
	return filepath.Join(a.o.Dir, fmt.Sprintf("server%d.log", i+1))
}

// leftovers returns the processes, beside this one, that were started with the folder
// of the run in their arguments.
func leftovers(dir string) (out []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is good
	for _, f := range files {
		pid := filepath.Base(filepath.Dir(f))
		b, err := os.ReadFile(f)
		if err != nil || pid == fmt.Sprint(os.Getpid()) { // it has just ended
			continue
		}
		if args := strings.ReplaceAll(string(b), "\x00", " "); strings.Contains(args, "-log="+dir) {
			out = append(out, pid+": "+args)
		}
	}
	return out
}

// say tells people what happens.
func (a *arena) say(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintf(a.o.Out, "%8.3fs  %s\n", a.clock().Seconds(), fmt.Sprintf(format, args...))
}

// fail notes a violation that the files do not show.
func (a *arena) fail(rule history.Rule, format string, args ...any) {
	v := history.Violation{Rule: rule, From: a.clock(), To: a.clock(), Text: fmt.Sprintf(format, args...)}
	a.say("%v", v)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found = append(a.found, v)
}
