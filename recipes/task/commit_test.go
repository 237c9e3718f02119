package task_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/record"
	"github.com/succession-dev/succession/recipes/task"
)

// A machine that was replaced, and goes on nevertheless, cannot record a position.
func TestCommitOfTheReplaced(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
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
		bubble.Want(t, r.Commit(ctx, 6), task.ErrBackwards)
		if r.Position() != 7 {
			t.Errorf("the position is %d", r.Position())
		}
		c.Remove("bus-run-orders", r.Term().Member().Key)
		next := f.hot("next", "orders")
		time.Sleep(5500 * time.Millisecond)
		err := r.Commit(ctx, 100)
		bubble.Want(t, err, elect.ErrLost)
		bubble.Want(t, err, backend.ErrNotMember)
		f.mu.Lock()
		if at := f.runs["orders"].Position(); at != 12 {
			t.Errorf("the next one has gone on to %d, want 12", at)
		}
		f.mu.Unlock()
		next.ends(t)
		old.stop()
		bubble.Want(t, <-old.err, errEnough)
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
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := task.NewStandby(unaware{bubble.Client(t, c, "a")}, "bus", nil)
		ok(t, s.Start(ctx, "orders"))
		runs := 0
		err := s.Hot(ctx, "orders", func(ctx context.Context, r *task.Run) error {
			if runs++; runs == 2 {
				cancel(errEnough)
				return nil
			}
			c.Remove("bus-run-orders", r.Term().Member().Key)
			err := r.Commit(ctx, 1)
			bubble.Want(t, err, elect.ErrLost)
			return fmt.Errorf("in the work: %w", err)
		})
		bubble.Want(t, err, errEnough)
	})
}

// Where answers are lost, Commit finds out what has happened.
func TestCommitThroughFaults(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		f, ctx := newFloor(t, c), t.Context()
		ok(t, f.console.Start(ctx, "orders"))
		b := bubble.Client(t, c, "a")
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
			p := record.New(bubble.Client(t, c, "hand"), "bus-position/orders", record.JSON[map[string]any]())
			for hand, refused := range map[int]bool{5: false, 50: true} {
				bubble.Must[backend.Version](t)(p.Set(ctx, map[string]any{"position": hand}))
				if err := r.Commit(ctx, 30); errors.Is(err, task.ErrBackwards) != refused || err != nil && !refused {
					t.Errorf("Commit of 30 after %d: %v", hand, err)
				}
			}
			return errEnough
		})
		bubble.Want(t, err, errEnough)
	})
}

// A position can be text: the next run, and the status, have it. Only the number is compared.
func TestCommitText(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		f, ctx := newFloor(t, c), t.Context()
		ok(t, f.console.Start(ctx, "orders"))
		const first, second = "binlog.000042:1187", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
		var seen []string
		run := func(position uint64, text string) {
			m := f.stands("m", func(s *task.Standby, ctx context.Context) error {
				return s.Hot(ctx, "orders", func(ctx context.Context, r *task.Run) error {
					seen = append(seen, fmt.Sprint(r.Position(), " ", r.Text()))
					ok(t, r.CommitText(ctx, position, text))
					bubble.Want(t, r.CommitText(ctx, position-1, "back"), task.ErrBackwards)
					bubble.Want(t, r.CommitText(ctx, position, "\xff"), backend.ErrInvalid)
					<-ctx.Done()
					return nil
				})
			})
			time.Sleep(time.Second)
			m.stop()
			bubble.Want(t, <-m.err, errEnough)
		}
		run(1, first)
		run(2, second)
		if want := []string{"0 ", "1 " + first}; !slices.Equal(seen, want) {
			t.Errorf("the runs have begun at %q, want %q", seen, want)
		}
		all := bubble.Must[[]task.Status](t)(f.console.Status(ctx))
		if len(all) != 1 || all[0].Position != 2 || all[0].Text != second {
			t.Errorf("the status is %+v", all)
		}
	})
}
