package recipes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/task"
)

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

// submits submits the tasks "0", "1" and so on, and returns their IDs.
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
		f.t.Never("%s and %s run task %s", f.by[run.Value], who, run.Value)
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

var poolRules = []engine.Rule{{
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
		t.Remove(old.Term().Member())
		next := engine.Await(t, begun, t.Crash()+t.Recheck(), "the task has not begun again")
		if next.Run <= old.Run {
			t.Never("run %d comes after run %d", next.Run, old.Run)
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
	ID: "Task.workers-cut", Title: "a worker that is cut off stops before another runs its task",
	Text:  "Of three workers two run a task each, and the one of them that is not the master is cut off. The third runs its task after a crash, with a larger Run, and not before the context of the first one's run has ended. When the first is healed it is present again after recovery. Then the runs end: each task has its result, and no task is in line.",
	Needs: []engine.Fault{engine.Records, engine.Shares, engine.Items, engine.Deadlines, engine.Cut},
	Check: func(t *engine.Trial) {
		c := t.Client()
		pool := task.NewPool(c, t.Name, options(t, c))
		f, cs := newFactory(t), t.Clients(3)
		for i, w := range cs {
			f.works(w)
			stands(t, c.In(t.Name+"-workers"), i+1)
			stands(t, c.In(t.Name+"-master"), i+1)
		}
		ids := submits(t, pool, 2)
		var value string
		t.Eventually(t.Crash(), "the first two workers run a task", func() bool { // the first to join is the master
			value = f.task(cs[1].Name)
			return value != "" && f.task(cs[0].Name) != ""
		})
		old, _ := f.newest(value)
		heal := cs[1].Inject(engine.Cut)
		t.Eventually(t.Crash()+t.Recheck(), "the third runs the task", func() bool {
			now, who := f.newest(value)
			return who == cs[2].Name && now.Run > old.Run && now.Check() == nil
		})
		if old.Context().Err() == nil {
			t.Fatalf("%s runs task %s, and the context of %s, who is cut off, has not ended", cs[2].Name, value, cs[1].Name)
		}
		heal()
		t.Eventually(t.Recovery(), "who was cut off is present again", func() bool { return len(c.In(t.Name+"-workers").Members()) == 3 })
		f.closes(pool, c, ids)
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
	Text:  "The answer is lost to the first request by which each of two workers stands in a line. They run a task, and each of them begins another: the answer is lost to the request by which the second is submitted, to that by which the master assigns it, and to those by which the results of both are stored. Submit returns nil, and the task is in line once. Each step is done within the time of two crashes; each task was run once, and in the end none is in line.",
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
		}).Returns(2 * t.Crash())
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
		t.Settles(cs...)
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
