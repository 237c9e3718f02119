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
	case last == nil:
	case !p.ended[last] && last.Context().Err() == nil && last.Check() == nil && r.Check() == nil:
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
		old := p.ends("x")
		t.Remove(old.Member())
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
				t.Fatalf("the position of %s is %d, which was committed under a session that had ended", name, st.Position)
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
		t.Eventually(t.Crash(), "who ran a task that was stopped leaves the line", func() bool { return !c.In(t.Name + "-run-x").Stands(r.Member()) })
		if done, at := p.recorded("x"), p.status()["x"].Position; at != done && at != done+1 {
			t.Fatalf("the position is %d, and the last for which Commit has succeeded %d", at, done)
		}
	},
}, {
	ID: "Task.workers", Title: "every task has one result, and two never run it at once",
	Text:  "Nine tasks are submitted to three workers, each of which begins one. The master crashes, and after a crash it is present no more: another process that takes its place runs its task, while the other two go on. So it is when a worker crashes that is not the master. Then the runs end: each task has its result, in the end no task is in line, and no task was run by two at once.",
	Needs: []engine.Fault{engine.Records, engine.Shares, engine.Items, engine.Kill},
	Check: func(t *engine.Trial) {
		c := t.Client()
		pool := task.NewPool(c, t.Name, options(t, c))
		f := newFactory(t)
		alive := t.Clients(3)
		for _, w := range alive {
			f.works(w)
		}
		stands(t, c.In(t.Name+"-workers"), 3)
		ids := submits(t, pool, 9)
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
		f.closes(pool, c, ids)
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
		results(t, pools[0], id, "of the second").Returns(t.Soon())
		cs[0].In(t.Name + "-todo").Shows(t.Soon())
	},
}, {
	ID: "Task.workers-expired", Title: "a task is run again when its worker's session has ended",
	Text:  "Of two workers each runs a task, and a third task waits. The session of the one that is not the master is ended, and when its task is run again, that of the master. Each time the context of the run ends after a crash, with ErrLost, and the same task is run again, with a larger Run, before the one that waits. Then the runs end: each task has its result, and no task is in line.",
	Needs: []engine.Fault{engine.Records, engine.Shares, engine.Items, engine.Expire},
	Check: func(t *engine.Trial) {
		c := t.Client()
		pool := task.NewPool(c, t.Name, options(t, c))
		f, cs := newFactory(t), t.Clients(2)
		for i, w := range cs {
			f.works(w)
			stands(t, c.In(t.Name+"-workers"), i+1)
			stands(t, c.In(t.Name+"-master"), i+1)
		}
		ids := submits(t, pool, 3)
		for _, w := range []*engine.Client{cs[1], cs[0]} { // who has joined first is the master
			var value string
			t.Eventually(t.Crash(), w.Name+" runs a task", func() bool { value = f.task(w.Name); return value != "" })
			old := f.ends(value)
			w.Inject(engine.Expire)
			engine.Await(t, old.Context().Done(), t.Crash(), "the context of a run whose session was ended has not ended")
			t.Want("Check of a run whose session was ended", old.Check(), elect.ErrLost)
			t.Eventually(t.Crash()+t.Recheck(), "task "+value+" is run again", func() bool {
				now, _ := f.newest(value)
				return now.Run > old.Run && now.Check() == nil
			})
		}
		if run, who := f.newest("2"); run != nil {
			t.Fatalf("%s runs task 2, and those in front of it have not ended", who)
		}
		f.closes(pool, c, ids)
	},
}, {
	ID: "Task.workers-lost-answer", Title: "a lost answer runs no task twice, and loses none",
	Text:  "The answer is lost to the first request by which each of two workers stands in a line. They run a task, and each of them begins another: the answer is lost to the request by which the second is submitted, to that by which the master assigns it, and to those by which the results of both are stored. Submit returns nil or ErrUnavailable, and the task is in line once. Each step is done within the time of two crashes; each task was run once, and in the end none is in line.",
	Needs: []engine.Fault{engine.Records, engine.Shares, engine.Items, engine.LoseAnswer},
	Check: func(t *engine.Trial) {
		c := t.Client()
		pool := task.NewPool(c, t.Name, options(t, c))
		f, cs := newFactory(t), t.Clients(2)
		for i, w := range cs {
			w.Live()
			w.Inject(engine.LoseAnswer)
			f.works(w)
			t.Eventually(2*t.Crash(), "the worker stands in both lines", func() bool {
				return len(c.In(t.Name+"-workers").Members()) == i+1 && len(c.In(t.Name+"-master").Members()) == i+1
			})
		}
		id, err := pool.Submit(t.Ctx, "first") // makes each folder: what is lost later has taken effect
		t.Want("Submit", err)
		f.opens("first")
		results(t, pool, id, "done first").Returns(2 * t.Crash())
		runs := func(value string) {
			t.Eventually(2*t.Crash(), "a worker runs task "+value, func() bool { run, _ := f.newest(value); return run != nil })
		}
		_, err = pool.Submit(t.Ctx, "0")
		t.Want("Submit", err)
		runs("0")
		cs[0].Inject(engine.LoseAnswer) // who has joined first is the master
		c.Inject(engine.LoseAnswer)
		t.Go("Submit with a lost answer", func() error {
			_, err := pool.Submit(t.Ctx, "1")
			return err
		}).Returns(2*t.Crash(), nil, backend.ErrUnavailable)
		runs("1")
		todo := c.In(t.Name + "-todo").Members()
		if len(todo) != 2 {
			t.Fatalf("two tasks were submitted, and %s are in line", engine.ShowLine(todo))
		}
		for i, w := range cs {
			w.Inject(engine.LoseAnswer)
			f.opens(strconv.Itoa(i))
		}
		for i, item := range todo {
			results(t, pool, item.Position, "done "+strconv.Itoa(i)).Returns(2 * t.Crash())
		}
		c.In(t.Name + "-todo").Settles()
		for i := range todo {
			if run, _ := f.newest(strconv.Itoa(i)); run.Run != 1 {
				t.Fatalf("task %d was run %d times", i, run.Run)
			}
		}
	},
}, {
	ID: "Task.woken", Title: "a task wakes its worker and the master alone",
	Text:  "Five workers wait, each of which has run a task. Three tasks are submitted, and two of them end: the two workers that have not been given one send nothing. Then all but one run a task that lasts, and that one runs ten more: the others, but for the master, send nothing.",
	Needs: []engine.Fault{engine.Records, engine.Shares, engine.Items, engine.Requests},
	Check: func(t *engine.Trial) {
		cs := t.Clients(6)
		c := cs[5]
		pool := task.NewPool(c, t.Name, options(t, c))
		f := newFactory(t)
		for i, w := range cs[:5] {
			f.works(w)
			stands(t, c.In(t.Name+"-workers"), i+1)
			stands(t, c.In(t.Name+"-master"), i+1)
		}
		gives := func(value string, w *engine.Client) (id uint64) {
			id, err := pool.Submit(t.Ctx, value)
			t.Want("Submit", err)
			t.Eventually(t.Crash(), w.Name+" runs task "+value, func() bool {
				_, who := f.newest(value)
				return who == w.Name
			})
			return id
		}
		ends := func(value string, id uint64) {
			f.opens(value)
			results(t, pool, id, "done "+value).Returns(t.Crash())
		}
		for _, w := range cs[:5] {
			ends("of "+w.Name, gives("of "+w.Name, w))
		}
		c.In(t.Name + "-todo").Shows(t.Soon())
		t.Pass(t.TTL/10, "until all waits have been set up")
		// They wait for their presence and its header, for the member in front, and for a task. Of
		// those who wait for a task the first to get one is who has waited longest.
		x := uint64(0)
		quiet(t, cs[3:5], 4, func() {
			x = gives("x", cs[0])
			y, z := gives("y", cs[1]), gives("z", cs[2])
			ends("y", y)
			t.Pass(t.TTL/20, "in which workers that have nothing to do might be woken")
			ends("z", z)
			t.Pass(t.TTL/20, "in which workers that have nothing to do might be woken")
		})
		busy := map[string]uint64{"x": x}
		for _, i := range []int{3, 4, 1} {
			value := "for " + cs[i].Name
			busy[value] = gives(value, cs[i])
		}
		quiet(t, []*engine.Client{cs[1], cs[3], cs[4]}, 3, func() {
			for i := range 10 {
				value := strconv.Itoa(i)
				ends(value, gives(value, cs[2]))
			}
		})
		for value, id := range busy {
			ends(value, id)
		}
		c.In(t.Name + "-todo").Shows(t.Soon())
	},
}}

// results has a result be waited for in the background, which must be this one.
func results(t *engine.Trial, p *task.Pool, id uint64, want string) *engine.Call {
	return t.Go(fmt.Sprintf("Result of %d", id), func() error {
		got, err := p.Result(t.Ctx, id)
		if err == nil && got != want {
			err = fmt.Errorf("it is %q, want %q", got, want)
		}
		return err
	})
}

// gives gives the tasks "0", "1" and so on, and returns their IDs.
func submits(t *engine.Trial, p *task.Pool, n int) (ids []uint64) {
	for i := range n {
		id, err := p.Submit(t.Ctx, strconv.Itoa(i))
		t.Want("Submit", err)
		ids = append(ids, id)
	}
	return ids
}

// A factory is where workers run the tasks of a rule. A run ends when the rule says so.
type factory struct {
	t *engine.Trial

	mu    sync.Mutex
	gates map[string]chan struct{} // of each task: closed when its runs may end
	runs  map[string]*task.Task    // the newest run of each task
	by    map[string]string        // whose that is
	ended map[*task.Task]bool      // by an operator: they may not know at once
}

func newFactory(t *engine.Trial) *factory {
	return &factory{
		t: t, gates: make(map[string]chan struct{}),
		runs: make(map[string]*task.Task), by: make(map[string]string), ended: make(map[*task.Task]bool),
	}
}

// works makes the client a worker in the background.
func (f *factory) works(c *engine.Client) {
	p := task.NewPool(c, f.t.Name, options(f.t, c))
	f.t.Go(c.Name+": Work", func() error {
		return p.Work(f.t.Ctx, func(ctx context.Context, run *task.Task) (string, error) {
			f.begins(c.Name, run)
			select {
			case <-f.gate(run.Value):
				return "done " + run.Value, nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		})
	})
}

func (f *factory) gate(value string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gates[value] == nil {
		f.gates[value] = make(chan struct{})
	}
	return f.gates[value]
}

// opens has all runs of the task end, those to come too.
func (f *factory) opens(value string) { close(f.gate(value)) }

// closes has the runs of all tasks that submits has submitted end. Each then has its result, and no
// task is in line.
func (f *factory) closes(p *task.Pool, c *engine.Client, ids []uint64) {
	for i := range ids {
		f.opens(strconv.Itoa(i))
	}
	for i, id := range ids {
		results(f.t, p, id, "done "+strconv.Itoa(i)).Returns(f.t.Crash())
	}
	c.In(f.t.Name + "-todo").Shows(f.t.Soon())
}

// begins checks that nobody else runs the task, and may go on.
func (f *factory) begins(who string, run *task.Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.t.Log(who, "runs task %s for the time %d", run.Value, run.Run)
	if last := f.runs[run.Value]; last != nil && !f.ended[last] && last.Check() == nil && run.Check() == nil {
		f.t.Fatalf("%s and %s run task %s", f.by[run.Value], who, run.Value)
	}
	f.runs[run.Value], f.by[run.Value] = run, who
}

// newest returns the newest run of the task, and whose that is; nil if it was not run.
func (f *factory) newest(value string) (run *task.Task, who string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[value], f.by[value]
}

// ends says that an operator is about to end the newest run of the task, and returns that.
func (f *factory) ends(value string) *task.Task {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[value]
	f.ended[r] = true
	return r
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
