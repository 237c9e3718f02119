package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/task"
)

// bus is the name of the tasks on the coordinator.
const bus = "replication"

// machine is what each machine does until ctx ends: it runs up to as many tasks as there are, each
// of them as long as it may. It tells of each offset that it has processed.
func machine(ctx context.Context, b succession.Backend, id string, tell func(table string, token, offset uint64)) error {
	s := task.NewStandby(b, bus, &elect.Options{ID: id})
	results := make([]error, len(tables))
	var slots sync.WaitGroup
	for i := range tables {
		slots.Go(func() {
			results[i] = s.Cold(ctx, func(ctx context.Context, r *task.Run) error { return replicate(ctx, r, tell) })
		})
	}
	slots.Wait()
	return errors.Join(results...)
}

// replicate processes one offset after the other, from where the machine before has stopped. An
// offset is recorded after it was processed: if the machine dies in between, the next one processes
// it again.
func replicate(ctx context.Context, r *task.Run, tell func(table string, token, offset uint64)) error {
	for ctx.Err() == nil {
		offset := r.Position() + 1
		tell(r.Task, r.Token(), offset) // this is all the work that there is
		err := r.Commit(ctx, offset)
		switch {
		case errors.Is(err, elect.ErrLost):
			<-ctx.Done() // which says so too
		case err != nil && ctx.Err() == nil:
			return err
		}
		pause := time.NewTimer(10 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
	return nil // it is lost, or stopped, or the machine ends
}
