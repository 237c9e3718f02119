package task_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/record"
	"github.com/succession-dev/succession/recipes/task"
)

// A crew is the workers of a test. Each task takes a second.
type crew struct {
	t      *testing.T
	c      *memory.Coordinator
	client *memory.Backend
	pool   *task.Pool // of the client

	mu    sync.Mutex
	now   map[string]*task.Task // the newest run of each task, while it goes on
	by    map[string]string     // whose that is
	begun []string              // the tasks in the order in which they began
	runs  map[string]uint64     // the number of the newest run of each task
}

func newCrew(t *testing.T, c *memory.Coordinator) *crew {
	b := bubble.Client(t, c, "client")
	return &crew{t: t, c: c, client: b, pool: task.NewPool(b, "jobs", nil), now: make(map[string]*task.Task), by: make(map[string]string), runs: make(map[string]uint64)}
}

type worker struct {
	b    *memory.Backend
	stop func()
	err  chan error
}

func (cr *crew) works(id string) *worker {
	return cr.worksOn(id, func(s backend.Session) backend.Session { return s })
}

func (cr *crew) worksOn(id string, wrap func(backend.Session) backend.Session) *worker {
	w := &worker{b: bubble.Client(cr.t, cr.c, id), err: make(chan error, 1)}
	ctx, cancel := context.WithCancelCause(cr.t.Context())
	w.stop = func() { cancel(errEnough) }
	p := task.NewPool(view.Of(w.b, wrap), "jobs", &elect.Options{ID: id})
	go func() {
		w.err <- p.Work(ctx, func(ctx context.Context, t *task.Task) (string, error) { return cr.run(ctx, id, t) })
	}()
	synctest.Wait()
	return w
}

func (w *worker) ends(t *testing.T) {
	t.Helper()
	w.stop()
	bubble.Want(t, <-w.err, errEnough)
}

func (cr *crew) run(ctx context.Context, id string, t *task.Task) (string, error) {
	cr.mu.Lock()
	if other := cr.now[t.Value]; other != nil && other.Check() == nil { // it may just be ending
		cr.t.Errorf("%s and %s run %s", cr.by[t.Value], id, t.Value)
	}
	if t.Run <= cr.runs[t.Value] {
		cr.t.Errorf("run %d of %s, after %d", t.Run, t.Value, cr.runs[t.Value])
	}
	cr.now[t.Value], cr.by[t.Value], cr.runs[t.Value] = t, id, t.Run
	cr.begun = append(cr.begun, t.Value)
	cr.mu.Unlock()
	defer func() {
		cr.mu.Lock()
		defer cr.mu.Unlock()
		if cr.now[t.Value] == t {
			delete(cr.now, t.Value)
			delete(cr.by, t.Value)
		}
	}()
	select {
	case <-ctx.Done():
		return "", nil // which is dropped
	case <-time.After(time.Second):
	}
	if reason, bad := strings.CutPrefix(t.Value, "bad "); bad {
		return "", errors.New(reason)
	}
	return "done " + t.Value, nil
}

func (cr *crew) submit(value string) uint64 {
	cr.t.Helper()
	return bubble.Must[uint64](cr.t)(cr.pool.Submit(cr.t.Context(), value))
}

// busy returns who runs each task.
func (cr *crew) busy() map[string]string {
	synctest.Wait()
	cr.mu.Lock()
	defer cr.mu.Unlock()
	return maps.Clone(cr.by)
}

func (cr *crew) expect(by map[string]string) {
	cr.t.Helper()
	if busy := cr.busy(); !maps.Equal(busy, by) {
		cr.t.Errorf("the workers do %v, want %v", busy, by)
	}
	known := make(map[string]string)
	for _, t := range bubble.Must[task.PoolStatus](cr.t)(cr.pool.Status(cr.t.Context())).Tasks {
		if t.Worker != "" {
			known[t.Value] = t.Worker
		}
	}
	if !maps.Equal(known, by) {
		cr.t.Errorf("Status says %v, want %v", known, by)
	}
}

func (cr *crew) result(id uint64, text string) {
	cr.t.Helper()
	if got := bubble.Must[string](cr.t)(cr.pool.Result(cr.t.Context(), id)); got != text {
		cr.t.Errorf("the result of %d is %q, want %q", id, got, text)
	}
}

func TestPool(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr, ctx := newCrew(t, c), t.Context()
		var ids []uint64
		for i := range 6 {
			ids = append(ids, cr.submit(fmt.Sprint(i)))
		}
		bad := cr.submit("bad luck")
		if !slices.IsSorted(ids) {
			t.Errorf("the IDs are %v", ids)
		}
		st := bubble.Must[task.PoolStatus](t)(cr.pool.Status(ctx))
		if len(st.Tasks) != 7 || st.Tasks[6] != (task.PendingStatus{ID: bad, Name: st.Tasks[6].Name, Value: "bad luck"}) || st.Master != "" {
			t.Errorf("without workers: %+v", st)
		}
		a, b := cr.works("a"), cr.works("b")
		cr.expect(map[string]string{"0": "a", "1": "b"})
		time.Sleep(1500 * time.Millisecond)
		if next := slices.Sorted(maps.Keys(cr.busy())); !slices.Equal(next, []string{"2", "3"}) {
			t.Errorf("after the first two tasks the workers do %v", next)
		}
		for i, id := range ids {
			cr.result(id, fmt.Sprint("done ", i))
		}
		_, err := cr.pool.Result(ctx, bad)
		bubble.Want(t, err, task.ErrFailed)
		if !strings.Contains(err.Error(), "luck") {
			t.Error(err)
		}
		synctest.Wait()
		for i, value := range cr.begun { // two begin at the same time
			if value != "bad luck" && value != fmt.Sprint(i) && value != fmt.Sprint(i^1) {
				t.Errorf("the tasks began in the order %v", cr.begun)
				break
			}
		}
		st = bubble.Must[task.PoolStatus](t)(cr.pool.Status(ctx))
		if len(st.Tasks) != 0 || st.Master != "a" || !slices.Equal(st.Workers, []string{"a", "b"}) {
			t.Errorf("in the end: %+v", st)
		}
		a.ends(t)
		b.ends(t)
		for _, line := range []string{"jobs-todo", "jobs-workers", "jobs-master"} {
			if n := len(c.Members(line)); n != 0 {
				t.Errorf("%d stand in %s", n, line)
			}
		}
		for _, id := range append(ids, bad, bad, 12345) {
			ok(t, cr.pool.Forget(ctx, id))
			if r := c.Record(fmt.Sprint("jobs-results/", id)); r.Version != backend.Absent {
				t.Errorf("after Forget: %s", r.Value)
			}
		}
	})
}

// A task that fails with an error without text has failed.
func TestErrorWithoutText(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		p := task.NewPool(bubble.Client(t, c, "a"), "jobs", nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- p.Work(ctx, func(context.Context, *task.Task) (string, error) { return "", errors.New("") })
		}()
		_, err := p.Result(ctx, bubble.Must[uint64](t)(p.Submit(ctx, "letter")))
		bubble.Want(t, err, task.ErrFailed)
		cancel(errEnough)
		bubble.Want(t, <-ended, errEnough)
	})
}

// What a task costs from its assignment to its removal does not depend on how many wait, nor on how
// many work; and it wakes its worker and the master alone.
func TestCostOfPool(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr := newCrew(t, c)
		var crew []*worker
		for i := range 20 {
			crew = append(crew, cr.works(fmt.Sprint("w", i)))
		}
		for i := range 200 {
			cr.submit(fmt.Sprint(i))
		}
		for _, round := range []string{"while 180 wait", "while 160 wait"} {
			time.Sleep(500 * time.Millisecond)
			requests, wakeups := c.Requests(), c.Wakeups()
			time.Sleep(time.Second) // in which 20 tasks end and 20 begin
			sent, woken := c.Requests().Since(requests), c.Wakeups().Since(wakeups)
			t.Logf("20 tasks %s: %v", round, sent)
			for op, most := range map[memory.Op]int{memory.OpPut: 40, memory.OpRemove: 20, memory.OpWatch: 20, memory.OpWatchLine: 20} {
				if n := sent.Total(op); n > most {
					t.Errorf("20 tasks %s: %d requests %q, want at most %d", round, n, op, most)
				}
			}
			if n := sent.Total() - sent.Total(memory.OpHeartbeat, memory.OpPut, memory.OpRemove, memory.OpWatch, memory.OpWatchLine); n > 0 {
				t.Errorf("20 tasks %s: %d other requests: %v", round, n, sent)
			}
			if n := woken.Total(); n > 40 {
				t.Errorf("20 tasks %s have woken %d: %v", round, n, woken)
			}
			time.Sleep(500 * time.Millisecond)
		}
		for _, w := range crew {
			w.ends(t)
		}
	})
}

// A task wakes its worker and the master alone, and its end the master and who waits for the result. An
// exit also wakes who stands just behind. All others send nothing.
func TestWokenInAPool(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr := newCrew(t, c)
		var crew []*worker
		for i := range 8 {
			crew = append(crew, cr.works(fmt.Sprint("w", i))) // w0 is the master
			cr.submit(fmt.Sprint(i))
		}
		time.Sleep(2 * time.Second) // each of them has had a task, and w0 has waited longest
		var busy []string           // who does something by itself
		wakes := func(what string, f func(), want ...string) {
			t.Helper()
			woken, requests := c.Wakeups(), c.Requests()
			f()
			synctest.Wait()
			var got []string
			for s := range c.Wakeups().Since(woken) {
				if !slices.Contains(got, s.Client) {
					got = append(got, s.Client)
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s has woken %v, want %v", what, got, want)
			}
			for s, n := range c.Requests().Since(requests) {
				if s.Op != memory.OpHeartbeat && strings.HasPrefix(s.Client, "w") && !slices.Contains(append(busy, want...), s.Client) {
					t.Errorf("%s has had %s send %d requests %q", what, s.Client, n, s.Op)
				}
			}
		}
		wakes("a task for the master", func() { cr.submit("x") }, "w0")
		wakes("a task", func() { cr.submit("y") }, "w0", "w1")
		wakes("another task", func() { cr.submit("z") }, "w0", "w2")
		time.Sleep(500 * time.Millisecond)
		var last uint64
		wakes("one more", func() { last = cr.submit("last") }, "w0", "w3")
		busy = []string{"w1", "w2"}
		wakes("the end of three tasks", func() { time.Sleep(700 * time.Millisecond) }, "w0")
		busy = []string{"w3"}
		wakes("the end of one for whose result somebody waits", func() { cr.result(last, "done last") }, "client", "w0")
		busy = nil
		wakes("a join", func() { crew = append(crew, cr.works("joins")) }, "w0")
		wakes("an exit", func() { crew[4].ends(t) }, "w0", "w4", "w5") // who leaves has watched its own place
		wakes("the exit of the master", func() { crew[0].ends(t) }, "w0", "w1")
		for _, i := range []int{1, 2, 3, 5, 6, 7, 8} {
			crew[i].ends(t)
		}
	})
}

func TestPoolArguments(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		b := bubble.Client(t, c, "a")
		fn := func(context.Context, *task.Task) (string, error) { return "", nil }
		for _, p := range []*task.Pool{task.NewPool(b, "no//name", nil), task.NewPool(b, strings.Repeat("x", 230), nil), task.NewPool(b, "jobs", &elect.Options{Margin: -1})} {
			_, err := p.Submit(ctx, "x")
			bubble.Want(t, err, backend.ErrInvalid)
			_, err = p.Result(ctx, 1)
			bubble.Want(t, err, backend.ErrInvalid)
			_, err = p.Status(ctx)
			bubble.Want(t, err, backend.ErrInvalid)
			bubble.Want(t, p.Forget(ctx, 1), backend.ErrInvalid)
			bubble.Want(t, p.Work(ctx, fn), backend.ErrInvalid)
		}
		p := task.NewPool(b, "jobs", nil)
		bubble.Want(t, p.Work(ctx, nil), backend.ErrInvalid)
		for _, value := range []string{"\xff", strings.Repeat("x", backend.MaxValue+1)} {
			_, err := p.Submit(ctx, value)
			bubble.Want(t, err, backend.ErrInvalid)
		}
		b.LoseAnswer(memory.OpAppend)
		bubble.Must[uint64](t)(p.Submit(ctx, "x"))
		if st := bubble.Must[task.PoolStatus](t)(p.Status(ctx)); len(st.Tasks) != 1 {
			t.Errorf("after a lost answer: %+v", st)
		}
	})
}

// A result that cannot be stored is a failure, and a damaged assignment is said.
func TestBadRecordsOfAPool(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr, ctx := newCrew(t, c), t.Context()
		b := bubble.Client(t, c, "a")
		failed := make(chan error, 1)
		go func() {
			failed <- task.NewPool(b, "jobs", nil).Work(ctx, func(_ context.Context, t *task.Task) (string, error) {
				return strings.Repeat(t.Value, backend.MaxRecord), nil
			})
		}()
		for _, value := range []string{"x", "\u00e9", "\\"} {
			_, err := cr.pool.Result(ctx, cr.submit(value))
			bubble.Want(t, err, task.ErrFailed)
			if !strings.Contains(err.Error(), "at most") {
				t.Error(err)
			}
		}
		w := c.Members("jobs-workers")[0]
		bubble.Must[backend.Version](t)(record.New(b, fmt.Sprint("jobs-assigned/", w.Position), record.Text()).Set(ctx, "?"))
		bubble.Want(t, <-failed, record.ErrDecode)
	})
}

func TestPoolWithoutAbilities(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := view.Of(bubble.Client(t, c, "a"), func(s backend.Session) backend.Session {
			return bubble.NoShares(bubble.NoItems(bubble.NoRecords(s)))
		})
		ctx, p := t.Context(), task.NewPool(b, "jobs", nil)
		_, submit := p.Submit(ctx, "x")
		_, status := p.Status(ctx)
		work := p.Work(ctx, func(context.Context, *task.Task) (string, error) { return "", nil })
		for _, err := range []error{submit, status, work} {
			bubble.Want(t, err, errors.ErrUnsupported)
			if !strings.Contains(err.Error(), "use ") {
				t.Errorf("%v does not say what to do", err)
			}
		}
	})
}
