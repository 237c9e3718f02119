package task_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/record"
	"github.com/succession-dev/succession/recipes/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A console whose server lags behind does what it is told, also where that seems to be done already.
func TestConsoleWhoseServerLags(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Lags(bubble.Client(t, c, "a"))
		mine, other := task.NewStandby(b, "bus", nil), task.NewStandby(bubble.Client(t, c, "b"), "bus", nil)
		is := func(state task.State, config string) {
			t.Helper()
			all, err := other.Status(t.Context())
			if ok(t, err); all[0].State != state || all[0].Config != config {
				t.Errorf("it is %+v; want %s, with the configuration %q", all[0], state, config)
			}
		}
		for _, call := range []struct {
			state        task.State
			config       string
			mine, others func() error
		}{
			{task.Started, "", func() error { return mine.Start(t.Context(), "x") }, func() error { return other.Stop(t.Context(), "x") }},
			{task.Stopped, "", func() error { return mine.Stop(t.Context(), "x") }, func() error { return other.Start(t.Context(), "x") }},
			{task.Started, "one", func() error { return mine.Configure(t.Context(), "x", "one") }, func() error { return other.Configure(t.Context(), "x", "two") }},
		} {
			ok(t, call.mine())
			ok(t, call.mine()) // reads what it has written
			ok(t, call.others())
			b.Lag()
			ok(t, call.mine())
			is(call.state, call.config)
			ok(t, mine.Start(t.Context(), "x"))
		}
	})
}

// errEnough is the cause with which tests end machines.
var errEnough = errors.New("enough")

// A floor is where the machines of a test work.
type floor struct {
	t       *testing.T
	c       *memory.Coordinator
	console *task.Standby

	mu   sync.Mutex
	runs map[string]*task.Run // of each task: the newest
	now  map[string]*task.Run // of each task: the newest, while it is running
	done map[string]uint64    // how far each task has come
}

func newFloor(t *testing.T, c *memory.Coordinator) *floor {
	return &floor{
		t: t, c: c, console: task.NewStandby(bubble.Client(t, c, "console"), "bus", nil),
		runs: make(map[string]*task.Run), now: make(map[string]*task.Run), done: make(map[string]uint64),
	}
}

// A machine is one Hot or Cold in the background.
type machine struct {
	b    *memory.Backend
	stop func()
	err  chan error
}

// stands begins a machine.
func (f *floor) stands(id string, stand func(s *task.Standby, ctx context.Context) error) *machine {
	m := &machine{b: bubble.Client(f.t, f.c, id), err: make(chan error, 1)}
	ctx, cancel := context.WithCancelCause(f.t.Context())
	m.stop = func() { cancel(errEnough) }
	s := task.NewStandby(m.b, "bus", &elect.Options{ID: id})
	go func() { m.err <- stand(s, ctx) }()
	synctest.Wait()
	return m
}

func (f *floor) hot(id, name string) *machine {
	return f.stands(id, func(s *task.Standby, ctx context.Context) error { return s.Hot(ctx, name, f.run) })
}

func (f *floor) cold(id string) *machine {
	return f.stands(id, func(s *task.Standby, ctx context.Context) error { return s.Cold(ctx, f.run) })
}

func (m *machine) ends(t *testing.T) {
	t.Helper()
	m.stop()
	bubble.Want(t, <-m.err, errEnough)
}

// run works one step each second until its context ends. It checks that it is alone.
func (f *floor) run(ctx context.Context, r *task.Run) error {
	f.mu.Lock()
	if other := f.now[r.Task]; other != nil && other.Check() == nil { // it may just be ending
		f.t.Errorf("two run %s", r.Task)
	}
	if last := f.runs[r.Task]; last != nil && r.Token() <= last.Token() {
		f.t.Errorf("%s has token %d after %d", r.Task, r.Token(), last.Token())
	}
	if r.Position() < f.done[r.Task] {
		f.t.Errorf("%s begins at %d, and %d is recorded", r.Task, r.Position(), f.done[r.Task])
	}
	f.runs[r.Task], f.now[r.Task] = r, r
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.now[r.Task] == r {
			delete(f.now, r.Task)
		}
	}()
	for at := r.Position(); ; at++ {
		if err := r.Commit(ctx, at); err != nil {
			<-ctx.Done()
			return err
		}
		f.mu.Lock()
		f.done[r.Task] = max(f.done[r.Task], at)
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// status returns how it stands with the task.
func (f *floor) status(name string) task.Status {
	f.t.Helper()
	for _, st := range bubble.Must[[]task.Status](f.t)(f.console.Status(f.t.Context())) {
		if st.Task == name {
			return st
		}
	}
	f.t.Fatalf("nothing is known of %s", name)
	return task.Status{}
}

// expect checks who runs the task.
func (f *floor) expect(when, name, id string) {
	f.t.Helper()
	synctest.Wait()
	if st := f.status(name); st.ID != id || st.Missing() != (st.State == task.Started && id == "") {
		f.t.Errorf("%s: %s is %+v, want %q to run it", when, name, st, id)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if running := f.now[name] != nil; running != (id != "") {
		f.t.Errorf("%s: somebody runs %s: %v", when, name, running)
	}
}

func TestHot(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		f, ctx := newFloor(t, c), t.Context()
		a, b, d := f.hot("a", "orders"), f.hot("b", "orders"), f.hot("d", "orders")
		ok(t, f.console.Stop(ctx, "orders"))
		f.expect("before the first Start", "orders", "")
		ok(t, f.console.Start(ctx, "orders"))
		f.expect("when it is started", "orders", "a")
		ok(t, f.console.Start(ctx, "orders"))
		const while = 3500 * time.Millisecond // three steps
		time.Sleep(while)
		st := f.status("orders")
		if st.Position != 3 || st.StandBy != 2 || time.Since(st.Since) != while || st.Token == 0 {
			t.Errorf("after three seconds: %+v", st)
		}
		a.ends(t)
		f.expect("when a has left", "orders", "b")
		b.b.Expire()
		f.expect("when b has lost its session", "orders", "d")
		time.Sleep(while)
		ok(t, f.console.Stop(ctx, "orders"))
		f.expect("when it is stopped", "orders", "")
		f.mu.Lock()
		bubble.Want(t, f.runs["orders"].Check(), task.ErrStopped)
		at := f.done["orders"]
		f.mu.Unlock()
		time.Sleep(time.Minute)
		if st := f.status("orders"); st.State != task.Stopped || st.StandBy != 2 || st.Position != at || at != 6 {
			t.Errorf("a minute after it was stopped, at %d: %+v", at, st)
		}
		ok(t, f.console.Start(ctx, "orders"))
		f.expect("when it is started again", "orders", "b")
		b.ends(t)
		d.ends(t)
		if st := f.status("orders"); !st.Missing() {
			t.Errorf("nobody is left, and it is %+v", st)
		}
	})
}

// What run says when Hot is told to end is not lost.
func TestHotToldToEnd(t *testing.T) {
	unsaved := errors.New("could not save")
	for _, says := range []error{nil, context.Canceled, unsaved} {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			f := newFloor(t, c)
			ctx, cancel := context.WithCancelCause(t.Context())
			a := f.stands("a", func(s *task.Standby, _ context.Context) error {
				return s.Hot(ctx, "orders", func(ctx context.Context, _ *task.Run) error {
					<-ctx.Done()
					return says
				})
			})
			ok(t, f.console.Start(t.Context(), "orders"))
			synctest.Wait()
			cancel(errors.New("shutdown"))
			if err := <-a.err; errors.Is(err, unsaved) != (says == unsaved) || !strings.Contains(err.Error(), "shutdown") {
				t.Errorf("after %v Hot returned %v", says, err)
			}
		})
	}
}

// nil finishes a task, and an error ends Hot; neither counts when the run has ended before.
func TestResultOfARun(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		f, ctx := newFloor(t, c), t.Context()
		results := make(chan error)
		var runs []uint64
		a := f.stands("a", func(s *task.Standby, ctx context.Context) error {
			return s.Hot(ctx, "orders", func(ctx context.Context, r *task.Run) error {
				runs = append(runs, r.Token())
				select {
				case err := <-results:
					return err
				case <-ctx.Done():
					return errors.New("dropped")
				}
			})
		})
		ok(t, f.console.Start(ctx, "orders"))
		synctest.Wait()
		a.b.LoseAnswer(memory.OpPut)
		results <- nil
		time.Sleep(time.Minute)
		if st := f.status("orders"); st.State != task.Finished || st.ID != "" || len(runs) != 1 {
			t.Errorf("it is %+v after runs %v", st, runs)
		}
		ok(t, f.console.Start(ctx, "orders"))
		synctest.Wait()
		a.b.Expire() // the error of this run is dropped
		synctest.Wait()
		ok(t, f.console.Stop(ctx, "orders")) // and that of this one
		synctest.Wait()
		ok(t, f.console.Start(ctx, "orders"))
		synctest.Wait()
		bad := errors.New("bad")
		results <- bad
		if err := <-a.err; err != bad {
			t.Errorf("Hot returns %v", err)
		}
		if n := len(c.Members("bus-run-orders")); n != 0 || len(runs) != 4 || !slices.IsSorted(runs) {
			t.Errorf("%d stand in line after runs %v", n, runs)
		}
		if st := f.status("orders"); !st.Missing() {
			t.Errorf("after an error it is %+v", st)
		}
	})
}

// Machines come and go, are cut off and lose answers: one at a time runs each task, positions
// grow, and in the end each task is run.
func TestStandbyThroughFaults(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		f, ctx := newFloor(t, c), t.Context()
		tasks := []string{"t0", "t1", "t2"}
		var machines []*machine
		for i, name := range tasks {
			ok(t, f.console.Start(ctx, name))
			machines = append(machines, f.cold(fmt.Sprint("cold", i)), f.hot(fmt.Sprint("hot", i), "t0"))
		}
		machines = append(machines, f.cold("spare"))
		for i := range 60 {
			b := machines[i%len(machines)].b
			switch i % 5 {
			case 0:
				b.Cut()
			case 1:
				b.Expire()
			case 2:
				b.LoseAnswer(memory.OpPut)
			case 3:
				b.LoseAnswer()
				b.LoseRequest()
			case 4:
				b.CutAnswers()
			}
			time.Sleep(bubble.TTL / 3)
			if i%4 == 0 {
				for _, m := range machines {
					m.b.Heal()
				}
			}
			if name := tasks[i%3]; i%11 == 0 {
				ok(t, f.console.Stop(ctx, name))
				time.Sleep(time.Second)
				ok(t, f.console.Start(ctx, name))
			}
		}
		for _, m := range machines {
			m.b.Heal()
		}
		time.Sleep(10 * bubble.TTL)
		for _, name := range tasks {
			f.mu.Lock()
			at := f.done[name]
			f.mu.Unlock()
			st := f.status(name)
			if st.Missing() || time.Since(st.Since) > time.Hour || st.Position < 60 {
				t.Errorf("in the end %+v, with %d done", st, at)
			}
		}
		for _, m := range machines {
			m.ends(t)
		}
	})
}

// What a run of a task costs.
func TestCostOfStandby(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		f, ctx := newFloor(t, c), t.Context()
		cost := func(what, id string, most int, f func()) {
			t.Helper()
			before := c.Requests()
			f()
			synctest.Wait()
			sent := c.Requests().Since(before)
			if n := sent.Of(id) - sent.Of(id, memory.OpHeartbeat); n > most {
				t.Errorf("%s costs %s %d requests, want at most %d: %v", what, id, n, most, sent)
			} else {
				t.Logf("%s costs %s %d requests: %v", what, id, n, sent)
			}
		}
		ok(t, f.console.Stop(ctx, "x"))
		cost("Start", "console", 3, func() { ok(t, f.console.Start(ctx, "x")) })
		cost("Stop", "console", 2, func() { ok(t, f.console.Stop(ctx, "x")) })
		ok(t, f.console.Start(ctx, "x"))
		var a, b *machine
		cost("to run a task", "a", 12, func() { a = f.hot("a", "x") })
		cost("to stand by", "b", 5, func() { b = f.hot("b", "x") })
		cost("a commit", "a", 1, func() { time.Sleep(time.Second) })
		cost("to take over", "b", 9, func() { a.ends(t) })
		cost("Status of one task", "console", 4, func() { f.status("x") })
		b.ends(t)
	})
}

func TestStandbyArguments(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, b := t.Context(), bubble.Client(t, c, "a")
		s := task.NewStandby(b, "bus", nil)
		for _, name := range []string{"", "a/b", "a b", "..", "x.fence", ".fence", strings.Repeat("x", 255)} {
			run := func(context.Context, *task.Run) error { return nil }
			for what, err := range map[string]error{"Start": s.Start(ctx, name), "Stop": s.Stop(ctx, name), "Hot": s.Hot(ctx, name, run)} {
				if !errors.Is(err, backend.ErrInvalid) {
					t.Errorf("%s of %q: %v", what, name, err)
				}
			}
		}
		bubble.Want(t, s.Hot(ctx, "x", nil), backend.ErrInvalid)
		bubble.Want(t, s.Cold(ctx, nil), backend.ErrInvalid)
		long := strings.Repeat("x", backend.MaxName-5) // too long for what stands beside it
		_, err := task.NewStandby(b, long, nil).Status(ctx)
		for what, err := range map[string]error{
			"Status": err, "Start": task.NewStandby(b, long, nil).Start(ctx, "x"),
			"Cold": task.NewStandby(b, long, nil).Cold(ctx, func(context.Context, *task.Run) error { return nil }),
		} {
			if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "of a standby") {
				t.Errorf("%s under a name that is too long: %v", what, err)
			}
		}
		withHistory := task.NewStandby(b, "bus", &elect.Options{History: 1})
		bubble.Want(t, withHistory.Start(ctx, strings.Repeat("x", backend.MaxName-len("bus-position/"))), backend.ErrInvalid)
		for _, s := range []*task.Standby{task.NewStandby(b, "no//name", nil), task.NewStandby(b, "bus", &elect.Options{ID: "a\nb"})} {
			bubble.Want(t, s.Cold(ctx, func(context.Context, *task.Run) error { return nil }), backend.ErrInvalid)
			bubble.Want(t, s.Hot(ctx, "x", func(context.Context, *task.Run) error { return nil }), backend.ErrInvalid)
			bubble.Want(t, s.Start(ctx, "x"), backend.ErrInvalid)
			bubble.Want(t, s.Configure(ctx, "x", ""), backend.ErrInvalid)
			_, err = s.Status(ctx)
			bubble.Want(t, err, backend.ErrInvalid)
		}

		// A record that cannot be understood does not start a task, and Start repairs it.
		damaged := record.New(b, "bus-tasks/x", record.Text())
		bubble.Must[backend.Version](t)(damaged.Set(ctx, `{"state":`))
		f := newFloor(t, c)
		_, err = f.console.Status(ctx)
		bubble.Want(t, err, record.ErrDecode)
		m, cold := f.hot("m", "x"), f.cold("cold")
		time.Sleep(time.Minute)
		ok(t, f.console.Start(ctx, "x"))
		f.expect("when it is repaired", "x", "m")
		bubble.Must[backend.Version](t)(damaged.Set(ctx, "?"))
		synctest.Wait()
		ok(t, f.console.Stop(ctx, "x"))
		f.expect("when it is stopped", "x", "")
		bubble.Must[backend.Version](t)(record.New(b, "bus-position/x", record.Text()).Set(ctx, "?"))
		ok(t, f.console.Start(ctx, "x"))
		bubble.Want(t, <-m.err, record.ErrDecode)
		bubble.Want(t, <-cold.err, record.ErrDecode)
	})
}

func TestWithoutRecords(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, s := t.Context(), task.NewStandby(view.Of(bubble.Client(t, c, "a"), bubble.NoRecords), "bus", nil)
		run := func(context.Context, *task.Run) error { return nil }
		_, err := s.Status(ctx)
		for _, err := range []error{s.Start(ctx, "x"), s.Stop(ctx, "x"), s.Hot(ctx, "x", run), s.Cold(ctx, run), err} {
			bubble.Want(t, err, errors.ErrUnsupported)
			if !strings.Contains(err.Error(), "use package elect") {
				t.Errorf("%v does not say what to do", err)
			}
		}
	})
}

// A task that is stopped and still runs is shown with who runs it. The error of a run is kept until the next.
func TestStatusOfTheStopped(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		f := newFloor(t, c)
		ok(t, f.console.Start(t.Context(), "one"))
		broken := errors.New("no such table")
		f.stands("a", func(s *task.Standby, ctx context.Context) error {
			return s.Hot(ctx, "one", func(ctx context.Context, r *task.Run) error {
				<-ctx.Done()
				time.Sleep(5 * time.Second) // it has to tidy up
				return nil
			})
		})
		status := func() task.Status { return bubble.Must[[]task.Status](t)(f.console.Status(t.Context()))[0] }
		ok(t, f.console.Stop(t.Context(), "one"))
		time.Sleep(time.Second)
		if st := status(); st.State != task.Stopped || st.ID != "a" || st.Since.IsZero() {
			t.Errorf("while a tidies up: %+v, want that a runs it, and that it is stopped", st)
		}
		time.Sleep(10 * time.Second)
		if st := status(); st.State != task.Stopped || st.ID != "" || st.StandBy != 1 {
			t.Errorf("after a has ended it: %+v, want that nobody runs it, and that a stands by", st)
		}

		b := f.stands("b", func(s *task.Standby, ctx context.Context) error {
			return s.Hot(ctx, "two", func(ctx context.Context, r *task.Run) error { return broken })
		})
		ok(t, f.console.Start(t.Context(), "two"))
		bubble.Want(t, <-b.err, broken)
		if st := bubble.Must[[]task.Status](t)(f.console.Status(t.Context()))[1]; st.Error != broken.Error() || !st.Missing() {
			t.Errorf("after a run that has failed: %+v", st)
		}
		f.stands("c", func(s *task.Standby, ctx context.Context) error {
			return s.Hot(ctx, "two", func(ctx context.Context, r *task.Run) error {
				<-ctx.Done()
				return nil
			})
		})
		if st := bubble.Must[[]task.Status](t)(f.console.Status(t.Context()))[1]; st.Error != "" || st.ID != "c" {
			t.Errorf("while it runs again: %+v", st)
		}

		ok(t, f.console.Start(t.Context(), "three"))
		textless := errors.New("")
		d := f.stands("d", func(s *task.Standby, ctx context.Context) error {
			return s.Hot(ctx, "three", func(context.Context, *task.Run) error { return textless })
		})
		bubble.Want(t, <-d.err, textless)
		if st := f.status("three"); st.Error == "" {
			t.Errorf("after a run that has failed with an error without text: %+v", st)
		}
	})
}

// A deaf session is told of no change of a record until hear is closed.
type deaf struct {
	backend.Session
	hear chan struct{} // nil: it is never closed
}

func (s deaf) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	if after != 0 {
		select {
		case <-s.hear:
		case <-ctx.Done():
			return backend.Record{}, context.Cause(ctx)
		}
	}
	return s.Session.Watch(ctx, name, after)
}

// A run that ends when its task has just got another configuration, or was stopped and started, of which it has not heard, does
// not finish that one.
func TestChangedAsItEnds(t *testing.T) {
	for what, change := range map[string]func(context.Context, *task.Standby) error{
		"configured":          func(ctx context.Context, s *task.Standby) error { return s.Configure(ctx, "orders", "two") },
		"stopped and started": restart,
	} {
		t.Run(what, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				f := newFloor(t, c)
				ok(t, f.console.Configure(t.Context(), "orders", "one"))
				ok(t, f.console.Start(t.Context(), "orders"))
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Minute, func() { cancel(errors.New("it was not run again")) })
				var begun []string
				s := task.NewStandby(view.Of(bubble.Client(t, c, "a"), func(s backend.Session) backend.Session { return deaf{Session: s} }), "bus", nil)
				err := s.Hot(ctx, "orders", func(ctx context.Context, r *task.Run) error {
					if begun = append(begun, r.Config()); len(begun) == 1 {
						return change(ctx, f.console)
					}
					cancel(errEnough)
					return nil
				})
				bubble.Want(t, err, errEnough)
				if want := f.status("orders").Config; len(begun) != 2 || begun[1] != want {
					t.Errorf("%v have begun, and the last is to be %q", begun, want)
				}
			})
		})
	}
}

func restart(ctx context.Context, s *task.Standby) error {
	return errors.Join(s.Stop(ctx, "orders"), s.Start(ctx, "orders"))
}

// The run of a task that was stopped ends, also if its machine hears of that when the task is started again.
func TestStoppedAndStartedUnheard(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		f, hear := newFloor(t, c), make(chan struct{})
		ok(t, f.console.Start(t.Context(), "orders"))
		ctx, cancel := context.WithCancelCause(t.Context())
		begun, ended, over := make(chan uint64, 10), make(chan error, 10), make(chan error, 1)
		b := view.Of(bubble.Client(t, c, "a"), func(s backend.Session) backend.Session { return deaf{s, hear} })
		go func() {
			over <- task.NewStandby(b, "bus", nil).Hot(ctx, "orders", func(ctx context.Context, r *task.Run) error {
				begun <- r.Token()
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return nil
			})
		}()
		first := <-begun
		ok(t, restart(t.Context(), f.console))
		close(hear)
		time.Sleep(3 * bubble.TTL)
		if len(ended) != 1 || len(begun) != 1 {
			t.Fatalf("%d runs have ended, and %d have begun after that; want 1 and 1", len(ended), len(begun))
		}
		bubble.Want(t, <-ended, task.ErrStopped)
		if next := <-begun; next <= first {
			t.Errorf("run %d follows run %d", next, first)
		}
		ok(t, f.console.Start(t.Context(), "orders")) // changes nothing
		time.Sleep(3 * bubble.TTL)
		if len(ended) > 0 {
			t.Errorf("Start has ended a run: %v", <-ended)
		}
		cancel(errEnough)
		bubble.Want(t, <-over, errEnough)
	})
}

// A task has a configuration, which outlives Stop and Start. A run with another one ends, and so does one that is moved:
// the next machine in line goes on.
func TestConfigureAndMove(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		f, ctx := newFloor(t, c), t.Context()
		ok(t, f.console.Configure(ctx, "orders", "one"))
		ok(t, f.console.Start(ctx, "orders"))
		begun, ended := make(chan string, 10), make(chan error, 10)
		var machines []*machine
		for _, id := range []string{"a", "b"} {
			machines = append(machines, f.stands(id, func(s *task.Standby, ctx context.Context) error {
				return s.Hot(ctx, "orders", func(ctx context.Context, r *task.Run) error {
					begun <- id + " " + r.Config()
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return nil
				})
			}))
			time.Sleep(time.Second)
		}
		next := func(why error, want string) {
			t.Helper()
			if why != nil {
				bubble.Want(t, <-ended, why)
			}
			if got := <-begun; got != want {
				t.Errorf("begun has %q, want %q", got, want)
			}
			time.Sleep(time.Second)
		}
		next(nil, "a one")
		ok(t, f.console.Configure(ctx, "orders", "one")) // changes nothing
		ok(t, f.console.Configure(ctx, "orders", "two"))
		next(task.ErrConfigured, "b two")
		if id := bubble.Must[string](t)(f.console.Move(ctx, "orders")); id != "b" {
			t.Errorf("%s was asked, want b", id)
		}
		next(elect.ErrAsked, "a two")
		ok(t, f.console.Stop(ctx, "orders"))
		bubble.Want(t, <-ended, task.ErrStopped)
		time.Sleep(time.Second)
		id, err := f.console.Move(ctx, "orders")
		if bubble.Want(t, err, elect.ErrNoLeader); id != "" || len(ended) > 0 {
			t.Errorf("to move what is stopped, %q was asked", id)
		}
		ok(t, f.console.Start(ctx, "orders"))
		next(nil, "b two")
		if all := bubble.Must[[]task.Status](t)(f.console.Status(ctx)); len(all) != 1 || all[0].Config != "two" || all[0].ID != "b" {
			t.Errorf("the status is %+v", all)
		}
		bubble.Want(t, f.console.Configure(ctx, "orders", "\xff"), backend.ErrInvalid)
		_, err = f.console.Move(ctx, "none")
		bubble.Want(t, err, elect.ErrNoLeader)

		// Nobody runs a task whose election an operator has paused.
		_, err = operate.New(bubble.Client(t, c, "operator"), "bus-run-orders", "operator").Pause(ctx, "a look at the disk")
		ok(t, err)
		<-ended
		time.Sleep(time.Second)
		if st := bubble.Must[[]task.Status](t)(f.console.Status(ctx))[0]; st.ID != "" || st.Token != 0 || st.StandBy != 2 || !st.Missing() {
			t.Errorf("while it is paused, the status is %+v", st)
		}
		for _, m := range machines {
			m.ends(t)
		}
	})
}
