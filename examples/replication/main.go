// Replication is a replication bus in small: tasks that must always run, each on one machine at a
// time, while machines die.
//
//	go run ./examples/replication
//	go run ./examples/replication -url consul://localhost:8500 -machines 5 -rounds 20
//
// It starts tasks, and machines, which are processes of this program, on a coordinator. A machine
// is cold: it takes a task that nobody runs, processes one offset after the other, and records how
// far it has come. Again and again one of the machines is killed and started anew, or is stopped
// for a while, as a machine is that hangs. Where sessions end by time, others take its tasks
// meanwhile, and it must not record anything when it goes on. On local: a process that is stopped
// keeps what it holds, so its tasks stand still.
//
// At the end the run prints how many offsets were processed. It fails if one is missing, or if a
// position ever went back.
//
// machine.go is what a machine does. audit.go is how the run checks them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/succession-dev/succession"
	_ "github.com/succession-dev/succession/consul"
	_ "github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/examples/internal/child"
	_ "github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/recipes/task"
	_ "github.com/succession-dev/succession/zookeeper"
)

// tables are what is replicated; there is a task for each.
var tables = []string{"customers", "invoices", "orders"}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	url := flag.String("url", "", "the coordinator, such as etcd://localhost:2379; empty is a temporary folder of this machine")
	machines := flag.Int("machines", 3, "how many there are")
	rounds := flag.Int("rounds", 6, "how often one of them is killed or stopped")
	pause := flag.Duration("pause", 2*time.Second, "the time between two of these")
	id := flag.String("machine", "", "used by the run itself: be the machine with this ID")
	flag.Parse()

	var err error
	if *id != "" {
		err = process(ctx, *url, *id)
	} else {
		err = run(ctx, os.Stdout, *url, *machines, *rounds, *pause)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "replication:", err)
		os.Exit(1)
	}
}

// run is the whole example. It fails if it sees what package task promises not to happen.
func run(ctx context.Context, out io.Writer, url string, machines, rounds int, pause time.Duration) error {
	if machines < 2 {
		return errors.New("two machines are needed, so that one can die")
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
	a, err := newAudit(ctx, task.NewStandby(b, bus, nil))
	if err != nil {
		return err
	}
	told, tells, err := os.Pipe()
	if err != nil {
		return err
	}
	heard := make(chan error, 1)
	go func() { heard <- a.listen(told) }()
	for _, table := range tables {
		if err := a.console.Start(ctx, table); err != nil {
			return err
		}
	}

	var all []*child.Process
	end := func() {
		for _, p := range all {
			p.Stop()
		}
		all = nil
		tells.Close()
	}
	defer end()
	for i := range machines {
		id := fmt.Sprint("machine-", i+1)
		p := &child.Process{ID: id, Args: []string{"-machine", id, "-url", url}, Out: tells}
		if err := p.Start(); err != nil {
			return err
		}
		all = append(all, p)
	}
	if err := a.allRun(ctx, "at the beginning"); err != nil {
		return err
	}
	for round := range rounds {
		p := all[round%machines]
		if err := a.goesOn(ctx, pause); err != nil {
			return err
		}
		how := "is killed"
		if round%2 == 0 || freeze(p.Process) != nil {
			p.Crash()
			err = p.Start()
		} else {
			how = "hangs"
			err = a.goesOn(ctx, pause)
			err = errors.Join(err, thaw(p.Process))
		}
		if err != nil {
			return err
		}
		if err := a.allRun(ctx, p.ID+" "+how); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %s\n", p.ID, how)
		a.print(ctx, out)
	}
	for _, table := range tables {
		if err := a.console.Stop(ctx, table); err != nil {
			return err
		}
	}
	end()
	if err := <-heard; err != nil {
		return err
	}
	return a.figures(ctx, out)
}

// process is what a machine's process runs. It ends when its standard input ends.
func process(ctx context.Context, url, id string) error {
	ctx, cancel := child.Context(ctx)
	defer cancel()
	b, err := succession.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer b.Close()
	err = machine(ctx, b, id, func(table string, token, offset uint64) { fmt.Println(table, token, offset) })
	if ctx.Err() != nil {
		return nil
	}
	return err
}
