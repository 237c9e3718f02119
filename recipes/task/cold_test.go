package task_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/task"
)

func TestCold(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
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
		time.Sleep(10 * bubble.TTL)
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
		time.Sleep(bubble.TTL + time.Second)
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
		bubble.Want(t, <-machines["m0"].err, backend.ErrClosed)
		if n := len(c.Members("bus-idle")); n != 0 {
			t.Errorf("%d look for work", n)
		}
	})
}

// Who runs a task has a term, and who looks for one has none.
func TestHistoryOfCold(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		f := newFloor(t, c)
		ok(t, f.console.Start(t.Context(), "t1"))
		s := task.NewStandby(bubble.Client(t, c, "cold"), "bus", &elect.Options{ID: "m1", History: 5})
		m := f.stands("m1", func(_ *task.Standby, ctx context.Context) error { return s.Cold(ctx, f.run) })
		f.expect("now", "t1", "m1")
		m.ends(t)
		for record, kept := range map[string]bool{"bus-idle.history": false, "bus-run-t1.history": true} {
			if r := c.Record(record); (r.Version != backend.Absent) != kept {
				t.Errorf("%s is %q", record, r.Value)
			}
		}
	})
}

// A machine that is not ready any more when a task is started looks on until it is.
func TestColdThatIsNotReady(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		f := newFloor(t, c)
		var unready atomic.Bool
		s := task.NewStandby(bubble.Client(t, c, "cold"), "bus", &elect.Options{ID: "m1", Ready: func(context.Context) error {
			if unready.Load() {
				return errors.New("no disk")
			}
			return nil
		}})
		m := f.stands("m1", func(_ *task.Standby, ctx context.Context) error { return s.Cold(ctx, f.run) })
		unready.Store(true)
		ok(t, f.console.Start(t.Context(), "t1"))
		time.Sleep(bubble.TTL)
		f.expect("while it is not ready", "t1", "")
		unready.Store(false)
		time.Sleep(2 * bubble.TTL)
		f.expect("when it is ready", "t1", "m1")
		m.ends(t)
	})
}

// A task at which hot machines stand is none for a cold one.
func TestColdBesideHot(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
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

// A machine that looks for work and loses its session stands behind those who wait to look, and does not look beside another.
func TestOneLooks(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		f := newFloor(t, c)
		var machines []*machine
		for i := range 4 {
			machines = append(machines, f.cold(fmt.Sprint("m", i)))
		}
		for _, m := range machines {
			m.b.Expire()
			time.Sleep(2 * bubble.TTL)
			if n := len(c.Members("bus-idle")); n != len(machines) {
				t.Errorf("of %d machines that run nothing %d stand in line to look", len(machines), n)
			}
		}
		for _, m := range machines {
			m.ends(t)
		}
	})
}

// Who gives up just as it joins the line of a task, and cannot reach the coordinator, leaves both lines within one ResignTimeout.
func TestGivingUpTakesOneResignTimeout(t *testing.T) {
	bubble.Run(t, func(t *testing.T, _ *memory.Coordinator) {
		c := memory.New(&memory.Options{TTL: time.Hour}) // longer than the test
		f := newFloor(t, c)
		ok(t, f.console.Start(t.Context(), "t1"))
		b := bubble.Client(t, c, "m1")
		s := task.NewStandby(view.Of(b, func(s backend.Session) backend.Session { return cutAfterJoin{s, b, "bus-run-t1"} }), "bus", nil)
		m := f.stands("m1", func(_ *task.Standby, ctx context.Context) error { return s.Cold(ctx, f.run) })
		if n := len(c.Members("bus-run-t1")); n != 1 {
			t.Fatalf("%d machines stand in the line of the task", n)
		}
		began := time.Now()
		m.ends(t)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A cutAfterJoin cannot reach the coordinator any more once it has joined the line, and does not know its place.
type cutAfterJoin struct {
	backend.Session
	b    *memory.Backend
	line string
}

func (s cutAfterJoin) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	j, err := s.Session.Join(ctx, line, value, record)
	if line != s.line {
		return j, err
	}
	s.b.Cut()
	return backend.Joined{Member: j.Member}, err
}
