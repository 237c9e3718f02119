//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/chaos/worker"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// RehearsalOptions say which migration is rehearsed.
type RehearsalOptions struct {
	From, To string        // the coordinators that the election moves between; see Coordinators
	For      time.Duration // rounds, there and back, are begun until then; there is one at least
	Nodes    int           // how many servers each coordinator has
	Seed     uint64        // of the faults and of the order in which candidates are restarted
	Dir      string        // an existing folder, empty, for all that the run writes
	Worker   []string      // the beginning of the command that runs [worker.Main]
	Command  []string      // the beginning of the command "succession"
	Env      []string      // of both, as NAME=VALUE, beside what this process has
	Out      io.Writer     // gets a line for each step and each fault
	// Ungated makes the operator remove the gate by hand and start a candidate with the
	// new coordinator alone, to see that caught. Nothing comes after.
	Ungated bool
}

const (
	fleet = 10 // candidates of a rehearsal

	// followLimit is how long a candidate may take to stand in line again, with the
	// faults that may be in its way.
	followLimit = time.Minute
)

// A rehearsal is a run in which an election moves between two coordinators.
type rehearsal struct {
	arena
	move    RehearsalOptions
	grounds [2]*ground
	marks   *history.Recorder // the operator's steps, for the picture alone
	rand    *rand.Rand        // of the operator
	course  Course
	clean   bool // nothing was broken
}

// A ground is one of the two coordinators.
type ground struct {
	name     string
	c        *coordinator
	url      string          // as everybody knows it
	observer backend.Backend // of this process, past all proxies
	busy     sync.Mutex      // held by the fault that its servers suffer
}

// Rehearse moves an election from one coordinator to another and back, as an operator
// does it, with ten candidates that write all the time, and returns what the files that
// all leave behind prove. An error says that the run was not possible, or that ctx has
// ended; nothing that it started is left in either case. It blocks until the last round
// that was begun within For is over: a round takes about a minute.
func Rehearse(ctx context.Context, o RehearsalOptions) (*Rehearsal, error) {
	if o.From == o.To {
		return nil, fmt.Errorf("an election moves between two coordinators, and not from %s to %s", o.From, o.To)
	}
	r := &rehearsal{
		arena: arena{
			o:         Options{For: o.For, Seed: o.Seed, Dir: o.Dir, Worker: o.Worker, Env: o.Env, Out: o.Out},
			origin:    worker.Now(),
			elections: []string{"reports"},
			live:      newLive(),
		},
		move: o,
		rand: rand.New(rand.NewPCG(o.Seed, ^o.Seed)),
	}
	r.clock = worker.Clock(r.origin)
	notes, err := os.Create(filepath.Join(o.Dir, "nemesis.history.jsonl"))
	if err != nil {
		return nil, err
	}
	defer notes.Close()
	r.notes = history.NewRecorder(r.clock, notes)
	r.marks = history.NewRecorder(r.clock, nil)

	defer r.stopGrounds()
	for i, name := range []string{o.From, o.To} {
		r.say("starting %s", name)
		c, err := startCoordinator(ctx, name, o.Dir, o.Nodes)
		if err != nil {
			return nil, err
		}
		r.grounds[i] = &ground{name: name, c: c}
	}
	if err := r.perform(ctx); err != nil {
		return nil, err
	}
	for _, p := range leftovers(o.Dir) {
		r.fail("leftover", "process %s is left", p)
	}
	r.say("checking")
	out, err := r.report()
	r.clean = err == nil && len(out.Violations) == 0
	return out, err
}

// perform is the run itself, with coordinators that serve.
func (r *rehearsal) perform(ctx context.Context) error {
	defer r.close()
	if err := r.enter(ctx); err != nil {
		return err
	}
	what := r.rounds
	if r.move.Ungated {
		what = r.ungate
	}
	if err := what(ctx); err != nil {
		return err
	}
	r.say("everybody leaves")
	r.dismiss()
	return errors.Join(r.vacate(ctx, r.grounds[0], nobody), r.vacate(ctx, r.grounds[1], nobody), r.notes.Err())
}

// rounds moves the election there and back until the time is over.
func (r *rehearsal) rounds(ctx context.Context) error {
	for i := 0; i < 2 || i%2 == 1 || r.clock() < r.move.For; i++ {
		from, to := r.grounds[i%2], r.grounds[(i+1)%2]
		if i%8 < 2 { // once a round would be most of it
			if err := r.ordinary(ctx, from); err != nil {
				return err
			}
		}
		// Each direction comes with faults and without, in turn.
		if err := r.leg(ctx, from, to, (i+i/2)%2 == 1); err != nil {
			return fmt.Errorf("from %s to %s: %w", from.name, to.name, err)
		}
	}
	return nil
}

// enter connects this process and starts the candidates on the first coordinator.
func (r *rehearsal) enter(ctx context.Context) (err error) {
	for _, g := range r.grounds {
		g.url = g.c.url(0, g.addrs())
		if g.observer, err = backend.Open(ctx, g.url); err != nil {
			return err
		}
	}
	for i := range fleet {
		c := &candidate{a: &r.arena, id: fmt.Sprintf("c%d", i+1), url: r.grounds[0].url}
		r.candidates = append(r.candidates, c)
		for _, g := range r.grounds {
			for _, addr := range g.addrs() {
				p, err := coordtest.StartProxy(addr)
				if err != nil {
					return err
				}
				c.proxies = append(c.proxies, p)
				c.via = append(c.via, [2]string{addr, p.Addr()})
			}
		}
	}
	for _, c := range r.candidates {
		since := r.clock()
		if err := c.start(); err != nil {
			return err
		}
		if err := r.stands(ctx, c, since); err != nil {
			return err
		}
	}
	return nil
}

// addrs returns the addresses of the servers, where there are any.
func (g *ground) addrs() []string {
	if g.c.Cluster == nil {
		return nil
	}
	return g.c.Addrs()
}

// fronts returns those of a candidate's proxies that stand in front of a coordinator.
func (r *rehearsal) fronts(c *candidate, g *ground) []*proxy.Proxy {
	n := len(r.grounds[0].addrs())
	if g == r.grounds[0] {
		return c.proxies[:n]
	}
	return c.proxies[n:]
}

// stands waits until the candidate stands in line, and has joined since then.
func (r *rehearsal) stands(ctx context.Context, c *candidate, since time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	err := r.live.wait(ctx, func() bool {
		e, ok := r.live.joined(seat{c.id, r.elections[0]})
		return ok && e.At >= since
	})
	if err != nil {
		return fmt.Errorf("%s does not stand in line: %w; its newest log may say why", c.id, err)
	}
	return nil
}

// leads waits until somebody leads who won since then, and returns the win.
func (r *rehearsal) leads(ctx context.Context, since time.Duration) (won history.Event, err error) {
	ctx, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	err = r.live.wait(ctx, func() (ok bool) {
		won, ok = r.live.leader(r.elections[0])
		return ok && won.At >= since
	})
	if err != nil {
		return won, fmt.Errorf("nobody leads: %w", err)
	}
	return won, nil
}

// vacate waits until nobody stands on a coordinator but who is meant to, beside gate and
// seal. Whoever stands there for longer than the session of a process that died is a
// ghost.
func (r *rehearsal) vacate(ctx context.Context, g *ground, meant func(backend.Member) bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	s, err := g.observer.Session(ctx)
	if err != nil {
		return err
	}
	// What a session reads is at least as fresh as what it has written.
	if _, err := s.Put(ctx, "chaos/end", []byte("read"), nil); err != nil {
		return err
	}
	line, err := s.Line(ctx, r.elections[0])
	if err != nil {
		return err
	}
	died, cancel := context.WithTimeout(ctx, g.c.vacancy())
	defer cancel()
	for _, m := range line.Members {
		if m.Pinned || meant(m) {
			continue
		}
		err := s.Gone(died, m)
		if err != nil && died.Err() == nil {
			return err
		}
		if err != nil {
			r.fail("ghost", "%s stands on %s as %s (position %d), which nobody owns", m.Value, g.name, m.Key, m.Position)
		}
	}
	return nil
}

func nobody(backend.Member) bool { return false }

// close ends what is left of the run beside the servers.
func (r *rehearsal) close() {
	r.arena.close()
	for _, g := range r.grounds {
		if g.observer != nil {
			if err := g.observer.Close(); err != nil {
				r.say("%v", err)
			}
		}
	}
}

// stopGrounds stops the servers, and keeps their logs where something was broken.
func (r *rehearsal) stopGrounds() {
	for _, g := range r.grounds {
		if g == nil || g.c.Cluster == nil {
			continue
		}
		for i, s := range g.c.Servers() {
			if r.clean {
				break
			}
			b, err := os.ReadFile(s.LogFile())
			if err == nil {
				err = os.WriteFile(filepath.Join(r.move.Dir, fmt.Sprintf("%s%d.log", g.name, i+1)), b, 0o644)
			}
			if err != nil {
				r.say("the log of server %d of %s: %v", i+1, g.name, err)
			}
		}
		g.c.Stop()
	}
}

// ungate is what nobody may do.
func (r *rehearsal) ungate(ctx context.Context) error {
	from, to := r.grounds[0], r.grounds[1]
	if err := r.operate(ctx, from, to, "begin", nil); err != nil {
		return err
	}
	s, err := to.observer.Session(ctx)
	if err != nil {
		return err
	}
	line, err := s.Line(ctx, r.elections[0])
	if err != nil {
		return err
	}
	if len(line.Members) != 1 || !line.Members[0].Pinned {
		return errors.New("there is no gate to remove")
	}
	if err := to.c.remove(ctx, line.Members[0]); err != nil {
		return err
	}
	since := r.clock()
	if err := r.replace(ctx, r.candidates[fleet-1], to.url); err != nil {
		return err
	}
	if _, err := r.leads(ctx, since); err != nil {
		return err
	}
	last(ctx, 2*time.Second) // both are to write
	return nil
}
