package task_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/task"
)

// The second machine goes on where the first one has stopped.
func ExampleStandby_Hot() {
	ctx := context.Background()
	c := memory.New(nil)
	for _, machine := range []string{"m1", "m2"} {
		b := c.Client(machine) // or succession.Connect(ctx, os.Getenv("SUCCESSION_URL"))
		defer b.Close()
		s := task.NewStandby(b, "bus", &elect.Options{ID: machine})
		if err := s.Start(ctx, "orders"); err != nil { // the console
			fmt.Println(err)
			return
		}
		broken := errors.New("the disk is full")
		err := s.Hot(ctx, "orders", func(ctx context.Context, r *task.Run) error {
			fmt.Printf("%s runs %s from %d\n", machine, r.Task, r.Position())
			if err := r.Commit(ctx, r.Position()+100); err != nil {
				return err
			}
			return broken
		})
		fmt.Printf("%s: %v\n", machine, err)
	}
	// Output:
	// m1 runs orders from 0
	// m1: the disk is full
	// m2 runs orders from 100
	// m2: the disk is full
}

// A cold machine runs what nobody runs. The monitor tells what there is.
func ExampleStandby_Cold() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b := memory.New(nil).Client("m1")
	defer b.Close()
	s := task.NewStandby(b, "bus", &elect.Options{ID: "m1"})
	for _, name := range []string{"bills", "orders"} {
		if err := s.Start(ctx, name); err != nil {
			fmt.Println(err)
			return
		}
	}
	_ = s.Cold(ctx, func(ctx context.Context, r *task.Run) error {
		all, err := s.Status(ctx)
		for _, st := range all {
			fmt.Printf("%s: %s, by %q\n", st.Task, st.State, st.ID)
		}
		if r.Task == "orders" {
			cancel()
		}
		return err // nil: the task is finished
	})
	// Output:
	// bills: started, by "m1"
	// orders: started, by ""
	// bills: finished, by ""
	// orders: started, by "m1"
}

func ExamplePool() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b := memory.New(nil).Client("m1")
	defer b.Close()
	p := task.NewPool(b, "jobs", &elect.Options{ID: "m1"})

	worker := make(chan error)
	go func() {
		worker <- p.Work(ctx, func(ctx context.Context, t *task.Task) (string, error) {
			return fmt.Sprint(len(t.Value), " letters"), nil
		})
	}()
	id, err := p.Submit(ctx, "succession")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Result(ctx, id))
	fmt.Println("forgotten:", p.Forget(ctx, id))
	cancel()
	fmt.Println(<-worker)
	// Output:
	// 10 letters <nil>
	// forgotten: <nil>
	// context canceled
}
