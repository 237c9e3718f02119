package task_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/task"
)

// Who stands among the workers by mistake gets no task, and a worker behind it does not wait in silence.
func TestStrangerAmongWorkers(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr := newCrew(t, c)
		a := cr.works("a")
		ctx, leave := context.WithCancel(t.Context())
		go elect.New(bubble.Client(t, c, "stranger"), "jobs-workers", nil).Campaign(ctx)
		synctest.Wait()
		if n := len(c.Members("jobs-workers")); n != 2 {
			t.Fatalf("%d stand in line, want the worker and the stranger", n)
		}
		var ids []uint64
		for i := range 3 {
			ids = append(ids, cr.submit(fmt.Sprint(i)))
		}
		bubble.Want(t, <-cr.works("b").err, backend.ErrInvalid)
		if st := bubble.Must[task.PoolStatus](t)(cr.pool.Status(t.Context())); fmt.Sprint(st.Workers) != "[a]" {
			t.Errorf("the workers are %q, want a alone", st.Workers)
		}
		for i, id := range ids {
			cr.result(id, fmt.Sprint("done ", i))
		}
		leave()
		a.ends(t)
	})
}

// While the line of the workers is paused, no task is run. Then all are, by workers that were there before, and by those that
// came meanwhile.
func TestPausedPool(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		cr := newCrew(t, c)
		a := cr.works("a")
		first := cr.submit("0")
		time.Sleep(time.Second / 2)
		op := operate.New(bubble.Client(t, c, "operator"), "jobs-workers", "operator")
		bubble.Must[elect.Candidate](t)(op.Pause(t.Context(), "a look at the disk"))
		b := cr.works("b")
		second := cr.submit("1")
		time.Sleep(3 * bubble.TTL)
		cr.expect(map[string]string{})
		if st := bubble.Must[task.PoolStatus](t)(cr.pool.Status(t.Context())); len(st.Workers) != 0 || len(st.Tasks) != 2 {
			t.Errorf("while it is paused, the status is %+v", st)
		}
		bubble.Must[elect.Candidate](t)(op.Resume(t.Context(), nil))
		cr.result(first, "done 0")
		cr.result(second, "done 1")
		a.ends(t)
		b.ends(t)
	})
}
