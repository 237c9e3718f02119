//go:build linux

package rehearsal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/arena"
	"github.com/succession-dev/succession/internal/rig/store"
)

// Options say which migration is rehearsed.
type Options struct {
	arena.Options
	From, To string        // the coordinators that the election moves between; see [arena.Coordinators]
	For      time.Duration // rounds, there and back, are begun until then; there is one at least
	Nodes    int           // how many servers each coordinator has
	Command  []string      // the beginning of the command "succession"
	// Ungated makes the operator remove the gate by hand and start a candidate with the
	// new coordinator alone, to see that caught. Nothing comes after.
	Ungated bool
}

const (
	fleet = 10 // candidates of a rehearsal

	// followLimit is how long a candidate may take to stand in line again, with the
	// faults that may be in its way.
	followLimit = time.Minute
	readyLimit  = time.Minute // for a server to serve again
)

// A rehearsal is a run in which an election moves between two coordinators.
type rehearsal struct {
	*arena.Arena
	o       Options
	grounds [2]*ground
	marks   *history.Recorder // the operator's steps, for the picture alone
	rand    *rand.Rand        // of the operator
	course  Course
}

// A ground is one of the two coordinators.
type ground struct {
	*arena.Coordinator
	url string // as everybody knows it
}

// Rehearse moves an election from one coordinator to another and back, as an operator
// does it, with ten candidates that write all the time, and returns what the files that
// all leave behind prove. An error says that the run was not possible, or that ctx has
// ended; nothing that it started is left in either case. It blocks until the last round
// that was begun within For is over: a round takes about a minute.
func Rehearse(ctx context.Context, o Options) (out *Report, err error) {
	if o.From == o.To {
		return nil, fmt.Errorf("an election moves between two coordinators, and not from %s to %s", o.From, o.To)
	}
	a, err := arena.New(o.Options, "reports")
	if err != nil {
		return nil, err
	}
	r := &rehearsal{
		Arena: a, o: o, marks: history.NewRecorder(a.Now, nil),
		rand: rand.New(rand.NewPCG(o.Seed, ^o.Seed)),
	}
	defer func() { r.end(out) }()
	for i, name := range []string{o.From, o.To} {
		r.Say("starting %s", name)
		c, err := arena.Start(ctx, name, o.Dir, o.Nodes)
		if err != nil {
			return nil, err
		}
		r.grounds[i] = &ground{c, c.URL(0, c.Addrs())}
	}
	if err := r.perform(ctx); err != nil {
		return nil, err
	}
	return r.report()
}

// end ends what is left of the run, and keeps the servers' logs where something was broken.
func (r *rehearsal) end(out *Report) {
	r.Close()
	logs := r.Dir
	if out != nil && len(out.Violations) == 0 {
		logs = ""
	}
	for _, g := range r.grounds {
		if g == nil {
			continue
		}
		if err := g.Stop(logs); err != nil {
			r.Say("%v", err)
		}
	}
}

// perform is the run itself, with coordinators that serve.
func (r *rehearsal) perform(ctx context.Context) error {
	if err := r.enter(ctx); err != nil {
		return err
	}
	what := r.rounds
	if r.o.Ungated {
		what = r.ungate
	}
	if err := what(ctx); err != nil {
		return err
	}
	r.Dismiss()
	return errors.Join(r.vacate(ctx, r.grounds[0], nobody), r.vacate(ctx, r.grounds[1], nobody), r.Notes.Err())
}

// rounds moves the election there and back until the time is over.
func (r *rehearsal) rounds(ctx context.Context) error {
	for i := 0; i < 2 || i%2 == 1 || r.Now() < r.o.For; i++ {
		from, to := r.grounds[i%2], r.grounds[(i+1)%2]
		if i%8 < 2 { // once a round would be most of it
			if err := r.ordinary(ctx, from); err != nil {
				return err
			}
		}
		// Each direction comes with faults and without, in turn.
		if err := r.leg(ctx, from, to, (i+i/2)%2 == 1); err != nil {
			return fmt.Errorf("from %s to %s: %w", from.Name, to.Name, err)
		}
	}
	return nil
}

// enter starts the candidates on the first coordinator.
func (r *rehearsal) enter(ctx context.Context) error {
	servers := slices.Concat(r.grounds[0].Addrs(), r.grounds[1].Addrs())
	for range fleet {
		c, err := r.Add(servers)
		if err != nil {
			return err
		}
		c.URL, c.Via = r.grounds[0].url, true
	}
	for _, c := range r.Candidates {
		since := r.Now()
		if err := c.Start(); err != nil {
			return err
		}
		if err := r.stands(ctx, c, since); err != nil {
			return err
		}
	}
	return nil
}

// fronts returns those of a candidate's proxies that stand in front of a coordinator.
func (r *rehearsal) fronts(c *arena.Candidate, g *ground) []*proxy.Proxy {
	n := len(r.grounds[0].Addrs())
	if g == r.grounds[0] {
		return c.Proxies[:n]
	}
	return c.Proxies[n:]
}

// stands waits until the candidate stands in line, and has joined since then.
func (r *rehearsal) stands(ctx context.Context, c *arena.Candidate, since time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	err := r.Live.Wait(ctx, func() bool {
		e, ok := r.Live.Joined(arena.Seat{Candidate: c.ID, Election: r.Elections[0]})
		return ok && e.At >= since
	})
	if err != nil {
		return fmt.Errorf("%s does not stand in line: %w; its newest log may say why", c.ID, err)
	}
	return nil
}

// leads waits until somebody leads who won since then, and returns the win.
func (r *rehearsal) leads(ctx context.Context, since time.Duration) (won history.Event, err error) {
	ctx, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	err = r.Live.Wait(ctx, func() (ok bool) {
		won, ok = r.Live.Leader(r.Elections[0])
		return ok && won.At >= since
	})
	if err != nil {
		return won, fmt.Errorf("nobody leads: %w", err)
	}
	return won, nil
}

// writes waits until a leader has written to the store since then. Most often one has: only where faults
// follow each other does nobody lead for so long.
func (r *rehearsal) writes(ctx context.Context, since time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	for {
		all, err := store.Read(filepath.Join(r.Dir, "store", r.Elections[0])) // fails while a line is being written
		if err == nil && slices.ContainsFunc(all, func(w store.Write) bool { return w.Refused == 0 && w.At >= since }) {
			return nil
		}
		if arena.Last(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("nobody has written to the store since %v: %w", since, cmp.Or(err, context.Cause(ctx)))
		}
	}
}

// vacate waits until only the members that are meant to stand on a coordinator stand there,
// beside gate and seal. Any other that stands there for longer than the session of a process
// that died is a ghost.
func (r *rehearsal) vacate(ctx context.Context, g *ground, meant func(backend.Member) bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	s, err := g.Session(ctx)
	if err != nil {
		return err
	}
	if err := s.Refresh(ctx); err != nil {
		return err
	}
	line, err := s.Line(ctx, r.Elections[0])
	if err != nil {
		return err
	}
	died, cancel := context.WithTimeout(ctx, g.Vacancy())
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
			r.Fail("ghost", "%s stands on %s as %s (position %d), which nobody owns", m.Value, g.Name, m.Key, m.Position)
		}
	}
	return nil
}

func nobody(backend.Member) bool { return false }

// ungate is what nobody may do.
func (r *rehearsal) ungate(ctx context.Context) error {
	from, to := r.grounds[0], r.grounds[1]
	if err := r.operate(ctx, from, to, "begin", nil); err != nil {
		return err
	}
	s, err := to.Session(ctx)
	if err != nil {
		return err
	}
	line, err := s.Line(ctx, r.Elections[0])
	if err != nil {
		return err
	}
	if len(line.Members) != 1 || !line.Members[0].Pinned {
		return errors.New("there is no gate to remove")
	}
	if err := to.Remove(ctx, line.Members[0]); err != nil {
		return err
	}
	since := r.Now()
	if err := r.replace(ctx, r.Candidates[fleet-1], to.url); err != nil {
		return err
	}
	if _, err := r.leads(ctx, since); err != nil {
		return err
	}
	arena.Last(ctx, 2*time.Second) // both are to write
	return nil
}
