package conformance

import (
	"context"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/history"
)

// This file puts faults in. Each shows in the timeline, and in the history as a span
// of time; what is not healed by then is healed with the trial's end.

// strikes notes a fault of one client, or of all where who is empty. The func that it
// returns notes the end of it, and may be called more than once.
func (t *trial) strikes(who, kind, what string) (over func()) {
	t.log.add(actor(who), "FAULT %s", what)
	return t.notes.Begin(kind, who)
}

// actor is whose act the timeline shows it to be.
func actor(who string) string {
	if who == "" {
		return "oper"
	}
	return who
}

// moment notes a fault that takes no time.
func (t *trial) moment(who, kind, what string) { t.strikes(who, kind, what)() }

// aside runs f, the work of the harness, in a goroutine that has no label of
// [trial.labelled]: a server that f starts may well keep goroutines of its own.
func (t *trial) aside(f func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		pprof.SetGoroutineLabels(t.ctx)
		t.guarded(func() { err = f() })
	}()
	<-done
	return err
}

// healing returns f as what heals a fault. It may be called more than once, and is
// called with the trial's end.
func (t *trial) healing(who string, over, f func()) (heal func()) {
	heal = sync.OnceFunc(func() {
		t.log.add(actor(who), "HEALED")
		_ = t.aside(func() error { f(); return nil })
		over()
	})
	t.cleanup(heal)
	return heal
}

// expire has the coordinator end the client's session.
func (c *client) expire() {
	c.t.moment(c.name, "expired", "the coordinator ends the session")
	ctx, cancel := c.t.within(c.t.h.crash())
	defer cancel()
	if err := c.t.aside(func() error { return c.t.h.Faults.Expire(ctx, c.raw) }); err != nil {
		c.t.fatalf("the harness could not expire %s: %v", c.name, err)
	}
}

// cut cuts the client off. What it returns heals that, and so it is with the next
// ones.
func (c *client) cut() (heal func()) {
	return c.suffers("cut", "cut off", c.t.h.Faults.Cut)
}

// mute stops what the client sends.
func (c *client) mute() (heal func()) {
	return c.suffers("mute", "is not heard", c.t.h.Faults.Mute)
}

// deafen stops what the coordinator sends to the client.
func (c *client) deafen() (heal func()) {
	return c.suffers("deaf", "hears no answers", c.t.h.Faults.Deafen)
}

// sever resets each connection of the client that carries a request.
func (c *client) sever() (heal func()) {
	return c.suffers("severed", "its connections are reset by requests", c.t.h.Faults.Sever)
}

// hide makes the coordinator's address go away.
func (c *client) hide() (heal func()) {
	return c.suffers("hidden", "the coordinator's address is gone", c.t.h.Faults.Hide)
}

func (c *client) suffers(kind, what string, fault func(backend.Backend) (heal func())) func() {
	over := c.t.strikes(c.name, kind, what)
	var heal func()
	_ = c.t.aside(func() error { heal = fault(c.raw); return nil })
	return c.t.healing(c.name, over, heal)
}

func (c *client) loseAnswer() {
	c.t.moment(c.name, "lost answer", "the answer to the next write is lost")
	c.t.h.Faults.LoseAnswer(c.raw)
}

// kill makes the client vanish, for good.
func (c *client) kill() {
	c.t.strikes(c.name, "killed", "killed")
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
	_ = c.t.aside(func() error { c.t.h.Faults.Kill(c.raw); return nil })
}

// killed reports whether the client was killed.
func (c *client) killed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

func (c *client) requests() int64 { return c.t.h.Faults.Requests(c.raw) }

// remove deletes a member as an operator would.
func (t *trial) remove(m backend.Member) {
	t.moment(t.owner(m), "removed", "an operator removes "+show(m))
	ctx, cancel := t.within(t.h.soon())
	defer cancel()
	if err := t.aside(func() error { return t.h.Faults.Remove(ctx, m) }); err != nil {
		t.fatalf("the harness could not remove %s: %v", show(m), err)
	}
}

// owner returns the candidate who joined as m, where the history knows.
func (t *trial) owner(m backend.Member) string {
	for _, e := range t.notes.History().Events {
		if e.Kind == history.Joined && e.Position == m.Position {
			return e.Candidate
		}
	}
	return ""
}

// drop deletes the election of the trial as an operator would.
func (t *trial) drop() { t.dropLine(t.line) }

func (t *trial) dropLine(line string) {
	t.moment("", "dropped", "drops the election")
	ctx, cancel := t.within(t.h.soon())
	defer cancel()
	if err := t.aside(func() error { return t.h.Faults.Drop(ctx, line) }); err != nil {
		t.fatalf("the harness could not drop %s: %v", line, err)
	}
}

// restart restarts the coordinator.
func (t *trial) restart() { t.operates("restarted", "restarts the coordinator", t.h.Faults.Restart) }

// reset rebuilds the coordinator empty.
func (t *trial) reset() { t.operates("reset", "rebuilds the coordinator", t.h.Faults.Reset) }

// compact has the coordinator forget its history.
func (t *trial) compact() { t.operates("compacted", "compacts the log", t.h.Faults.Compact) }

// operates is a fault of the coordinator that is over when f returns.
func (t *trial) operates(kind, what string, f func(context.Context) error) {
	defer t.strikes("", kind, what)()
	if err := t.aside(func() error { return f(t.ctx) }); err != nil {
		t.fatalf("%s: the harness failed: %v", what, err)
	}
	t.log.add("oper", "is done: %s", what)
}

// remember returns a func that restores the coordinator's state of now.
func (t *trial) remember() (rewind func()) {
	var back func(context.Context) error
	err := t.aside(func() (err error) { back, err = t.h.Faults.Rewind(t.ctx); return err })
	if err != nil {
		t.fatalf("the harness could not remember the coordinator's state: %v", err)
	}
	return func() { t.operates("rewound", "restores the coordinator's earlier state", back) }
}

// pause stops the coordinator.
func (t *trial) pause() (resume func()) {
	over := t.strikes("", "paused", "pauses the coordinator")
	var f func()
	err := t.aside(func() (err error) { f, err = t.h.Faults.Pause(t.ctx); return err })
	if err != nil {
		t.fatalf("the harness could not pause the coordinator: %v", err)
	}
	return t.healing("", over, f)
}

// shift sets the coordinator's wall clock.
func (t *trial) shift(d time.Duration) (restore func()) {
	over := t.strikes("", "clock", "sets the coordinator's wall clock by "+d.String())
	var f func()
	err := t.aside(func() (err error) { f, err = t.h.Faults.Clock(t.ctx, d); return err })
	if err != nil {
		t.fatalf("the harness could not set the coordinator's clock: %v", err)
	}
	return t.healing("", over, f)
}
