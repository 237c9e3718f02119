package recipes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/task"
)

// A plant is where the machines of a rule run its tasks. It knows who runs what, and how far each
// task has come.
type plant struct {
	t       *engine.Trial
	c       *engine.Client // of the console
	console *task.Standby

	mu   sync.Mutex
	runs map[string]*task.Run // of each task: the newest
	by   map[string]string    // whose that is
	done map[string]uint64    // the largest position that was recorded

	ended map[*task.Run]bool // by an operator: they may not know at once
}

func newPlant(t *engine.Trial) *plant {
	c := t.Client()
	return &plant{
		t: t, c: c, console: task.NewStandby(c, t.Name, options(t, c)),
		runs: make(map[string]*task.Run), by: make(map[string]string), done: make(map[string]uint64), ended: make(map[*task.Run]bool),
	}
}

// runOf returns what a client does as a machine: it commits positions until its run ends.
func (p *plant) runOf(c *engine.Client) func(context.Context, *task.Run) error {
	return func(ctx context.Context, r *task.Run) error {
		p.begins(c.Name, r)
		for {
			if err := p.commit(ctx, r, r.Position()+1); err != nil {
				<-ctx.Done() // by which the run is lost, or stopped
				return err
			}
			pause := time.NewTimer(p.t.TTL / 50)
			select {
			case <-pause.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// begins checks that the run is alone, has a larger token than the one before, and begins where
// that has stopped.
func (p *plant) begins(who string, r *task.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.t.Log(who, "runs %s from %d, with token %d", r.Task, r.Position(), r.Token())
	last := p.runs[r.Task]
	switch {
	case r.Check() != nil: // its session has ended before it could say so
		return
	case last == nil:
	case !p.ended[last] && last.Context().Err() == nil && last.Check() == nil:
		p.t.Never("%s and %s run %s", p.by[r.Task], who, r.Task)
	case r.Token() <= last.Token():
		p.t.Never("%s runs %s with token %d, after one with %d", who, r.Task, r.Token(), last.Token())
	case r.Position() < p.done[r.Task]:
		p.t.Never("%s runs %s from %d, and %d was recorded", who, r.Task, r.Position(), p.done[r.Task])
	}
	p.runs[r.Task], p.by[r.Task] = r, who
}

func (p *plant) commit(ctx context.Context, r *task.Run, position uint64) error {
	err := r.Commit(ctx, position)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.done[r.Task] = max(p.done[r.Task], position)
	}
	return err
}

// hot has the client stand for the task in the background.
func (p *plant) hot(c *engine.Client, name string) *engine.Call {
	s := task.NewStandby(c, p.t.Name, options(p.t, c))
	return p.t.Go(c.Name+": Hot", func() error { return s.Hot(p.t.Ctx, name, p.runOf(c)) })
}

// cold has the client look for tasks in the background.
func (p *plant) cold(c *engine.Client) *engine.Call {
	s := task.NewStandby(c, p.t.Name, options(p.t, c))
	return p.t.Go(c.Name+": Cold", func() error { return s.Cold(p.t.Ctx, p.runOf(c)) })
}

func (p *plant) starts(name string) { p.t.Want("Start", p.console.Start(p.t.Ctx, name)) }
func (p *plant) stops(name string)  { p.t.Want("Stop", p.console.Stop(p.t.Ctx, name)) }

// now returns who runs each task and may go on, as the machines say.
func (p *plant) now() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	by := make(map[string]string)
	for name, r := range p.runs {
		if r.Context().Err() == nil && r.Check() == nil {
			by[name] = p.by[name]
		}
	}
	return by
}

// recorded returns the largest position for which Commit has succeeded.
func (p *plant) recorded(name string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done[name]
}

// run returns the newest run of the task.
func (p *plant) run(name string) *task.Run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs[name]
}

// ends says that an operator is about to end the newest run of the task, and returns that.
func (p *plant) ends(name string) *task.Run {
	r := p.run(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended[r] = true
	return r
}

// status returns how it stands with each task.
func (p *plant) status() map[string]task.Status {
	all, err := p.console.Status(p.t.Ctx)
	p.t.Want("Status", err)
	by := make(map[string]task.Status)
	for _, st := range all {
		by[st.Task] = st
	}
	return by
}

// goesOn waits until somebody who is none of those not runs the task and has committed, and returns
// who it is.
func (p *plant) goesOn(name string, d time.Duration, not ...string) (who string) {
	p.t.Eventually(d, "another runs "+name+" and has recorded its position", func() bool {
		who = p.now()[name]
		if who == "" || slices.Contains(not, who) {
			return false
		}
		st := p.status()[name]
		return st.ID == who && st.Position > 0 && !st.Since.IsZero()
	})
	return who
}

var taskRules = []engine.Rule{{
	ID: "Task.standby", Title: "one hot machine runs a task, and the next goes on where it has stopped",
	Text:  "Three machines stand by for a task that is not started: nobody runs it. It is started: the first runs it soon. The first crashes: the second runs it after a crash, with a larger token, from the position that was recorded last, and not while the first may. It is stopped: soon nobody runs it, and its position stays; it is started again: somebody runs it soon.",
	Needs: []engine.Fault{engine.Records, engine.Kill},
	Check: func(t *engine.Trial) {
		p, cs := newPlant(t), t.Clients(3)
		for i, c := range cs {
			p.hot(c, "x")
			stands(t, cs[0].In(t.Name+"-run-x"), i+1)
		}
		t.Always(t.TTL/10, "a task is run that was not started", func() bool { return len(p.now()) == 0 })
		p.starts("x")
		first := p.goesOn("x", t.Soon())
		cs[0].Inject(engine.Kill)
		p.goesOn("x", t.Crash()+t.Recheck()+t.Soon(), first)
		p.stops("x")
		t.Eventually(t.Soon(), "who ran a task that was stopped leaves the line", func() bool {
			return !slices.ContainsFunc(cs[1].In(t.Name+"-run-x").Members(), func(m backend.Member) bool { return m.Position == p.run("x").Term().Member().Position })
		})
		at := p.status()["x"].Position
		t.Always(t.TTL/10, "a task that was stopped goes on", func() bool { return len(p.now()) == 0 && p.status()["x"].Position == at })
		p.starts("x")
		p.goesOn("x", t.Soon(), first)
	},
}, {
	ID: "Task.replaced", Title: "who was replaced cannot record a position",
	Text:  "An operator removes the machine that runs a task from its line. When the next one runs it, a Commit of the first one's run, of a larger position, fails with ErrLost, and the next one's positions go on without a gap.",
	Needs: []engine.Fault{engine.Records, engine.Remove},
	Check: func(t *engine.Trial) {
		p, cs := newPlant(t), t.Clients(2)
		p.starts("x")
		p.hot(cs[0], "x")
		first := p.goesOn("x", t.Soon())
		p.hot(cs[1], "x")
		stands(t, cs[1].In(t.Name+"-run-x"), 2)
		old := p.ends("x")
		t.Remove(old.Term().Member())
		p.goesOn("x", t.Crash()+t.Recheck(), first)
		at := old.Position()
		t.Want("Commit of the replaced", old.Commit(t.Ctx, at+1_000_000), elect.ErrLost)
		t.Always(t.TTL/10, "the position of the replaced is recorded", func() bool { return p.status()["x"].Position < at+1_000_000 })
		t.Want("Check of the next", p.run("x").Check())
	},
}, {
	ID: "Task.cut", Title: "a machine that is cut off stops before the next begins",
	Text:  "The machine that runs a task is cut off. The next one runs it after a crash, and not before the context of the first one's run has ended. When the first is healed, its Commit fails, and it stands by again.",
	Needs: []engine.Fault{engine.Records, engine.Deadlines, engine.Cut},
	Check: func(t *engine.Trial) {
		p, cs := newPlant(t), t.Clients(2)
		p.starts("x")
		p.hot(cs[0], "x")
		first := p.goesOn("x", t.Soon())
		p.hot(cs[1], "x")
		stands(t, cs[1].In(t.Name+"-run-x"), 2)
		old := p.run("x")
		heal := cs[0].Inject(engine.Cut)
		p.goesOn("x", t.Crash()+t.Soon(), first)
		heal()
		commit := t.Go("Commit of the replaced", func() error { return old.Commit(t.Ctx, old.Position()+1_000_000) })
		commit.Returns(t.Recovery(), elect.ErrLost)
		stands(t, cs[1].In(t.Name+"-run-x"), 2)
		t.Want("Check of the next", p.run("x").Check())
	},
}, {
	ID: "Task.cold", Title: "cold machines run what is started and nobody runs",
	Text:  "Three tasks are started and one is stopped. Of five cold machines three run the three, one each. One of them crashes: another runs its task after a crash. A task is stopped and the other one is started: soon somebody runs it, and nobody that which was stopped.",
	Needs: []engine.Fault{engine.Records, engine.Kill},
	Check: func(t *engine.Trial) {
		p, cs := newPlant(t), t.Clients(5)
		runs := func(d time.Duration, tasks ...string) {
			t.Eventually(d, fmt.Sprintf("each of %v is run, by a machine of its own", tasks), func() bool {
				by := p.now()
				distinct := make(map[string]bool)
				for _, who := range by {
					distinct[who] = true
				}
				return slices.Equal(slices.Sorted(maps.Keys(by)), tasks) && len(distinct) == len(tasks)
			})
			t.Eventually(t.Soon(), "Status says who runs what", func() bool {
				seen := make(map[string]string)
				for name, st := range p.status() {
					if st.ID != "" || st.Missing() {
						seen[name] = st.ID
					}
				}
				return maps.Equal(seen, p.now())
			})
		}
		p.stops("d")
		for _, name := range []string{"a", "b", "c"} {
			p.starts(name)
		}
		for _, c := range cs {
			p.cold(c)
		}
		runs(2*t.Soon(), "a", "b", "c")
		i := slices.IndexFunc(cs, func(c *engine.Client) bool { return c.Name == p.now()["b"] })
		cs[i].Inject(engine.Kill)
		p.goesOn("b", t.Crash()+t.Recheck()+t.Soon(), cs[i].Name)
		p.stops("a")
		t.Eventually(t.Soon(), "nobody runs a task that was stopped", func() bool { return p.now()["a"] == "" })
		p.starts("d")
		runs(2*t.Soon(), "b", "c", "d")
		t.Always(t.TTL/10, "a task that was stopped is run", func() bool { return p.now()["a"] == "" })
	},
}, {
	ID: "Task.expired", Title: "a run ends with its machine's session",
	Text:  "The sessions of two machines are ended: of a hot one that runs a task, and of a cold one that runs another. After a crash the contexts of both runs have ended with ErrLost, and a Commit of a larger position fails. The next one in line runs the first task, from the position that was recorded last, and the other machine stands behind it. The cold one finds its task again, and runs it with a larger token.",
	Needs: []engine.Fault{engine.Records, engine.Expire},
	Check: func(t *engine.Trial) {
		p, cs := newPlant(t), t.Clients(3)
		p.starts("x")
		p.hot(cs[0], "x")
		first := p.goesOn("x", t.Crash())
		p.hot(cs[1], "x")
		stands(t, cs[1].In(t.Name+"-run-x"), 2)
		p.starts("y")
		p.cold(cs[2])
		p.goesOn("y", t.Crash())
		for name, c := range map[string]*engine.Client{"x": cs[0], "y": cs[2]} {
			old := p.ends(name)
			c.Inject(engine.Expire)
			engine.Await(t, old.Context().Done(), t.Crash(), "the context of a run whose session was ended has not ended")
			t.Want("Check of a run whose session was ended", old.Check(), elect.ErrLost)
			t.Go("Commit of what is lost", func() error { return old.Commit(t.Ctx, old.Position()+1_000_000) }).Returns(t.Crash(), elect.ErrLost)
		}
		p.goesOn("x", t.Crash()+t.Recheck(), first)
		stands(t, cs[1].In(t.Name+"-run-x"), 2)
		p.goesOn("y", t.Crash()+t.Recheck())
		for name, st := range p.status() {
			if st.Position >= 1_000_000 {
				t.Never("the position of %s is %d, which was committed under a session that had ended", name, st.Position)
			}
		}
	},
}, {
	ID: "Task.lost-answer", Title: "a lost answer neither stops a run nor moves its position",
	Text:  "The answer is lost to the request by which a task is started, to that by which a machine joins its line, to a Commit, and to the request by which the task is stopped. Start and Stop succeed, and the machine runs the task, each within the time of two crashes. The run that loses the answer to a Commit goes on. When the task was stopped its position is the last one for which Commit has succeeded, or the next.",
	Needs: []engine.Fault{engine.Records, engine.LoseAnswer},
	Check: func(t *engine.Trial) {
		p, c := newPlant(t), t.Client()
		loses := func(what string, f func() error) {
			p.c.Live()
			p.c.Inject(engine.LoseAnswer)
			t.Go(what+" with a lost answer", f).Returns(2 * t.Crash())
		}
		loses("Start", func() error { return p.console.Start(t.Ctx, "x") })
		c.Live()
		c.Inject(engine.LoseAnswer)
		p.hot(c, "x")
		p.goesOn("x", 2*t.Crash())
		r, at := p.run("x"), p.recorded("x")
		c.Inject(engine.LoseAnswer)
		t.Eventually(2*t.Crash(), "the run that has lost an answer goes on", func() bool { return p.recorded("x") > at+2 })
		if now := p.run("x"); now != r || r.Check() != nil {
			t.Fatalf("a run was lost with the answer to a Commit: %v", r.Check())
		}
		loses("Stop", func() error { return p.console.Stop(t.Ctx, "x") })
		t.Eventually(t.Crash(), "who ran a task that was stopped leaves the line", func() bool { return !c.In(t.Name + "-run-x").Stands(r.Term().Member()) })
		if done, at := p.recorded("x"), p.status()["x"].Position; at != done && at != done+1 {
			t.Never("the position is %d, and the last for which Commit has succeeded %d", at, done)
		}
	},
}}
