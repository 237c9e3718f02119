//go:build linux

package chaos

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/arena"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/evidence"
)

// A need is what a kind of fault takes.
type need int

const (
	nothing    need = iota
	network         // between candidates and servers
	isolation       // between servers
	sessionEnd      // by an operator
	security        // of the servers
	membership      // of the servers in their cluster, which an operator changes
	marks           // that another cluster has exported
	imports         // of what was exported
	store           // below the servers
	standby         // of the server that takes writes
)

// A kind of fault. What does it waits for its time, and undoes it, also where ctx ends
// before. Both funcs are nil where a candidate is hit; see [arena.Arena.Strike].
type kind struct {
	name   string
	weight int  // how often it is drawn, in proportion
	lasts  bool // for a time
	needs  need

	server   func(context.Context, *run, step) error // holds up all others of its kind
	everyone bool                                    // that it hits all servers, or all candidates
	operator func(context.Context, *run, step) error
}

func (k kind) hitsCandidate() bool { return k.server == nil && k.operator == nil }

// kinds are all kinds of faults. It is filled in init: the faults refer to it.
var kinds []kind

func init() {
	kinds = []kind{
		{name: "pause", weight: 8, lasts: true},
		{name: "kill", weight: 5, lasts: true},
		{name: "cut", weight: 5, lasts: true, needs: network},
		{name: "cut-requests", weight: 4, lasts: true, needs: network},
		{name: "cut-answers", weight: 4, lasts: true, needs: network},
		{name: "refuse", weight: 3, lasts: true, needs: network},
		{name: "delay", weight: 4, lasts: true, needs: network},
		{name: "reset", weight: 4, needs: network},
		{name: "resign", weight: 6},
		{name: "rejoin", weight: 3, lasts: true},
		{name: "pause-server", weight: 3, lasts: true, needs: network, server: pauseServers(1, front)},
		{name: "kill-server", weight: 3, lasts: true, needs: network, server: killServers(1, front)},
		{name: "pause-majority", weight: 1, lasts: true, needs: network, server: pauseServers(2, front)},
		{name: "kill-majority", weight: 1, lasts: true, needs: network, server: killServers(2, front)},
		{name: "pause-store", weight: 3, lasts: true, needs: store, server: pauseServers(1, below)},
		{name: "kill-store", weight: 2, lasts: true, needs: store, server: killServers(1, below)},
		{name: "kill-store-majority", weight: 1, lasts: true, needs: store, server: killServers(2, below)},
		{name: "fail-over", weight: 3, needs: standby, server: operate(func(ctx context.Context, r *run, _ step) error {
			return r.c.FailOver(ctx, nil)
		})},
		{name: "fail-over-beside", weight: 3, lasts: true, needs: standby, server: failOverBeside},
		{name: "isolate", weight: 4, lasts: true, needs: isolation, server: isolate},
		{name: "swap-address", weight: 4, needs: security},
		{name: "rotate-authority", weight: 2, needs: security, everyone: true, server: operate(func(ctx context.Context, r *run, _ step) error {
			return r.c.RotateAuthority(ctx)
		})},
		{name: "rotate-secret", weight: 2, needs: security, everyone: true, server: operate(func(ctx context.Context, r *run, _ step) error {
			return r.c.RotateSecret(ctx)
		})},
		{name: "replace-server", weight: 2, needs: membership, server: operate(func(ctx context.Context, r *run, s step) error {
			return r.c.ReplaceServer(ctx, victims(ctx, front(r), s, 1)[0])
		})},
		{name: "import-mark", weight: 2, needs: marks, everyone: true, server: operate(func(ctx context.Context, r *run, s step) error {
			return r.c.ImportMark(ctx, r.Elections[s.Election])
		})},
		{name: "import-members", weight: 2, needs: imports, everyone: true, server: operate(func(ctx context.Context, r *run, s step) error {
			ghosts, err := r.c.Import(ctx, r.Elections[s.Election], func(ctx context.Context) { arena.Last(ctx, r.c.TTL/2) })
			r.Say("imported %d ghosts into election %d", ghosts, s.Election+1)
			return err
		})},
		{name: evidence.Remove, weight: 2, operator: removeLeader},
		{name: evidence.EndSession, weight: 1, needs: sessionEnd, operator: endLeadersSession},
	}
}

func kindOf(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// do does one fault from its beginning to its end.
func (r *run) do(ctx context.Context, s step) {
	k := kindOf(s.Kind)
	if k.hitsCandidate() {
		r.Strike(ctx, s)
		return
	}
	var err error
	if k.operator != nil {
		r.Say("%v", s)
		err = k.operator(ctx, r, s)
	} else {
		// Until somebody leads again: two faults may take all servers there are.
		r.c.Busy.Lock()
		defer r.c.Busy.Unlock()
		r.Say("%v", s)
		end := r.Notes.Begin(s.Kind, "")
		err = k.server(ctx, r, s)
		end()
		r.awaitLeaders(ctx)
	}
	if err != nil {
		r.Fail("rig", "%v: %v", s, err)
	}
}

// awaitLeaders waits until every election has a leader. That takes no longer than a
// vacancy may, or the checker says so.
func (r *run) awaitLeaders(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.c.Vacancy())
	defer cancel()
	_ = r.Live.Wait(ctx, func() bool {
		return !slices.ContainsFunc(r.Elections, func(election string) bool {
			_, led := r.Live.Leader(election)
			return !led
		})
	})
}

// front and below return the servers that clients talk to, and those that keep the data of others.
func front(r *run) *coordtest.Cluster { return r.c.Cluster }
func below(r *run) *coordtest.Cluster { return r.c.Below }

// victims returns n servers, of which the first is the one that the step is for.
func victims(ctx context.Context, c *coordtest.Cluster, s step, n int) []*coordtest.Server {
	all := c.Servers()
	first := s.Index
	if s.Leader {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		if leader, err := c.Leader(ctx); err == nil {
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
func (r *run) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyLimit)
	defer cancel()
	for _, c := range []*coordtest.Cluster{r.c.Below, r.c.Cluster} {
		if c == nil {
			continue
		}
		for _, s := range c.Servers() {
			if err := s.Ready(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func pauseServers(n int, of func(*run) *coordtest.Cluster) func(context.Context, *run, step) error {
	return func(ctx context.Context, r *run, s step) error {
		return r.stop(ctx, s, of(r), n, (*coordtest.Server).Pause, (*coordtest.Server).Resume)
	}
}

func killServers(n int, of func(*run) *coordtest.Cluster) func(context.Context, *run, step) error {
	kill := func(s *coordtest.Server) error { s.Kill(); return nil }
	return func(ctx context.Context, r *run, s step) error {
		return r.stop(ctx, s, of(r), n, kill, (*coordtest.Server).Start)
	}
}

// failOverBeside has a standby take over, and the old primary serve beside it for a time.
func failOverBeside(ctx context.Context, r *run, s step) error {
	return operate(func(within context.Context, r *run, s step) error {
		return r.c.FailOver(within, func() { arena.Last(ctx, s.For) })
	})(ctx, r, s)
}

// stop stops n servers in one way or another, and lets them go on.
func (r *run) stop(ctx context.Context, s step, of *coordtest.Cluster, n int, do, undo func(*coordtest.Server) error) error {
	var errs []error
	victims := victims(ctx, of, s, n)
	for _, v := range victims {
		errs = append(errs, do(v))
	}
	arena.Last(ctx, s.For)
	for _, v := range victims {
		errs = append(errs, undo(v))
	}
	return errors.Join(append(errs, r.ready())...)
}

func isolate(ctx context.Context, r *run, s step) error {
	if err := r.c.Isolate(victims(ctx, front(r), s, 1)[0]); err != nil {
		return err
	}
	arena.Last(ctx, s.For)
	r.c.Heal()
	return r.ready()
}

// operate returns what an operator does while all servers serve. The operator has enough time for it.
func operate(do func(context.Context, *run, step) error) func(context.Context, *run, step) error {
	return func(ctx context.Context, r *run, s step) error {
		ctx, cancel := context.WithTimeout(ctx, readyLimit)
		defer cancel()
		if err := do(ctx, r, s); err != nil {
			return err
		}
		return r.ready()
	}
}

// operatorTimeout bounds what an operator does, who gives up where the coordinator does
// not answer.
const operatorTimeout = 3 * time.Second

// removeLeader deletes the member of a leader.
func removeLeader(ctx context.Context, r *run, s step) error {
	return r.depose(ctx, s, false, r.c.Remove)
}

// endLeadersSession ends the session of a leader, and with it all that it leads.
func endLeadersSession(ctx context.Context, r *run, s step) error {
	return r.depose(ctx, s, true, r.c.End)
}

// depose notes that a leader is deposed, and does it: afterwards would be too late, as
// somebody else may lead at once. Where there is no leader, one that leaves at that moment,
// or a coordinator that does not answer, it tries again for a minute, as faults that come meanwhile prolong a vacancy; then
// nobody is deposed.
func (r *run) depose(ctx context.Context, s step, everywhere bool, do func(context.Context, backend.Member) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	election := r.Elections[s.Election]
	again := backoff.New(ctx)
	var leader history.Event
	for found := false; ; {
		before := leader.Token
		err := r.Live.Wait(ctx, func() bool {
			leader, found = r.Live.Leader(election)
			return found && leader.Token != before
		})
		if err != nil {
			return nil
		}
		act, notes, err := r.find(ctx, leader, everywhere)
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
			r.Notes.Note(e)
		}
		end := r.Notes.Begin(s.Kind, leader.Candidate)
		limited, cancel := context.WithTimeout(ctx, operatorTimeout)
		err = do(limited, *act)
		cancel()
		end()
		if err != nil {
			// This happens if the coordinator does not answer. A candidate that was noted as
			// deposed is then given more time than is due.
			r.Say("%v: %v", s, err)
			r.Notes.Begin(s.Kind+failed, leader.Candidate)()
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
func (r *run) find(ctx context.Context, leader history.Event, everywhere bool) (member *backend.Member, notes []history.Event, err error) {
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	session, err := r.c.Session(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range r.Elections {
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
func (r *run) missing(h *history.History) (out []string) {
	times := make(map[string]int)
	for _, f := range h.Faults {
		times[f.Kind]++
	}
	for _, k := range kinds {
		if r.can(k.needs) && times[k.name] <= times[k.name+failed] {
			out = append(out, k.name)
		}
	}
	return out
}
