//go:build linux

package chaos

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/backoff"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/chaos/worker"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A need is what a kind of fault takes.
type need int

const (
	nothing    need = iota
	network         // between candidates and servers
	isolation       // between servers
	sessionEnd      // by an operator
)

// A kind of fault. Exactly one of its funcs is set; each does the fault, waits for its
// time, and undoes it, also where ctx ends before.
type kind struct {
	name   string
	weight int  // how often it is drawn, in proportion
	lasts  bool // for a time
	needs  need

	candidate func(context.Context, *candidate, step) error
	server    func(context.Context, *arena, step) error
	operator  func(context.Context, *arena, step) error
}

// The acts of operators.
const (
	remove     = "remove"
	endSession = "end-session"
)

// kinds are all kinds of faults. It is filled in init: the faults refer to it.
var kinds []kind

func init() {
	kinds = []kind{
		{name: "pause", weight: 8, lasts: true, candidate: pause},
		{name: "kill", weight: 5, lasts: true, candidate: kill},
		{name: "cut", weight: 5, lasts: true, needs: network, candidate: through((*proxy.Proxy).Cut)},
		{name: "cut-requests", weight: 4, lasts: true, needs: network, candidate: through(block(proxy.ToServer))},
		{name: "cut-answers", weight: 4, lasts: true, needs: network, candidate: through(block(proxy.ToClient))},
		{name: "refuse", weight: 3, lasts: true, needs: network, candidate: through((*proxy.Proxy).Hide)},
		{name: "delay", weight: 4, lasts: true, needs: network, candidate: delay},
		{name: "reset", weight: 4, needs: network, candidate: reset},
		{name: "resign", weight: 6, candidate: resign},
		{name: "rejoin", weight: 3, lasts: true, candidate: rejoin},
		{name: "pause-server", weight: 3, lasts: true, needs: network, server: pauseServers(1)},
		{name: "kill-server", weight: 3, lasts: true, needs: network, server: killServers(1)},
		{name: "pause-majority", weight: 1, lasts: true, needs: network, server: pauseServers(2)},
		{name: "kill-majority", weight: 1, lasts: true, needs: network, server: killServers(2)},
		{name: "isolate", weight: 4, lasts: true, needs: isolation, server: isolate},
		{name: remove, weight: 2, operator: removeLeader},
		{name: endSession, weight: 1, needs: sessionEnd, operator: endLeadersSession},
	}
}

func kindOf(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// do does one fault from its beginning to its end.
func (a *arena) do(ctx context.Context, s step) {
	k := kindOf(s.Kind)
	var err error
	switch {
	case k.candidate != nil:
		c := a.aim(s)
		if c == nil {
			a.say("%v: everybody suffers from something else already", s)
			return
		}
		defer c.busy.Unlock()
		a.say("%v: %s", s, c.id)
		defer a.notes.Begin(s.Kind, c.id)()
		err = k.candidate(ctx, c, s)
	case k.server != nil:
		a.servers.Lock()
		defer a.servers.Unlock()
		a.say("%v", s)
		end := a.notes.Begin(s.Kind, "")
		err = k.server(ctx, a, s)
		end()
		a.awaitLeaders(ctx)
	default:
		a.say("%v", s)
		err = k.operator(ctx, a, s)
	}
	if err != nil {
		a.fail("rig", "%v: %v", s, err)
	}
}

// awaitLeaders waits until every election has a leader. That takes no longer than a
// vacancy may, or the checker says so.
func (a *arena) awaitLeaders(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, a.c.vacancy())
	defer cancel()
	_ = a.live.wait(ctx, func() bool {
		return !slices.ContainsFunc(a.elections, func(election string) bool {
			_, led := a.live.leader(election)
			return !led
		})
	})
}

// aim returns the candidate that a step is for, or the next where that is busy already,
// and makes it busy; nil where all are.
func (a *arena) aim(s step) *candidate {
	var all []*candidate
	if e, ok := a.live.leader(a.elections[s.Election]); ok && s.Leader {
		all = append(all, a.candidate(e.Candidate))
	}
	all = slices.Concat(all, a.candidates[s.Index:], a.candidates[:s.Index])
	for _, c := range all {
		if c.busy.TryLock() {
			return c
		}
	}
	return nil
}

// last waits for the time of a fault; it is over where the run is.
func last(ctx context.Context, d time.Duration) { _ = backoff.Sleep(ctx, d) }

func pause(ctx context.Context, c *candidate, s step) error {
	if err := c.process().pause(); err != nil {
		return err
	}
	last(ctx, s.For)
	return c.process().resume()
}

func kill(ctx context.Context, c *candidate, s step) error {
	c.crash()
	last(ctx, s.For)
	return c.start()
}

// rejoin is the update of a program: it ends in good order, and the next begins.
func rejoin(ctx context.Context, c *candidate, s step) error {
	if err := c.retire(); err != nil {
		return err
	}
	last(ctx, s.For)
	return c.start()
}

func resign(_ context.Context, c *candidate, _ step) error {
	c.process().send(worker.Resign)
	return nil
}

// through returns a fault of the network that [proxy.Proxy.Heal] undoes.
func through(do func(*proxy.Proxy)) func(context.Context, *candidate, step) error {
	return func(ctx context.Context, c *candidate, s step) error {
		c.network(do)
		last(ctx, s.For)
		c.network((*proxy.Proxy).Heal)
		return nil
	}
}

func block(d proxy.Direction) func(*proxy.Proxy) {
	return func(p *proxy.Proxy) { p.Block(d) }
}

func delay(ctx context.Context, c *candidate, s step) error {
	set := func(d time.Duration) {
		c.network(func(p *proxy.Proxy) {
			p.Delay(proxy.ToServer, d)
			p.Delay(proxy.ToClient, d)
		})
	}
	set(s.Amount)
	last(ctx, s.For)
	set(0)
	return nil
}

func reset(_ context.Context, c *candidate, _ step) error {
	c.network((*proxy.Proxy).Reset)
	return nil
}

// victims returns n servers, of which the first is the one that the step is for.
func (a *arena) victims(ctx context.Context, s step, n int) []*coordtest.Server {
	all := a.c.Servers()
	first := s.Index
	if s.Leader {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		if leader, err := a.c.Leader(ctx); err == nil {
			first = slices.Index(all, leader)
		}
	}
	var out []*coordtest.Server
	for i := range n {
		out = append(out, all[(first+i)%len(all)])
	}
	return out
}

// ready waits until all servers serve, which they must soon.
func (a *arena) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyLimit)
	defer cancel()
	for _, s := range a.c.Servers() {
		if err := s.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

func pauseServers(n int) func(context.Context, *arena, step) error {
	return func(ctx context.Context, a *arena, s step) error {
		return a.stop(ctx, s, n, (*coordtest.Server).Pause, (*coordtest.Server).Resume)
	}
}

func killServers(n int) func(context.Context, *arena, step) error {
	kill := func(s *coordtest.Server) error { s.Kill(); return nil }
	return func(ctx context.Context, a *arena, s step) error {
		return a.stop(ctx, s, n, kill, (*coordtest.Server).Start)
	}
}

// stop stops n servers in one way or another, and lets them go on.
func (a *arena) stop(ctx context.Context, s step, n int, do, undo func(*coordtest.Server) error) error {
	var errs []error
	victims := a.victims(ctx, s, n)
	for _, v := range victims {
		errs = append(errs, do(v))
	}
	last(ctx, s.For)
	for _, v := range victims {
		errs = append(errs, undo(v))
	}
	return errors.Join(append(errs, a.ready())...)
}

func isolate(ctx context.Context, a *arena, s step) error {
	if err := a.c.Isolate(a.victims(ctx, s, 1)[0]); err != nil {
		return err
	}
	last(ctx, s.For)
	a.c.Heal()
	return a.ready()
}

// operatorTimeout bounds what an operator does, who gives up where the coordinator does
// not answer.
const operatorTimeout = 3 * time.Second

// removeLeader deletes the member of a leader.
func removeLeader(ctx context.Context, a *arena, s step) error {
	return a.depose(ctx, s, false, a.c.remove)
}

// endLeadersSession ends the session of a leader, and with it all that it leads.
func endLeadersSession(ctx context.Context, a *arena, s step) error {
	return a.depose(ctx, s, true, a.c.end)
}

// depose notes that a leader is deposed, and does it: afterwards would be too late, as
// somebody else may lead at once. Where there is no leader, one that leaves at that moment,
// or a coordinator that does not answer, it tries again for a minute, as faults that come meanwhile prolong a vacancy; then
// nobody is deposed.
func (a *arena) depose(ctx context.Context, s step, everywhere bool, do func(context.Context, backend.Member) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	election := a.elections[s.Election]
	again := backoff.New(ctx)
	var leader history.Event
	for found := false; ; {
		before := leader.Token
		err := a.live.wait(ctx, func() bool {
			leader, found = a.live.leader(election)
			return found && leader.Token != before
		})
		if err != nil {
			return nil
		}
		act, notes, err := a.find(ctx, leader, everywhere)
		if err != nil {
			if again.Sleep(ctx) != nil {
				return nil
			}
			leader = history.Event{}
			continue
		}
		if act == nil { // it has left, and another one leads soon
			continue
		}
		for _, e := range notes {
			a.notes.Note(e)
		}
		end := a.notes.Begin(s.Kind, leader.Candidate)
		limited, cancel := context.WithTimeout(ctx, operatorTimeout)
		err = do(limited, *act)
		cancel()
		end()
		if err != nil {
			// As happens where the coordinator does not answer. Whoever was noted as deposed is
			// then given more than is due.
			a.say("%v: %v", s, err)
			a.notes.Begin(s.Kind+failed, leader.Candidate)()
			if again.Sleep(ctx) != nil {
				return nil
			}
			leader = history.Event{}
			continue
		}
		return nil
	}
}

// failed is what the name of an operator's act ends with that has perhaps come to nothing.
const failed = "-failed"

// find returns the leader's member, if it stands, and what is to be noted when it is
// removed: it alone, or all members of the leader's process.
func (a *arena) find(ctx context.Context, leader history.Event, everywhere bool) (member *backend.Member, notes []history.Event, err error) {
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	session, err := a.observer.Session(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range a.elections {
		if name != leader.Election && !everywhere {
			continue
		}
		line, err := session.Line(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		for _, m := range line.Members {
			if m.Value != leader.Candidate || name == leader.Election && m.Position != leader.Position {
				continue
			}
			if name == leader.Election {
				member = &m
			}
			notes = append(notes, history.Event{Kind: history.Deposed, Election: name, Candidate: m.Value, Position: m.Position, Token: line.Token(m)})
		}
	}
	return member, notes, nil
}

// missing returns the kinds of faults that could have occurred, and have not.
func (a *arena) missing(h *history.History) (out []string) {
	times := make(map[string]int)
	for _, f := range h.Faults {
		times[f.Kind]++
	}
	for _, k := range kinds {
		if a.can(k.needs) && times[k.name] <= times[k.name+failed] {
			out = append(out, k.name)
		}
	}
	return out
}
