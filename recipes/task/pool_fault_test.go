package task_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/task"
)

// A task of a worker that dies goes to another, but only after the worker's presence has gone;
// the next master goes on from what is stored.
func TestWorkerAndMasterDie(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr := newCrew(t, c)
		a, b, d := cr.works("a"), cr.works("b"), cr.works("d")
		var ids []uint64
		for i := range 4 {
			ids = append(ids, cr.submit(fmt.Sprint(i)))
		}
		cr.expect(map[string]string{"0": "a", "1": "b", "2": "d"})
		time.Sleep(time.Second / 2)
		a.b.Kill() // the master too
		time.Sleep(time.Second)
		if busy := cr.busy(); len(busy) != 0 {
			t.Errorf("before the session of a has ended: %v", busy)
		}
		time.Sleep(bubble.TTL - time.Second)
		cr.expect(map[string]string{"0": "b", "3": "d"})
		b.b.Kill()
		synctest.Wait()
		e := cr.works("e")
		for i, id := range ids {
			cr.result(id, fmt.Sprint("done ", i))
		}
		cr.mu.Lock()
		if cr.runs["0"] != 3 || cr.runs["3"] != 1 {
			t.Errorf("the runs are %v", cr.runs)
		}
		cr.mu.Unlock()
		synctest.Wait()
		names := bubble.Must[[]string](t)(bubble.Must[backend.Session](t)(cr.client.Session(t.Context())).List(t.Context(), "jobs-assigned"))
		if len(names) != 2 {
			t.Errorf("the assignments are %v, and two workers are left", names)
		}
		bubble.Want(t, <-a.err, backend.ErrClosed)
		bubble.Want(t, <-b.err, backend.ErrClosed)
		d.ends(t)
		e.ends(t)
	})
}

// A deafSession hears nothing of its assignments until it is to.
type deafSession struct {
	backend.Session
	hears <-chan struct{}
}

func (s deafSession) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	if strings.HasPrefix(name, "jobs-assigned/") {
		select {
		case <-s.hears:
		case <-ctx.Done():
			return backend.Record{}, context.Cause(ctx)
		}
	}
	return s.Session.Watch(ctx, name, after)
}

// A task whose assignment is deleted before its worker has read it is run by that worker, once. So is one whose worker has read it.
func TestAssignmentIsDeleted(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr, hears := newCrew(t, c), make(chan struct{})
		a := cr.works("a")
		b := cr.worksOn("b", func(s backend.Session) backend.Session { return deafSession{s, hears} })
		cr.submit("0")
		id := cr.submit("1")
		if busy := cr.busy(); !maps.Equal(busy, map[string]string{"0": "a"}) {
			t.Errorf("the workers do %v", busy)
		}
		client := bubble.Must[backend.Session](t)(cr.client.Session(t.Context()))
		for _, m := range c.Members("jobs-workers") {
			name := fmt.Sprintf("jobs-assigned/%d", m.Position)
			if c.Record(name).Version == backend.Absent {
				t.Errorf("there is no %s", name)
			}
			ok(t, client.Delete(t.Context(), name, nil))
		}
		close(hears)
		time.Sleep(3 * bubble.TTL)
		cr.mu.Lock()
		if !slices.Equal(cr.begun, []string{"0", "1"}) {
			t.Errorf("begun were %v", cr.begun)
		}
		cr.mu.Unlock()
		if names := bubble.Must[task.PoolStatus](t)(cr.pool.Status(t.Context())).Tasks; len(names) > 0 {
			t.Fatalf("%v are not done", names)
		}
		cr.result(id, "done 1")
		a.ends(t)
		b.ends(t)
	})
}

// While no worker is free, the task of one that has died keeps the number of its run.
func TestRunIsKept(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr := newCrew(t, c)
		b, a := cr.works("b"), cr.works("a") // b is the master
		time.Sleep(time.Second / 2)          // so that no task ends when the session of a does
		cr.submit("first")
		id := cr.submit("x")
		for i := range 15 {
			cr.submit(fmt.Sprint(i))
		}
		cr.expect(map[string]string{"first": "b", "x": "a"})
		a.b.Kill()
		cr.result(id, "done x")
		cr.mu.Lock()
		if cr.runs["x"] != 2 {
			t.Errorf("the last run of x was its number %d", cr.runs["x"])
		}
		cr.mu.Unlock()
		bubble.Want(t, <-a.err, backend.ErrClosed)
		b.ends(t)
	})
}

// A worker that was replaced can neither store a result nor remove the task.
func TestReplacedWorker(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr, ctx := newCrew(t, c), t.Context()
		begun := make(chan *task.Task, 1)
		oldB := bubble.Client(t, c, "old")
		old, stop := context.WithCancelCause(ctx)
		failed := make(chan error, 1)
		go func() {
			failed <- task.NewPool(oldB, "jobs", nil).Work(old, func(ctx context.Context, t *task.Task) (string, error) {
				begun <- t
				time.Sleep(time.Minute)
				return "of the one that was replaced", nil
			})
		}()
		synctest.Wait()
		id := cr.submit("x")
		run := <-begun
		next := cr.works("next")
		c.Remove("jobs-workers", run.Term().Member().Key)
		time.Sleep(time.Second / 2)
		cr.expect(map[string]string{"x": "next"})
		cr.result(id, "done x")
		_, err := run.Put(ctx, "jobs-results/0", nil, backend.Any)
		bubble.Want(t, err, backend.ErrNotMember)
		time.Sleep(2 * time.Minute)
		cr.result(id, "done x")
		stop(errEnough)
		bubble.Want(t, <-failed, errEnough)
		next.ends(t)
	})
}

// A worker that dies after it has stored the result and before it has removed the task has done it
// once; nor does it matter that the result is forgotten in between.
func TestDeathBeforeRemove(t *testing.T) {
	for _, forget := range []string{"", "before it is given to another", "when it is given to another"} {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			cr := newCrew(t, c)
			a := cr.works("a")
			id := cr.submit("x")
			synctest.Wait()
			// What a sends arrives, and it hears of nothing that comes after its result.
			a.b.Delay(0, time.Second)
			cr.result(id, "done x")
			a.b.Kill()
			if n := len(c.Members("jobs-todo")); n != 1 {
				t.Fatalf("%d tasks are left, want one that has a result", n)
			}
			if forget == "before it is given to another" {
				ok(t, cr.pool.Forget(t.Context(), id))
			}
			b := cr.worksOn("b", func(s backend.Session) backend.Session {
				return hooked{s, func() {
					if forget == "when it is given to another" && cr.assigned() {
						ok(t, cr.pool.Forget(t.Context(), id))
					}
				}}
			})
			y := cr.submit("y")
			time.Sleep(3 * bubble.TTL)
			cr.result(y, "done y")
			if forget == "" {
				cr.result(id, "done x")
			}
			cr.mu.Lock()
			if !slices.Equal(cr.begun, []string{"x", "y"}) {
				t.Errorf("forgotten %q: the tasks that began are %v", forget, cr.begun)
			}
			cr.mu.Unlock()
			if n := len(c.Members("jobs-todo")); n != 0 {
				t.Errorf("%d tasks are left", n)
			}
			bubble.Want(t, <-a.err, backend.ErrClosed)
			b.ends(t)
		})
	}
}

// A hooked session calls refresh before each Refresh.
type hooked struct {
	backend.Session
	refresh func()
}

func (s hooked) Refresh(ctx context.Context) error {
	s.refresh()
	return s.Session.Refresh(ctx)
}

// assigned reports whether a task is given to a worker for the second time.
func (cr *crew) assigned() bool {
	st, err := cr.pool.Status(cr.t.Context())
	return err == nil && slices.ContainsFunc(st.Tasks, func(p task.PendingStatus) bool { return p.Run > 1 })
}

// A lossy session loses the answer to its first write of a result, and calls lost then.
type lossy struct {
	backend.Session
	lost func() bool
}

func (s lossy) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	v, err := s.Session.Put(ctx, name, value, cond)
	if strings.HasPrefix(name, "jobs-results/") && err == nil && s.lost() {
		err = backend.ErrUnavailable
	}
	return v, err
}

// A result that was forgotten before the worker knows that it has stored it does not come back.
func TestForgottenStaysForgotten(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr := newCrew(t, c)
		var id atomic.Uint64
		once := true
		a := cr.worksOn("a", func(s backend.Session) backend.Session {
			return lossy{s, func() bool {
				was := once
				if once = false; was {
					ok(t, cr.pool.Forget(t.Context(), id.Load()))
				}
				return was
			}}
		})
		for _, value := range []string{"x", "y"} {
			one, err := cr.pool.SubmitAs(t.Context(), "name", value)
			if ok(t, err); id.Swap(one) == one {
				t.Errorf("a task of that name is still known, as %d", one)
			}
			time.Sleep(bubble.TTL)
		}
		cr.result(id.Load(), "done y")
		a.ends(t)
	})
}

// A worker that ends gives back what it has not finished.
func TestWorkerLeaves(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr := newCrew(t, c)
		a := cr.works("a")
		id := cr.submit("x")
		b := cr.works("b")
		time.Sleep(time.Second / 2)
		a.ends(t)
		cr.expect(map[string]string{"x": "b"})
		cr.result(id, "done x")
		// While nobody works, tasks wait.
		b.ends(t)
		id = cr.submit("y")
		time.Sleep(time.Minute)
		a = cr.works("a")
		cr.result(id, "done y")
		a.ends(t)
	})
}

// Workers and masters crash, are cut off and lose answers: no task is run by two at once, and each
// has its result.
func TestPoolThroughFaults(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr := newCrew(t, c)
		var ids []uint64
		workers := make([]*worker, 5)
		generation := 0
		hire := func(i int) {
			generation++
			workers[i] = cr.works(fmt.Sprint("w", i, "-", generation))
		}
		for i := range workers {
			hire(i)
		}
		for i := range 80 {
			ids = append(ids, cr.submit(fmt.Sprint("t", i)))
			w := workers[i%len(workers)]
			switch i % 8 {
			case 0:
				w.b.Cut()
			case 1:
				w.b.Expire()
			case 2:
				w.b.LoseAnswer(memory.OpPut)
			case 3:
				w.b.LoseAnswer(memory.OpRemove)
			case 4:
				w.b.LoseRequest(memory.OpPut)
			case 5:
				w.b.Kill()
				synctest.Wait()
				bubble.Want(t, <-w.err, backend.ErrClosed)
				hire(i % len(workers))
			case 6:
				w.b.CutAnswers()
			case 7:
				w.b.LoseAnswer()
			}
			time.Sleep(bubble.TTL / 4)
			if i%3 == 0 {
				for _, w := range workers {
					w.b.Heal()
				}
			}
		}
		for _, w := range workers {
			w.b.Heal()
		}
		for i, id := range ids {
			cr.result(id, fmt.Sprint("done t", i))
		}
		time.Sleep(time.Minute)
		if st := bubble.Must[task.PoolStatus](t)(cr.pool.Status(t.Context())); len(st.Tasks) != 0 || len(st.Workers) != len(workers) {
			t.Errorf("in the end: %+v", st)
		}
		cr.mu.Lock()
		again := 0
		for _, n := range cr.runs {
			again += int(n) - 1
		}
		t.Logf("%d tasks, assigned again %d times", len(ids), again)
		if again == 0 {
			t.Error("no task was assigned twice: the faults have hit nobody")
		}
		cr.mu.Unlock()
		for _, w := range workers {
			w.ends(t)
		}
	})
}

// A worker whose assignment somebody deletes runs nothing for it.
func TestDeletedAssignment(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr := newCrew(t, c)
		w := cr.works("a")
		id := bubble.Must[uint64](t)(cr.pool.Submit(t.Context(), "one"))
		if _, err := cr.pool.Result(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		s := bubble.Must[backend.Session](t)(cr.client.Session(t.Context()))
		for _, name := range bubble.Must[[]string](t)(s.List(t.Context(), "jobs-assigned")) {
			if err := s.Delete(t.Context(), name, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		w.ends(t)
		if !slices.Equal(cr.begun, []string{"one"}) {
			t.Errorf("it has run %q, want the one that was submitted", cr.begun)
		}
	})
}

// A lost answer does not put a task in line twice, also where a worker has run it meanwhile; and a task that the caller
// has named can be submitted again.
func TestSubmitAgain(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr, ctx := newCrew(t, c), t.Context()
		cr.client.LoseAnswer(memory.OpAppend)
		one := bubble.Must[uint64](t)(cr.pool.Submit(ctx, "one"))
		cr.client.LoseRequest(memory.OpAppend)
		two := bubble.Must[uint64](t)(cr.pool.SubmitAs(ctx, "order-2", "two"))
		if again := bubble.Must[uint64](t)(cr.pool.SubmitAs(ctx, "order-2", "two")); again != two {
			t.Errorf("what is in line as %d was submitted again as %d", two, again)
		}
		if n := len(c.Members("jobs-todo")); n != 2 {
			t.Fatalf("%d tasks are in line, want 2", n)
		}
		st := bubble.Must[task.PoolStatus](t)(cr.pool.Status(ctx))
		if len(st.Tasks) != 2 || st.Tasks[0].ID != one || st.Tasks[0].Value != "one" || st.Tasks[1].Name != "order-2" || st.Tasks[1].Value != "two" {
			t.Errorf("the status is %+v", st.Tasks)
		}
		w := cr.works("a")
		for _, id := range []uint64{one, two} {
			if _, err := cr.pool.Result(ctx, id); err != nil {
				t.Fatal(err)
			}
		}
		if again := bubble.Must[uint64](t)(cr.pool.SubmitAs(ctx, "order-2", "two")); again != two {
			t.Errorf("what has a result as %d was submitted again as %d", two, again)
		}
		time.Sleep(10 * time.Second)
		w.ends(t)
		if !slices.Equal(cr.begun, []string{"one", "two"}) {
			t.Errorf("these were begun: %v", cr.begun)
		}
		for _, name := range []string{"", "a/b", "a\nb", strings.Repeat("x", 65)} {
			_, err := cr.pool.SubmitAs(ctx, name, "x")
			bubble.Want(t, err, backend.ErrInvalid)
		}
		_, err := cr.pool.Submit(ctx, strings.Repeat("x", task.MaxValue+1))
		bubble.Want(t, err, backend.ErrInvalid)
		bubble.Must[uint64](t)(cr.pool.Submit(ctx, strings.Repeat("x", task.MaxValue)))
	})
}

// A slow session sees where an item stands only when the item has gone, as may happen on ZooKeeper.
type slow struct {
	backend.Session
	gone    func(backend.Member)
	refresh func() error
}

func (s slow) Refresh(ctx context.Context) error {
	if err := s.refresh(); err != nil {
		return err
	}
	return s.Session.Refresh(ctx)
}

func (s slow) Append(ctx context.Context, line, value string) (backend.Member, error) {
	m, err := s.Session.Append(ctx, line, value)
	if err == nil {
		err = s.Gone(ctx, m)
	}
	s.gone(m)
	m.Position = 0
	return m, err
}

// The ID of a task is known also if a worker has run it before its client could see where it stands.
func TestRunBeforeItsIDIsKnown(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr, ctx := newCrew(t, c), t.Context()
		a := cr.works("a")
		forget, lose, forgets := false, false, uint64(0)
		p := task.NewPool(view.Of(cr.client, func(s backend.Session) backend.Session {
			return slow{s, func(m backend.Member) {
				if forget {
					ok(t, cr.pool.Forget(ctx, m.Position))
				}
				forgets = m.Position
			}, func() error {
				if !lose {
					return nil
				}
				lose = false
				ok(t, cr.pool.Forget(ctx, forgets))
				return backend.ErrUnavailable
			}}
		}), "jobs", nil)
		for name, submit := range map[string]func() (uint64, error){
			"x": func() (uint64, error) { return p.Submit(ctx, "x") },
			"y": func() (uint64, error) { return p.SubmitAs(ctx, "y", "y") },
		} {
			if id := bubble.Must[uint64](t)(submit()); id == 0 {
				t.Errorf("the ID of %s is 0", name)
			} else {
				cr.result(id, "done "+name)
			}
		}
		forget = true
		if id, err := p.Submit(ctx, "z"); err == nil {
			t.Errorf("the ID of a task whose result was forgotten is %d", id)
		}
		forget, lose = false, true
		if id, err := p.Submit(ctx, "forgotten meanwhile"); err == nil || lose {
			t.Errorf("the ID of a task whose result was forgotten while the coordinator could not be reached is %d", id)
		}
		time.Sleep(time.Minute) // all that is in line is run
		a.ends(t)
		slices.Sort(cr.begun)
		if want := []string{"forgotten meanwhile", "x", "y", "z"}; !slices.Equal(cr.begun, want) {
			t.Errorf("these were run: %v, want each once", cr.begun)
		}
	})
}

// A refusing session may not write assignments.
type refusing struct{ backend.Session }

func (s refusing) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if strings.HasPrefix(name, "jobs-assigned/") {
		return 0, backend.ErrDenied
	}
	return s.Session.Put(ctx, name, value, cond)
}

// A master that may not assign tasks ends its worker with that error, which is not that of a context: nobody has cancelled one.
func TestMasterIsRefused(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr := newCrew(t, c)
		a := cr.worksOn("a", func(s backend.Session) backend.Session { return refusing{s} })
		cr.submit("x")
		err := <-a.err
		bubble.Want(t, err, backend.ErrDenied)
		if errors.Is(err, context.Canceled) {
			t.Errorf("nobody has cancelled anything, and Work has ended with: %v", err)
		}
	})
}
