package engine

import (
	"context"
	"fmt"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/history"
)

// injections are the names of faults in the history (kind) and in the timeline (what).
var injections = map[Fault]struct{ kind, what string }{
	Expire:     {"expired", "the coordinator ends the session"},
	Cut:        {"cut", "cut off"},
	Mute:       {"mute", "is not heard"},
	Deafen:     {"deaf", "hears no answers"},
	Sever:      {"severed", "its connections are reset by requests"},
	Hide:       {"hidden", "the coordinator's address is gone"},
	LoseAnswer: {"lost answer", "the answer to the next write is lost"},
	HoldBack:   {"held back", "a write is held back on its way"},
	Kill:       {"killed", "killed"},
	Restart:    {"restarted", "restarts the coordinator"},
	Pause:      {"paused", "pauses the coordinator"},
	Remove:     {"removed", "an operator removes "},
	Drop:       {"dropped", "drops the election"},
	Reset:      {"reset", "rebuilds the coordinator"},
	Compact:    {"compacted", "compacts the log"},
	Clock:      {"clock", "sets the coordinator's wall clock by "},
}

// Inject injects a fault into this client: Expire, Cut, Mute, Deafen, Sever, Hide,
// LoseAnswer or Kill. The func heal ends the fault, if it can be ended. It may be called more
// than once, and the trial calls it at its end. The same holds for all methods that inject
// faults.
func (c *Client) Inject(f Fault) (heal func()) {
	if f == Kill {
		c.mu.Lock()
		c.dead = true
		c.mu.Unlock()
	}
	i := injections[f]
	return c.t.inject(f, Target{Client: c.raw}, c.Name, i.kind, i.what)
}

// HoldsBack begins a call that writes. It returns when the first of the call's requests after skip
// others is held back on its way. The call goes on in the background. The func arrives lets the
// request arrive; it may be called more than once, and the trial calls it at its end. If skip is
// not 0 and the call has returned without that many requests, held is false.
func (c *Client) HoldsBack(ctx context.Context, op Op, skip int) (call *Call, arrives func(), held bool) {
	t, i := c.t, injections[HoldBack]
	s := c.Live()
	over := t.strike(c.Name, i.kind, i.what)
	var on func() bool
	var release func()
	t.harness(i.what, func() error {
		on, release = t.Faults.HoldBack(c.raw, skip)
		return nil
	})
	arrives = t.heals(c.Name, i.what, over, func(context.Context) error { release(); return nil })
	call = &Call{t: t, what: c.Name + ": " + op.Name + ", whose request is held back", result: make(chan error, 1)}
	t.spawn(func() {
		var err error
		call.value, err = op.call(ctx, s)
		call.result <- err
	})
	t.Eventually(t.Soon(), call.what, func() bool { return on() || call.Returned() })
	if on() {
		t.Log(c.Name, "a request of its %s is held back", op.Name)
		return call, arrives, true
	}
	if skip == 0 {
		t.Fatalf("%s: %s has returned, and no request of it was held back", c.Name, op.Name)
	}
	arrives()
	return call, arrives, false
}

// Inject injects a fault into the whole coordinator: Restart, Pause, Reset or Compact.
func (t *Trial) Inject(f Fault) (heal func()) {
	i := injections[f]
	return t.inject(f, Target{}, "", i.kind, i.what)
}

// Remove deletes a member as an operator would.
func (t *Trial) Remove(m backend.Member) {
	i := injections[Remove]
	t.inject(Remove, Target{Member: m}, t.Owner(m), i.kind, i.what+Show(m))
}

// Drop deletes an election as an operator would.
func (t *Trial) Drop(election string) {
	i := injections[Drop]
	t.inject(Drop, Target{Line: election}, "", i.kind, i.what)
}

// Shift sets the coordinator's wall clock forward by d, or back if d is negative.
func (t *Trial) Shift(d time.Duration) (restore func()) {
	i := injections[Clock]
	return t.inject(Clock, Target{Shift: d}, "", i.kind, i.what+d.String())
}

// Rewind remembers the coordinator's state, and returns a func that restores it.
func (t *Trial) Rewind() (back func()) {
	var undo func(context.Context) error
	t.harness("remembers the coordinator's state", func() (err error) {
		undo, err = t.Faults.Inject(t.Ctx, Rewind, Target{})
		return err
	})
	return func() {
		defer t.strike("", "rewound", "restores the coordinator's earlier state")()
		ctx, cancel := t.toTheEnd()
		defer cancel()
		t.harness("restores the coordinator's earlier state", func() error { return undo(ctx) })
	}
}

// A Standby is a coordinator of a primary and a standby.
type Standby struct {
	t *Trial
	f Fault
	r *Replica
}

// Standby starts another coordinator, of a primary and a standby, for the fault Promote or
// PromoteBeside. All clients that the trial opens from then on are its clients.
func (t *Trial) Standby(f Fault) *Standby {
	s := &Standby{t: t, f: f}
	t.harness("starts a primary and a standby", func() (err error) {
		s.r, err = t.Faults.Standby(t.Ctx, f)
		return err
	})
	t.Cleanup(s.r.Close)
	c := *t.Coordinator
	c.Open = s.r.Open
	t.Coordinator = &c
	return s
}

// Lags stops the copying to the standby.
func (s *Standby) Lags() {
	s.t.Log("oper", "the standby receives nothing more")
	s.t.harness("has the standby lag", func() error { return s.r.Lag(s.t.Ctx) })
}

// TakesOver makes the standby take over. The primary dies before that, or goes on serving.
func (s *Standby) TakesOver() {
	what := "the primary dies, and the standby takes over"
	if s.f == PromoteBeside {
		what = "the standby takes over, and the primary serves on"
	}
	defer s.t.strike("", "promoted", what)()
	s.t.harness(what, func() error { return s.r.Promote(s.t.Ctx) })
}

// InjectServer injects a fault into one server of the cluster: Kill, Pause or Isolate.
// Servers are counted from 0.
func (t *Trial) InjectServer(f Fault, server int) (heal func()) {
	what := fmt.Sprintf("server %d %s", server, map[Fault]string{Kill: "killed", Pause: "paused", Isolate: "isolated"}[f])
	over := t.strike("", what, what)
	var undo func(context.Context) error
	t.harness(what, func() (err error) {
		undo, err = t.Faults.InjectServer(f, server)
		return err
	})
	return t.heals("", what, over, undo)
}

func (t *Trial) inject(f Fault, at Target, who, kind, what string) (heal func()) {
	over := t.strike(who, kind, what)
	within := t.toTheEnd
	switch f {
	case Expire, LoseAnswer, Remove, Drop: // they happen at one moment
		over()
		within = func() (context.Context, context.CancelFunc) { return t.Within(t.Crash()) }
	}
	ctx, cancel := within()
	defer cancel()
	var undo func(context.Context) error
	t.harness(what, func() (err error) {
		undo, err = t.Faults.Inject(ctx, f, at)
		return err
	})
	switch {
	case undo != nil:
		return t.heals(who, what, over, undo)
	case f != Kill: // a kill lasts until the end of the trial
		over()
	}
	return func() {}
}

// heals returns the func that heals a fault. It may be called more than once, and the trial
// calls it at its end.
func (t *Trial) heals(who, what string, over func(), undo func(context.Context) error) (heal func()) {
	heal = sync.OnceFunc(func() {
		t.Log(actor(who), "HEALED")
		defer over()
		ctx, cancel := t.toTheEnd()
		defer cancel()
		t.harness("the end of "+what, func() error { return undo(ctx) })
	})
	t.Cleanup(heal)
	return heal
}

// toTheEnd returns the context of what the harness is to do to the end, whatever becomes of the rule: a server that was killed
// must be started again, for other rules need it.
func (t *Trial) toTheEnd() (context.Context, context.CancelFunc) {
	limit := t.Limit()
	return context.WithTimeoutCause(context.WithoutCancel(t.Ctx), limit, fmt.Errorf("not done after %v", limit))
}

// strike notes a fault of the client with the name who, or of all clients if who is empty. The
// func that it returns notes the end of the fault, and may be called more than once.
func (t *Trial) strike(who, kind, what string) (over func()) {
	t.Log(actor(who), "FAULT %s", what)
	return t.notes.Begin(kind, who)
}

// actor returns the name that the timeline shows for a fault of the client who.
func actor(who string) string {
	if who == "" {
		return "oper"
	}
	return who
}

// harness runs f, which does the harness's work and must succeed. It runs f in a goroutine
// without the label of [Trial.Started], which then does not count the goroutines that f starts:
// a server may need them for longer.
func (t *Trial) harness(what string, f func() error) {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		pprof.SetGoroutineLabels(t.Ctx)
		t.guarded(func() { err = f() })
	}()
	<-done
	if err != nil {
		t.Fatalf("%s: the harness failed: %v", what, err)
	}
}

// Owner returns the candidate that joined as m, or "" if the history does not know it.
func (t *Trial) Owner(m backend.Member) string {
	for _, e := range t.History().Events {
		if e.Kind == history.Joined && e.Position == m.Position {
			return e.Candidate
		}
	}
	return ""
}
