package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/succession-dev/succession/recipes/task"
)

// An audit is what the run knows of the tasks: what the machines tell, and what the coordinator has.
type audit struct {
	console *task.Standby

	before   map[string]uint64 // the position that earlier runs on this coordinator have left, of each table
	recorded map[string]uint64 // the largest that was seen

	mu        sync.Mutex
	processed map[string]map[uint64]int    // how often each offset of each table was
	tokens    map[string]map[uint64]uint64 // the offset at which each run has begun
}

// newAudit returns an audit of machines that are not started yet.
func newAudit(ctx context.Context, console *task.Standby) (*audit, error) {
	a := &audit{
		console: console, recorded: make(map[string]uint64),
		processed: make(map[string]map[uint64]int), tokens: make(map[string]map[uint64]uint64),
	}
	for _, table := range tables {
		a.processed[table], a.tokens[table] = make(map[uint64]int), make(map[uint64]uint64)
	}
	_, err := a.look(ctx)
	a.before = maps.Clone(a.recorded)
	return a, err
}

// listen takes down what the machines tell, until all have ended.
func (a *audit) listen(told io.Reader) error {
	lines := bufio.NewScanner(told)
	for lines.Scan() {
		var table string
		var token, offset uint64
		if n, err := fmt.Sscan(lines.Text(), &table, &token, &offset); n != 3 {
			return fmt.Errorf("a machine says %q: %w", lines.Text(), err)
		}
		a.mu.Lock()
		a.processed[table][offset]++
		if _, known := a.tokens[table][token]; !known {
			a.tokens[table][token] = offset
		}
		a.mu.Unlock()
	}
	return lines.Err()
}

// look checks that no position has gone back, and returns how it stands with the tasks.
func (a *audit) look(ctx context.Context) ([]task.Status, error) {
	all, err := a.console.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, st := range all {
		if st.Position < a.recorded[st.Task] {
			return nil, fmt.Errorf("the position of %s was %d, and is %d", st.Task, a.recorded[st.Task], st.Position)
		}
		a.recorded[st.Task] = st.Position
	}
	return all, nil
}

// goesOn looks on for a while.
func (a *audit) goesOn(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		if _, err := a.look(ctx); err != nil || time.Now().After(end) {
			return err
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// allRun waits until each task is run, and has come further since.
func (a *audit) allRun(ctx context.Context, when string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, fmt.Errorf("%s: a task stands still for two minutes", when))
	defer cancel()
	before := maps.Clone(a.recorded)
	for {
		all, err := a.look(ctx)
		if err != nil {
			return err
		}
		further := 0
		for _, st := range all {
			if !st.Missing() && st.Position > before[st.Task] {
				further++
			}
		}
		if further == len(tables) {
			return nil
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// print prints who runs what.
func (a *audit) print(ctx context.Context, out io.Writer) {
	all, err := a.console.Status(ctx)
	if err != nil {
		return // the next look says so
	}
	for _, st := range all {
		fmt.Fprintf(out, "    %-10s at %6d, on %s with token %d\n", st.Task, st.Position, st.ID, st.Token)
	}
}

// figures prints what the run has come to, when all machines have ended. It fails if an offset is
// missing, or if a run has begun in front of one with a smaller token, which it has replaced.
func (a *audit) figures(ctx context.Context, out io.Writer) error {
	if _, err := a.look(ctx); err != nil {
		return err
	}
	offsets, again, runs := 0, 0, 0
	for _, table := range tables {
		for offset := a.before[table] + 1; offset <= a.recorded[table]; offset++ {
			n := a.processed[table][offset]
			if n == 0 {
				return fmt.Errorf("the offset %d of %s was recorded, and nobody has processed it", offset, table)
			}
			offsets, again = offsets+1, again+n-1
		}
		for token, from := range a.tokens[table] {
			for later, at := range a.tokens[table] {
				if later > token && at < from {
					return fmt.Errorf("%s was run from %d with token %d, and from %d with token %d", table, from, token, at, later)
				}
			}
		}
		runs += len(a.tokens[table])
	}
	if offsets == 0 {
		return errors.New("nothing was processed")
	}
	fmt.Fprintf(out, `
%d tasks were run %d times, one machine after the other.
%d offsets were processed and recorded, and none is missing; %d were processed again by the next machine.
No position ever went back.
`, len(tables), runs, offsets, again)
	return nil
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
