//go:build linux

package arena

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/conformance/proxy"
)

// A Step is one fault. Its target may be known only when it begins: the candidate that leads, or
// the server that leads the others.
type Step struct {
	At, For time.Duration
	Kind    string
	// Index is of the candidate, or of the server, that is hit.
	Index int
	// Leader says that the fault hits the leader, if there is one: of the election
	// Election, or of the servers.
	Leader   bool
	Election int
	Amount   time.Duration // of a delay
	Target   string        // the target in words, if it is no candidate
}

func (s Step) String() string {
	target := s.Target
	if target == "" {
		target = fmt.Sprintf("candidate %d", s.Index+1)
		if s.Leader {
			target = fmt.Sprintf("the leader of election %d, or %s", s.Election+1, target)
		}
	}
	text := fmt.Sprintf("%9.3fs %-14s %s", s.At.Seconds(), s.Kind, target)
	if s.For > 0 {
		text += fmt.Sprintf(", for %v", s.For)
	}
	if s.Amount > 0 {
		text += fmt.Sprintf(", by %v", s.Amount)
	}
	return text
}

// Unhurried is what faults are measured by where sessions have no time.
const Unhurried = 2 * time.Second

// Spans are how long faults last, in sessions: less than one, about as long, or longer.
var Spans = [][2]float64{{0.1, 0.7}, {0.8, 1.3}, {1.5, 2.5}}

// LongestFault returns how long a fault lasts at most.
func LongestFault(session time.Duration) time.Duration {
	return time.Duration(Spans[len(Spans)-1][1] * float64(session))
}

// strikes are the faults of candidates by their kinds. Each does the fault, waits for its
// time, and undoes it, also where ctx ends before.
var strikes = map[string]func(context.Context, *Candidate, Step) error{
	"pause":        pause,
	"kill":         kill,
	"cut":          through((*proxy.Proxy).Cut),
	"cut-requests": through(func(p *proxy.Proxy) { p.Block(proxy.ToServer) }),
	"cut-answers":  through(func(p *proxy.Proxy) { p.Block(proxy.ToClient) }),
	"refuse":       through((*proxy.Proxy).Hide),
	"delay":        delay,
	"reset":        reset,
	"resign":       resign,
	"rejoin":       rejoin,
	"swap-address": swapAddress,
}

// Strike does a fault of a candidate from its beginning to its end.
func (a *Arena) Strike(ctx context.Context, s Step) {
	c := a.Aim(s)
	if c == nil {
		a.Say("%v: everybody suffers from something else already", s)
		return
	}
	defer c.Busy.Unlock()
	a.Say("%v: %s", s, c.ID)
	defer a.Notes.Begin(s.Kind, c.ID)()
	if err := strikes[s.Kind](ctx, c, s); err != nil {
		a.Fail("rig", "%v: %v", s, err)
	}
}

// Aim returns the candidate that a step is for, or the next where that is busy already,
// and makes it busy; nil where all are. The caller unlocks Busy.
func (a *Arena) Aim(s Step) *Candidate {
	var all []*Candidate
	if e, ok := a.Live.Leader(a.Elections[s.Election]); ok && s.Leader {
		all = append(all, a.Candidate(e.Candidate))
	}
	all = slices.Concat(all, a.Candidates[s.Index:], a.Candidates[:s.Index])
	for _, c := range all {
		if c.Busy.TryLock() {
			return c
		}
	}
	return nil
}

// Last waits for the time of a fault; it is over where the run is.
func Last(ctx context.Context, d time.Duration) { _ = backoff.Sleep(ctx, d) }

func pause(ctx context.Context, c *Candidate, s Step) error {
	if err := c.process().pause(); err != nil {
		return err
	}
	Last(ctx, s.For)
	return c.process().resume()
}

func kill(ctx context.Context, c *Candidate, s Step) error {
	c.Crash()
	Last(ctx, s.For)
	return c.Start()
}

// rejoin is the update of a program: it ends in good order, and the next begins.
func rejoin(ctx context.Context, c *Candidate, s Step) error {
	if err := c.Retire(); err != nil {
		return err
	}
	Last(ctx, s.For)
	return c.Start()
}

func resign(_ context.Context, c *Candidate, _ Step) error {
	c.Resign()
	return nil
}

// swapAddress has the two addresses of the candidate's name change places.
func swapAddress(_ context.Context, c *Candidate, _ Step) error {
	c.silence(1 - c.silent)
	return nil
}

// through returns a fault of the network that [proxy.Proxy.Heal] undoes.
func through(do func(*proxy.Proxy)) func(context.Context, *Candidate, Step) error {
	return func(ctx context.Context, c *Candidate, s Step) error {
		c.network(do)
		Last(ctx, s.For)
		c.network((*proxy.Proxy).Heal)
		return nil
	}
}

func delay(ctx context.Context, c *Candidate, s Step) error {
	set := func(d time.Duration) {
		c.network(func(p *proxy.Proxy) {
			p.Delay(proxy.ToServer, d)
			p.Delay(proxy.ToClient, d)
		})
	}
	set(s.Amount)
	Last(ctx, s.For)
	set(0)
	return nil
}

func reset(_ context.Context, c *Candidate, _ Step) error {
	c.network((*proxy.Proxy).Reset)
	return nil
}
