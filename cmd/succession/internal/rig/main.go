//go:build linux

// The command runs candidates against coordinators, while faults hit both. It judges from
// what they leave behind whether the guarantees held:
//
//	go run -C cmd/succession ./internal/rig chaos -on zookeeper -for 30m
//	go run -C cmd/succession ./internal/rig rehearsal -from zookeeper -to etcd -for 30m
//
// Packages chaos and rehearsal say what each of the two does. The command prints a summary,
// and exits with 1 if a guarantee was broken. It is in this module for its drivers.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/succession-dev/succession/internal/rig/arena"
	"github.com/succession-dev/succession/internal/rig/chaos"
	"github.com/succession-dev/succession/internal/rig/rehearsal"
	"github.com/succession-dev/succession/internal/rig/worker"
)

// A run makes a run, and returns its summary and how many guarantees were broken.
type run func(context.Context, arena.Options) (summary fmt.Stringer, broken int, err error)

func main() {
	what, args := "", os.Args[1:]
	if len(args) > 0 {
		what, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet(what, flag.ExitOnError)
	var begin run
	switch what {
	case "worker":
		os.Exit(worker.Main(args, os.Stdin))
	case "chaos":
		begin = chaosRun(flags)
	case "rehearsal":
		begin = rehearsalRun(flags)
	default:
		fmt.Fprintf(os.Stderr, "there is no run %q; there are chaos and rehearsal\n", what)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, flags, args, begin); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

func start(ctx context.Context, flags *flag.FlagSet, args []string, begin run) error {
	o := arena.Options{Out: os.Stdout}
	flags.Uint64Var(&o.Seed, "seed", 0, "of the faults; 0 is a random one")
	flags.StringVar(&o.Dir, "out", "", "folder for all that the run writes; by default a new one in the temporary folder")
	_ = flags.Parse(args) // it exits on an error
	if flags.NArg() > 0 {
		return fmt.Errorf("it takes no arguments, and got %q", flags.Args())
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	o.Worker = []string{exe, "worker"}
	if o.Seed == 0 {
		o.Seed = rand.Uint64N(1_000_000)
	}
	if o.Dir, err = arena.Folder(o.Dir); err != nil {
		return err
	}
	fmt.Println("writing to", o.Dir)
	summary, broken, err := begin(ctx, o)
	if err != nil {
		return err
	}
	fmt.Print("\n", summary)
	if broken > 0 {
		return fmt.Errorf("guarantees were broken; see %s", o.Dir)
	}
	return nil
}

func chaosRun(flags *flag.FlagSet) run {
	var o chaos.Options
	flags.StringVar(&o.On, "on", "local", "coordinator: "+strings.Join(arena.Coordinators(), ", "))
	flags.DurationVar(&o.For, "for", 2*time.Minute, "how long there are faults")
	heedless := flags.Bool("heedless", false, "run faulty workers, which write on without asking whether they still lead")
	return func(ctx context.Context, common arena.Options) (fmt.Stringer, int, error) {
		o.Options, o.Heedless = common, *heedless
		r, err := chaos.Run(ctx, o)
		if err != nil {
			return nil, 0, err
		}
		return r, len(r.Violations), nil
	}
}

func rehearsalRun(flags *flag.FlagSet) run {
	var o rehearsal.Options
	names := strings.Join(arena.Coordinators(), ", ")
	flags.StringVar(&o.From, "from", "zookeeper", "coordinator to begin with: "+names)
	flags.StringVar(&o.To, "to", "etcd", "coordinator to move to: "+names)
	flags.DurationVar(&o.For, "for", 0, "begin rounds, there and back, until then; there is one at least")
	flags.IntVar(&o.Nodes, "nodes", 3, "servers of each coordinator")
	flags.BoolVar(&o.Ungated, "ungated", false, "remove the gate by hand and start a candidate with -to alone, to see that caught")
	return func(ctx context.Context, common arena.Options) (fmt.Stringer, int, error) {
		bin, err := os.MkdirTemp("", "rehearsal-")
		if err != nil {
			return nil, 0, err
		}
		defer os.RemoveAll(bin)
		command, err := rehearsal.BuildCommand(ctx, bin)
		if err != nil {
			return nil, 0, err
		}
		o.Options, o.Command = common, []string{command}
		r, err := rehearsal.Rehearse(ctx, o)
		if err != nil {
			return nil, 0, err
		}
		return r, len(r.Violations), nil
	}
}
