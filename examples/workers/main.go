// Workers is a master with workers: the processes of ZooKeeper's documents that share tasks.
//
//	go run ./examples/workers
//	go run ./examples/workers -url etcd://localhost:2379 -workers 5 -tasks 100
//
// It starts workers, which are processes of this program, on a coordinator; one of them is the
// master. It submits tasks, and kills workers while they are at it, the master first; each comes
// back. In the end each task has its result, and the run prints who has run how many, and how many
// had to be run again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/succession-dev/succession"
	_ "github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	_ "github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/examples/internal/child"
	_ "github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/recipes/task"
	_ "github.com/succession-dev/succession/zookeeper"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	url := flag.String("url", "", "the coordinator, such as etcd://localhost:2379; empty is a temporary folder of this machine")
	workers := flag.Int("workers", 3, "how many there are")
	tasks := flag.Int("tasks", 30, "how many tasks are submitted")
	crashes := flag.Int("crashes", 3, "how many workers are killed")
	id := flag.String("worker", "", "used by the run itself: be the worker with this ID")
	flag.Parse()

	var err error
	if *id != "" {
		err = work(ctx, *url, *id)
	} else {
		err = run(ctx, os.Stdout, *url, *workers, *tasks, *crashes)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "workers:", err)
		os.Exit(1)
	}
}

const name = "letters"

// work is what each worker does: a task is a text, and its result how many letters that has.
func work(ctx context.Context, url, id string) error {
	ctx, cancel := child.Context(ctx)
	defer cancel()
	b, err := succession.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer b.Close()
	err = task.NewPool(b, name, &elect.Options{ID: id}).Work(ctx, func(ctx context.Context, t *task.Task) (string, error) {
		fmt.Println(id, t.Run)
		select {
		case <-time.After(100 * time.Millisecond):
			return fmt.Sprint(len(t.Value)), nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// run is the whole example. It fails if a task has no result, or a wrong one.
func run(ctx context.Context, out io.Writer, url string, workers, tasks, crashes int) error {
	if workers < 2 {
		return errors.New("two workers are needed, so that one can die")
	}
	url, remove, err := child.URL(url)
	if err != nil {
		return err
	}
	defer remove()
	b, err := succession.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer b.Close()
	told, tells, err := os.Pipe()
	if err != nil {
		return err
	}
	var all []*child.Process
	var runs tally
	heard := make(chan error, 1)
	go func() { heard <- runs.listen(told) }()
	end := func() {
		for _, p := range all {
			p.Stop()
		}
		all = nil
		tells.Close()
	}
	defer end()
	for i := range workers {
		id := fmt.Sprint("worker-", i+1)
		p := &child.Process{ID: id, Args: []string{"-worker", id, "-url", url}, Out: tells}
		if err := p.Start(); err != nil {
			return err
		}
		all = append(all, p)
	}
	pool := task.NewPool(b, name, nil)
	want := make(map[uint64]string)
	for i := range tasks {
		text := strings.Repeat("x", i)
		id, err := pool.Submit(ctx, text)
		if err != nil {
			return err
		}
		want[id] = fmt.Sprint(len(text))
	}
	for i := range crashes {
		victim, how, err := busy(ctx, pool, i == 0)
		if err != nil {
			return err
		}
		if victim == "" {
			return errors.New("all tasks were done before a worker could be killed: submit more")
		}
		p := all[slices.IndexFunc(all, func(p *child.Process) bool { return p.ID == victim })]
		p.Crash()
		fmt.Fprintf(out, "%s, %s, is killed\n", victim, how)
		if err := p.Start(); err != nil {
			return err
		}
	}
	for id, text := range want {
		got, err := pool.Result(ctx, id)
		if err != nil {
			return err
		}
		if got != text {
			return fmt.Errorf("the result of task %d is %q, want %q", id, got, text)
		}
		if err := pool.Forget(ctx, id); err != nil {
			return err
		}
	}
	end()
	if err := <-heard; err != nil {
		return err
	}
	runs.print(out, tasks)
	return nil
}

// busy waits until somebody runs a task: the master, or one that is not. It returns "" if no task is
// left.
func busy(ctx context.Context, pool *task.Pool, master bool) (id, how string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("nobody has run a task for two minutes"))
	defer cancel()
	how = "a worker"
	if master {
		how = "the master"
	}
	for ctx.Err() == nil {
		st, err := pool.Status(ctx)
		if err != nil || len(st.Tasks) == 0 {
			return "", how, err
		}
		i := slices.IndexFunc(st.Tasks, func(t task.PendingStatus) bool {
			return t.Worker != "" && st.Master != "" && (t.Worker == st.Master) == master
		})
		if i >= 0 {
			return st.Tasks[i].Worker, how, nil
		}
	}
	return "", how, context.Cause(ctx)
}

// A tally is what the workers have told.
type tally struct {
	runs  map[string]int // of each worker
	again int            // runs of tasks whose worker was killed
}

// listen counts what the workers tell, until all have ended.
func (t *tally) listen(told io.Reader) error {
	t.runs = make(map[string]int)
	for {
		var id string
		var run int
		if _, err := fmt.Fscanln(told, &id, &run); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if t.runs[id]++; run > 1 {
			t.again++
		}
	}
}

func (t *tally) print(out io.Writer, tasks int) {
	fmt.Fprintln(out)
	for _, id := range slices.Sorted(maps.Keys(t.runs)) {
		fmt.Fprintf(out, "%s has run %d tasks\n", id, t.runs[id])
	}
	fmt.Fprintf(out, "%d tasks have their results; %d were run again, as their worker was killed\n", tasks, t.again)
}
