//go:build linux

package arena

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

	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/worker"
	"github.com/succession-dev/succession/internal/scratch"
)

// Options are those that all runs have.
type Options struct {
	Seed   uint64    // of what is drawn
	Dir    string    // an existing folder, empty, for all that the run writes
	Worker []string  // the beginning of the command that runs [worker.Main]
	Env    []string  // of all processes, as NAME=VALUE, beside what this process has
	Out    io.Writer // gets a line for each fault, and what else happens
	// Heedless runs faulty workers, to see them caught; see [worker.Config].
	Heedless bool
	// Rates are those at which the clocks of the candidates run, if Worker is a program that package drift has built. Without, it is
	// the machine's.
	Rates []float64
	// Forgetful runs workers with a faulty driver, to see that caught; see [worker.Config].
	Forgetful bool
}

// QuitLimit is how long a worker may take to end in good order.
const QuitLimit = 20 * time.Second

// An Arena is a run. Its methods are safe for concurrent use, except those that
// add candidates and end them all.
type Arena struct {
	Options
	Elections  []string
	Candidates []*Candidate
	Notes      *history.Recorder // of the faults
	Live       *Live
	// Now is the time since the run began, on the clock of all its files.
	Now func() time.Duration

	origin  time.Duration
	notes   *os.File
	monitor *calm.Monitor // of the machine; see Judged

	mu    sync.Mutex // guards Out and found
	found []history.Violation
}

// New begins a run that writes to o.Dir. The caller closes it.
func New(o Options, elections ...string) (*Arena, error) {
	notes, err := os.Create(filepath.Join(o.Dir, "nemesis.history.jsonl"))
	if err != nil {
		return nil, err
	}
	a := &Arena{Options: o, Elections: elections, Live: newLive(), origin: worker.Now(), notes: notes}
	a.Now = worker.Clock(a.origin)
	a.Notes = history.NewRecorder(a.Now, notes)
	a.monitor = calm.Watch(calm.Limit(0), func(context.Context) error { return calm.Write(scratch.Memory()) })
	return a, nil
}

// Close ends what is left of the run, whatever became of it.
func (a *Arena) Close() {
	for _, c := range a.Candidates {
		if p := c.process(); p != nil {
			p.Kill()
		}
		for _, p := range slices.Concat(c.ways[0], c.ways[1], c.Proxies) {
			p.Close()
		}
	}
	a.monitor.Close()
	_ = a.notes.Close() // what could not be written, Notes.Err has said
}

// Add adds a candidate, with a proxy in front of each of the servers. The caller sets its
// URL and starts it.
func (a *Arena) Add(servers []string) (*Candidate, error) {
	c := &Candidate{a: a, ID: fmt.Sprintf("c%d", len(a.Candidates)+1), servers: servers}
	a.Candidates = append(a.Candidates, c)
	for _, addr := range servers {
		p, err := coordtest.StartProxy(addr)
		if err != nil {
			return nil, err
		}
		c.Proxies = append(c.Proxies, p)
	}
	return c, nil
}

// Candidate returns the candidate with the id.
func (a *Arena) Candidate(id string) *Candidate {
	return a.Candidates[slices.IndexFunc(a.Candidates, func(c *Candidate) bool { return c.ID == id })]
}

// Dismiss ends all workers, who must end in good order, and of whom nothing may be left.
func (a *Arena) Dismiss() {
	a.Say("everybody leaves")
	since := a.Now()
	var all sync.WaitGroup
	for _, c := range a.Candidates {
		all.Go(func() {
			switch unclosed, err := c.end(); {
			case unclosed:
				a.FailSince(since, Unclosed, "%v", err)
			case err != nil:
				a.Fail("end", "%v", err)
			}
		})
	}
	all.Wait()
	for _, p := range leftovers(a.Dir) {
		a.Fail("leftover", "process %s is left", p)
	}
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

// Say tells people what happens.
func (a *Arena) Say(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintf(a.Out, "%8.3fs  %s\n", a.Now().Seconds(), fmt.Sprintf(format, args...))
}

// Fail notes a violation that the files do not show.
func (a *Arena) Fail(rule history.Rule, format string, args ...any) {
	a.FailSince(a.Now(), rule, format, args...)
}

// FailSince is Fail for what was waited for since then.
func (a *Arena) FailSince(since time.Duration, rule history.Rule, format string, args ...any) {
	v := history.Violation{Rule: rule, From: since, To: a.Now(), Text: fmt.Sprintf(format, args...)}
	a.Say("%v", v)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found = append(a.found, v)
}

// Found returns what Fail has noted.
func (a *Arena) Found() []history.Violation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.found)
}
