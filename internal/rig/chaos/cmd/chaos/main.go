//go:build linux

// Command chaos runs candidates against a coordinator while faults hit both, and proves
// from what they leave behind that the guarantees held:
//
//	go run ./internal/rig/chaos/cmd/chaos -on zookeeper -for 30m
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
	"time"

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
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var o chaos.Options
	flag.StringVar(&o.On, "on", "local", "coordinator: "+strings.Join(chaos.Coordinators(), ", "))
	flag.DurationVar(&o.For, "for", 2*time.Minute, "how long there are faults")
	flag.Uint64Var(&o.Seed, "seed", 0, "of the schedule of faults; 0 is a random one")
	flag.StringVar(&o.Dir, "out", "", "folder for all that the run writes; by default a new one in the temporary folder")
	flag.BoolVar(&o.Heedless, "heedless", false, "run faulty workers, which write on without asking whether they still lead")
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
	r, err := chaos.Run(ctx, o)
	if err != nil {
		return err
	}
	fmt.Print("\n", r)
	if len(r.Violations) > 0 {
		return errors.New("guarantees were broken; see " + o.Dir)
	}
	return nil
}
