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
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/record"
	"github.com/succession-dev/succession/task"
)

const ttl = 10 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs f in virtual time against a coordinator of its own.
func bubble(t *testing.T, f func(t *testing.T, c *memory.Coordinator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, memory.New(&memory.Options{TTL: ttl})) })
}

func client(t *testing.T, c *memory.Coordinator, name string) *memory.Backend {
	t.Helper()
	b := c.Client(name)
	t.Cleanup(func() { b.Close() })
	return b
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("got %v, want %v", err, target)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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
		t: t, c: c, console: task.NewStandby(client(t, c, "console"), "bus", nil),
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
	m := &machine{b: client(f.t, f.c, id), err: make(chan error, 1)}
	ctx, cancel := context.WithCancelCause(f.t.Context())
	m.stop = func() { cancel(errEnough) }
	s := task.NewStandby(m.b, "bus", &task.Options{ID: id})
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
	want(t, <-m.err, errEnough)
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
	for _, st := range must[[]task.Status](f.t)(f.console.Status(f.t.Context())) {
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
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
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
		want(t, f.runs["orders"].Check(), task.ErrStopped)
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

// A machine that was replaced, and goes on nevertheless, cannot record a position.
func TestCommitOfTheReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		f, ctx := newFloor(t, c), t.Context()
		ok(t, f.console.Start(ctx, "orders"))
		begun := make(chan *task.Run, 1)
		old := f.stands("old", func(s *task.Standby, ctx context.Context) error {
			return s.Hot(ctx, "orders", func(ctx context.Context, r *task.Run) error {
				begun <- r
				time.Sleep(time.Hour)
				return nil
			})
		})
		r := <-begun
		ok(t, r.Commit(ctx, 7))
		ok(t, r.Commit(ctx, 7))
		want(t, r.Commit(ctx, 6), task.ErrBackwards)
		if r.Position() != 7 {
			t.Errorf("the position is %d", r.Position())
		}
		c.Remove("bus-run-orders", r.Member().Key)
		next := f.hot("next", "orders")
		time.Sleep(5500 * time.Millisecond)
		err := r.Commit(ctx, 100)
		want(t, err, elect.ErrLost)
		want(t, err, backend.ErrNotMember)
		f.mu.Lock()
		if at := f.runs["orders"].Position(); at != 12 {
			t.Errorf("the next one has gone on to %d, want 12", at)
		}
		f.mu.Unlock()
		next.ends(t)
		old.stop()
		want(t, <-old.err, errEnough)
	})
}

// unaware is a backend whose sessions do not tell that a member has gone.
type unaware struct{ backend.Backend }

func (b unaware) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return untold{s}, err
}

type untold struct{ backend.Session }

func (untold) Gone(ctx context.Context, _ backend.Member) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// A machine may learn from its own Commit that it was replaced. It then stands again.
func TestCommitTellsFirst(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := task.NewStandby(unaware{client(t, c, "a")}, "bus", nil)
		ok(t, s.Start(ctx, "orders"))
		runs := 0
		err := s.Hot(ctx, "orders", func(ctx context.Context, r *task.Run) error {
			if runs++; runs == 2 {
				cancel(errEnough)
				return nil
			}
			c.Remove("bus-run-orders", r.Member().Key)
			err := r.Commit(ctx, 1)
			want(t, err, elect.ErrLost)
			return fmt.Errorf("in the work: %w", err)
		})
		want(t, err, errEnough)
	})
}

// Where answers are lost, Commit finds out what has happened.
func TestCommitThroughFaults(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		f, ctx := newFloor(t, c), t.Context()
		ok(t, f.console.Start(ctx, "orders"))
		b := client(t, c, "a")
		err := task.NewStandby(b, "bus", nil).Hot(ctx, "orders", func(ctx context.Context, r *task.Run) error {
			for at := range uint64(20) {
				if at%3 == 0 {
					b.LoseAnswer(memory.OpPut)
				}
				if at%4 == 0 {
					b.LoseRequest(memory.OpPut)
				}
				ok(t, r.Commit(ctx, at))
				if st := f.status("orders"); st.Position != at {
					t.Errorf("the position is %d, want %d", st.Position, at)
				}
			}
			// Somebody else writes the record by hand, further back and further on.
			p := record.New(client(t, c, "hand"), "bus-position/orders", record.JSON[map[string]any]())
			for hand, refused := range map[int]bool{5: false, 50: true} {
				must[backend.Version](t)(p.Set(ctx, map[string]any{"position": hand}))
				if err := r.Commit(ctx, 30); errors.Is(err, task.ErrBackwards) != refused || err != nil && !refused {
					t.Errorf("Commit of 30 after %d: %v", hand, err)
				}
			}
			return errEnough
		})
		want(t, err, errEnough)
	})
}

// nil finishes a task, and an error ends Hot; neither counts when the run has ended before.
func TestResultOfARun(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
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

func TestCold(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		f, ctx := newFloor(t, c), t.Context()
		tasks := []string{"t1", "t2", "t3"}
		ok(t, f.console.Stop(ctx, "t0"))
		for _, name := range tasks {
			ok(t, f.console.Start(ctx, name))
		}
		machines := make(map[string]*machine)
		for i := range 5 {
			id := fmt.Sprint("m", i)
			machines[id] = f.cold(id)
		}
		running := func() (by []string) {
			t.Helper()
			synctest.Wait()
			for _, name := range tasks {
				by = append(by, f.status(name).ID)
				f.expect("now", name, by[len(by)-1])
			}
			f.expect("now", "t0", "")
			return by
		}
		if by := running(); !slices.Equal(by, []string{"m0", "m1", "m2"}) {
			t.Fatalf("%v run the tasks", by)
		}

		before := c.Requests()
		time.Sleep(10 * ttl)
		sent := c.Requests().Since(before)
		if n := sent.Of("m4") - sent.Of("m4", memory.OpHeartbeat); n > 25 {
			t.Errorf("a machine that waits for its turn to look has sent %d requests: %v", n, sent)
		}
		t.Logf("of those that run nothing, m3 looks and sends %d requests in ten session times, and m4 %d", sent.Of("m3"), sent.Of("m4"))

		machines["m1"].ends(t)
		if by := running(); !slices.Equal(by, []string{"m0", "m3", "m2"}) {
			t.Fatalf("when m1 has left, %v run the tasks", by)
		}
		machines["m0"].b.Kill()
		time.Sleep(ttl + time.Second)
		if by := running(); !slices.Equal(by, []string{"m4", "m3", "m2"}) {
			t.Fatalf("when m0 was killed, %v run the tasks", by)
		}
		machines["m2"].ends(t)
		if by := running(); !slices.Equal(by, []string{"m4", "m3", ""}) {
			t.Fatalf("when none is left, %v run the tasks", by)
		}
		ok(t, f.console.Stop(ctx, "t1"))
		if by := running(); !slices.Equal(by, []string{"", "m3", "m4"}) {
			t.Fatalf("when t1 was stopped, %v run the tasks", by)
		}
		machines["m5"] = f.cold("m5")
		ok(t, f.console.Start(ctx, "t0"))
		synctest.Wait()
		f.expect("when t0 was started", "t0", "m5")
		ok(t, f.console.Stop(ctx, "t0"))
		for _, id := range []string{"m3", "m4", "m5"} {
			machines[id].ends(t)
		}
		want(t, <-machines["m0"].err, backend.ErrClosed)
		if n := len(c.Members("bus-idle")); n != 0 {
			t.Errorf("%d look for work", n)
		}
	})
}

// A task at which hot machines stand is none for a cold one.
func TestColdBesideHot(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		f, ctx := newFloor(t, c), t.Context()
		hot := f.hot("hot", "t1")
		cold := f.cold("cold")
		ok(t, f.console.Start(ctx, "t1"))
		ok(t, f.console.Start(ctx, "t2"))
		f.expect("at first", "t1", "hot")
		f.expect("at first", "t2", "cold")
		cold.ends(t)
		cold = f.cold("cold")
		ok(t, f.console.Stop(ctx, "t2"))
		hot.ends(t)
		f.expect("when hot has left", "t1", "cold")
		f.expect("when it was stopped", "t2", "")
		cold.ends(t)
	})
}

// Machines come and go, are cut off and lose answers: one at a time runs each task, positions
// grow, and in the end each task is run.
func TestStandbyThroughFaults(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
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
			time.Sleep(ttl / 3)
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
		time.Sleep(10 * ttl)
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
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
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
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, b := t.Context(), client(t, c, "a")
		s := task.NewStandby(b, "bus", nil)
		for _, name := range []string{"", "a/b", "a b", "..", "x.fence", strings.Repeat("x", 255)} {
			run := func(context.Context, *task.Run) error { return nil }
			for what, err := range map[string]error{"Start": s.Start(ctx, name), "Stop": s.Stop(ctx, name), "Hot": s.Hot(ctx, name, run)} {
				if !errors.Is(err, backend.ErrInvalid) {
					t.Errorf("%s of %q: %v", what, name, err)
				}
			}
		}
		want(t, s.Hot(ctx, "x", nil), backend.ErrInvalid)
		want(t, s.Cold(ctx, nil), backend.ErrInvalid)
		for _, s := range []*task.Standby{task.NewStandby(b, "no//name", nil), task.NewStandby(b, "bus", &task.Options{ID: "a\nb"})} {
			want(t, s.Cold(ctx, func(context.Context, *task.Run) error { return nil }), backend.ErrInvalid)
			want(t, s.Hot(ctx, "x", func(context.Context, *task.Run) error { return nil }), backend.ErrInvalid)
		}
		_, err := task.NewStandby(b, "no//name", nil).Status(ctx)
		want(t, err, backend.ErrInvalid)

		// A record that cannot be understood does not start a task, and Start repairs it.
		damaged := record.New(b, "bus-tasks/x", record.Text())
		must[backend.Version](t)(damaged.Set(ctx, `{"state":`))
		f := newFloor(t, c)
		_, err = f.console.Status(ctx)
		want(t, err, record.ErrDecode)
		m, cold := f.hot("m", "x"), f.cold("cold")
		time.Sleep(time.Minute)
		ok(t, f.console.Start(ctx, "x"))
		f.expect("when it is repaired", "x", "m")
		must[backend.Version](t)(damaged.Set(ctx, "?"))
		synctest.Wait()
		ok(t, f.console.Stop(ctx, "x"))
		f.expect("when it is stopped", "x", "")
		must[backend.Version](t)(record.New(b, "bus-position/x", record.Text()).Set(ctx, "?"))
		ok(t, f.console.Start(ctx, "x"))
		want(t, <-m.err, record.ErrDecode)
		want(t, <-cold.err, record.ErrDecode)
	})
}

// bare is a backend with elections alone.
type bare struct{ backend.Backend }

func (b bare) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return struct {
		backend.NoShares
		backend.NoPins
		backend.NoItems
		backend.NoRecords
		rest
	}{rest: rest{deep{s}}}, err
}

// Of methods with the same name the one that is embedded less deeply counts.
type (
	rest struct{ deep }
	deep struct{ backend.Session }
)

func TestWithoutRecords(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, s := t.Context(), task.NewStandby(bare{client(t, c, "a")}, "bus", nil)
		run := func(context.Context, *task.Run) error { return nil }
		_, err := s.Status(ctx)
		for _, err := range []error{s.Start(ctx, "x"), s.Stop(ctx, "x"), s.Hot(ctx, "x", run), s.Cold(ctx, run), err} {
			want(t, err, errors.ErrUnsupported)
			if !strings.Contains(err.Error(), "use package elect") {
				t.Errorf("%v does not say what to do", err)
			}
		}
	})
}
