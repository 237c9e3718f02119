//go:build linux

// Command rehearsal moves an election that is in use from one coordinator to another and
// back, again and again, with the command succession, while faults hit candidates,
// servers and the command itself, and proves from what they leave behind that there was
// one leader all the time:
//
//	go run ./internal/rig/chaos/cmd/rehearsal -for 30m -from zookeeper -to etcd
//
// It prints a summary, and exits with 1 where a guarantee was broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/succession-dev/succession/internal/rig/chaos"
	"github.com/succession-dev/succession/internal/rig/chaos/worker"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		os.Exit(worker.Main(os.Args[2:], os.Stdin))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "rehearsal:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var o chaos.RehearsalOptions
	names := strings.Join(chaos.Coordinators(), ", ")
	flag.StringVar(&o.From, "from", "zookeeper", "coordinator to begin with: "+names)
	flag.StringVar(&o.To, "to", "etcd", "coordinator to move to: "+names)
	flag.DurationVar(&o.For, "for", 0, "begin rounds, there and back, until then; there is one at least")
	flag.IntVar(&o.Nodes, "nodes", 3, "servers of each coordinator")
	flag.Uint64Var(&o.Seed, "seed", 0, "of the faults; 0 is a random one")
	flag.StringVar(&o.Dir, "out", "", "folder for all that the run writes; by default a new one in the temporary folder")
	flag.BoolVar(&o.Ungated, "ungated", false, "remove the gate by hand and start a candidate with -to alone, to see that caught")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("it takes no arguments, and got %q", flag.Args())
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	o.Worker, o.Out = []string{exe, "worker"}, os.Stdout
	if o.Seed == 0 {
		o.Seed = rand.Uint64N(1_000_000)
	}
	if o.Dir, err = chaos.Folder(o.Dir); err != nil {
		return err
	}
	fmt.Println("writing to", o.Dir)
	bin, err := os.MkdirTemp("", "rehearsal-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	command, err := chaos.BuildCommand(ctx, bin)
	if err != nil {
		return err
	}
	o.Command = []string{command}
	r, err := chaos.Rehearse(ctx, o)
	if err != nil {
		return err
	}
	fmt.Print("\n", r)
	if len(r.Violations) > 0 {
		return errors.New("guarantees were broken; see " + o.Dir)
	}
	return nil
}
