// Command stress runs one test many times, with load beside it, and says how often it
// fails:
//
//	stress [-n RUNS] [-p AT ONCE] [-load LOOPS] [-in FOLDER] TestName[/Subtest]
//
// It is for a test that fails once in hundreds of runs: repeating that test finds the
// cause sooner than repeating all of them. Run it in the folder of the module. What failed
// runs have printed is kept in a temporary folder. A run in which something was not judged, as the machine was busy, counts
// apart, as neither. It exits with 1 when a run has failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	s := stress{out: os.Stdout}
	flag.IntVar(&s.runs, "n", 200, "how many `runs`")
	flag.IntVar(&s.atOnce, "p", 2, "how many runs at `once`")
	flag.IntVar(&s.load, "load", 2, "how many busy `loops` beside them")
	in := flag.String("in", "./...", "the `folder` of the test, where several have one of that name, or where it is of another module: ./etcd, ./postgres")
	flag.Parse()
	if flag.NArg() != 1 || s.runs < 1 || s.atOnce < 1 || s.load < 0 {
		flag.Usage()
		os.Exit(2)
	}
	s.name = flag.Arg(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.build(ctx, *in); err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
		os.Exit(2)
	}
	failed, err := s.repeat(ctx)
	os.Remove(s.binary)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}
