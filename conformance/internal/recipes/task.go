package recipes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/task"
)

// A plant is where the machines of a rule run its tasks. It knows who runs what, and how far each
// task has come.
type plant struct {
	t       *engine.Trial
	console *task.Standby

	mu   sync.Mutex
	runs map[string]*task.Run // of each task: the newest
	by   map[string]string    // whose that is
	done map[string]uint64    // the largest position that was recorded

	removed *task.Run // an operator has removed its member: it may not know at once
}

func newPlant(t *engine.Trial) *plant {
	c := t.Client()
	return &plant{
		t: t, console: task.NewStandby(c, t.Name, options(t, c)),
		runs: make(map[string]*task.Run), by: make(map[string]string), done: make(map[string]uint64),
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
	case last == nil:
	case last != p.removed && last.Context().Err() == nil && last.Check() == nil && r.Check() == nil:
		p.t.Fatalf("%s and %s run %s", p.by[r.Task], who, r.Task)
	case r.Token() <= last.Token():
		p.t.Fatalf("%s runs %s with token %d, after one with %d", who, r.Task, r.Token(), last.Token())
	case r.Position() < p.done[r.Task]:
		p.t.Fatalf("%s runs %s from %d, and %d was recorded", who, r.Task, r.Position(), p.done[r.Task])
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

// run returns the newest run of the task.
func (p *plant) run(name string) *task.Run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs[name]
}

// remove has an operator remove the machine that runs the task from its line, and returns its run.
func (p *plant) remove(name string) *task.Run {
	r := p.run(name)
	p.mu.Lock()
	p.removed = r
	p.mu.Unlock()
	p.t.Remove(r.Member())
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
			return !slices.ContainsFunc(cs[1].In(t.Name+"-run-x").Members(), func(m backend.Member) bool { return m.Position == p.run("x").Member().Position })
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
		old := p.remove("x")
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
	ID: "Task.workers", Title: "every task has one result, and two never run it at once",
	Text:  "Nine tasks are submitted to three workers, each of which begins one. The master crashes, and after a crash it is present no more: another process that takes its place runs its task, while the other two go on. So it is when a worker crashes that is not the master. Then the runs end: each task has its result, in the end no task is in line, and no task was run by two at once.",
	Needs: []engine.Fault{engine.Records, engine.Shares, engine.Items, engine.Kill},
	Check: func(t *engine.Trial) {
		c := t.Client()
		pool := task.NewPool(c, t.Name, options(t, c))
		f := &factory{t: t, open: make(chan struct{}), runs: make(map[string]*task.Task), by: make(map[string]string)}
		alive := t.Clients(3)
		for _, w := range alive {
			f.works(w)
		}
		stands(t, c.In(t.Name+"-workers"), 3)
		var ids []uint64
		for i := range 9 {
			id, err := pool.Submit(t.Ctx, strconv.Itoa(i))
			t.Want("Submit", err)
			ids = append(ids, id)
		}
		allBusy := func(d time.Duration) {
			t.Eventually(d, "each worker runs a task", func() bool {
				return !slices.ContainsFunc(alive, func(w *engine.Client) bool { return f.task(w.Name) == "" })
			})
		}
		allBusy(t.Soon())
		for _, crashes := range []string{"the master", "a worker"} {
			var master string
			t.Eventually(t.Soon(), "one of the workers is the master", func() bool {
				st, err := pool.Status(t.Ctx)
				t.Want("Status", err)
				master = st.Master
				return slices.ContainsFunc(alive, func(w *engine.Client) bool { return w.Name == master })
			})
			i := slices.IndexFunc(alive, func(w *engine.Client) bool { return (w.Name == master) == (crashes == "the master") })
			left := f.task(alive[i].Name)
			alive[i].Inject(engine.Kill)
			t.Eventually(t.Crash(), "who has crashed is present no more", func() bool { return len(c.In(t.Name+"-workers").Members()) == 2 })
			alive[i] = t.Client()
			f.works(alive[i])
			allBusy(t.Recheck() + t.Soon())
			if got := f.task(alive[i].Name); got != left {
				t.Fatalf("%s has crashed, and who takes its place runs task %s, want %s", crashes, got, left)
			}
		}
		close(f.open)
		for i, id := range ids {
			t.Go(fmt.Sprintf("Result of %d", i), func() error {
				got, err := pool.Result(t.Ctx, id)
				if err == nil && got != "done "+strconv.Itoa(i) {
					err = fmt.Errorf("it is %q", got)
				}
				return err
			}).Returns(t.Crash())
		}
		c.In(t.Name + "-todo").Shows(t.Soon())
	},
}, {
	ID: "Task.result", Title: "a worker that was replaced cannot store a result",
	Text:  "An operator removes a worker that runs a task. When another runs it, the first returns its result, which is dropped: it is the second's that is stored, and the task stays in line until then.",
	Needs: []engine.Fault{engine.Records, engine.Shares, engine.Items, engine.Remove},
	Check: func(t *engine.Trial) {
		cs := t.Clients(2)
		begun, end := make(chan *task.Task, 2), []chan string{make(chan string, 1), make(chan string, 1)}
		pools := []*task.Pool{task.NewPool(cs[0], t.Name, options(t, cs[0])), task.NewPool(cs[1], t.Name, options(t, cs[1]))}
		work := func(i int) {
			t.Go(cs[i].Name+": Work", func() error {
				return pools[i].Work(t.Ctx, func(_ context.Context, run *task.Task) (string, error) {
					begun <- run
					return engine.Await(t, end[i], t.Limit(), "the rule has not said what the result is"), nil
				})
			})
		}
		work(0)
		stands(t, cs[0].In(t.Name+"-workers"), 1)
		id, err := pools[0].Submit(t.Ctx, "x")
		t.Want("Submit", err)
		old := engine.Await(t, begun, t.Soon(), "the task has not begun")
		work(1)
		stands(t, cs[0].In(t.Name+"-workers"), 2)
		t.Remove(old.Member())
		next := engine.Await(t, begun, t.Crash()+t.Recheck(), "the task has not begun again")
		if next.Run <= old.Run {
			t.Fatalf("run %d comes after run %d", next.Run, old.Run)
		}
		_, err = old.Put(t.Ctx, t.Name+"-results/"+strconv.FormatUint(id, 10), []byte(`{"value":"of the first"}`), backend.Absent)
		t.Want("Put of the replaced", err, backend.ErrNotMember)
		end[0] <- "of the first"
		t.Pass(t.TTL/10, "in which it could be stored")
		stands(t, cs[0].In(t.Name+"-todo"), 1)
		end[1] <- "of the second"
		t.Go("Result", func() error {
			got, err := pools[0].Result(t.Ctx, id)
			if err == nil && got != "of the second" {
				err = fmt.Errorf("it is %q", got)
			}
			return err
		}).Returns(t.Soon())
		cs[0].In(t.Name + "-todo").Shows(t.Soon())
	},
}}

// A factory is where workers run the tasks of a rule. No run ends before it is open.
type factory struct {
	t    *engine.Trial
	open chan struct{}

	mu   sync.Mutex
	runs map[string]*task.Task // the newest run of each task
	by   map[string]string     // whose that is
}

// works makes the client a worker in the background.
func (f *factory) works(c *engine.Client) {
	p := task.NewPool(c, f.t.Name, options(f.t, c))
	f.t.Go(c.Name+": Work", func() error {
		return p.Work(f.t.Ctx, func(ctx context.Context, run *task.Task) (string, error) {
			f.begins(c.Name, run)
			select {
			case <-f.open:
				return "done " + run.Value, nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		})
	})
}

// begins checks that nobody else runs the task, and may go on.
func (f *factory) begins(who string, run *task.Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.t.Log(who, "runs task %s for the time %d", run.Value, run.Run)
	if last := f.runs[run.Value]; last != nil && last.Check() == nil && run.Check() == nil {
		f.t.Fatalf("%s and %s run task %s", f.by[run.Value], who, run.Value)
	}
	f.runs[run.Value], f.by[run.Value] = run, who
}

// task returns the task that the worker runs; "" for none.
func (f *factory) task(who string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for value, run := range f.runs {
		if f.by[value] == who && run.Check() == nil {
			return value
		}
	}
	return ""
}
