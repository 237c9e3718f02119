package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/internal/coordtest"
)

func main() {
	if candidate.Is(os.Args) {
		os.Exit(candidate.Main(os.Args))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	coordtest.RemovePeers()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// command is the program.
func command(ctx context.Context, args []string, out, progress io.Writer) error {
	p := &plan{progress: progress}
	set := flag.NewFlagSet("faults", flag.ContinueOnError)
	set.SetOutput(progress)
	set.IntVar(&p.n, "n", 3, "runs for each row")
	set.IntVar(&p.jobs, "jobs", 2, "rows measured at a time; they mostly wait")
	set.DurationVar(&p.session, "session", 6*time.Second, "session time of all, in whole seconds")
	set.DurationVar(&p.patience, "patience", time.Minute, "how long without a change ends a run")
	only := set.String("only", ".*", "only faults whose name matches this regular expression as a whole")
	which := set.String("library", "", `only libraries such that this regular expression matches in "coordinator: name"`)
	set.StringVar(&p.json, "json", "", "also write everything measured to this file, row by row")
	from := set.String("from", "", "measure nothing, and print the table of a file that -json wrote")
	short := set.Bool("short", false, "with -from: only the times with two leaders, a row for each library")
	list := set.Bool("list", false, "measure nothing, and list faults and libraries")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *from != "" {
		r, err := load(*from)
		if err != nil {
			return err
		}
		if *short {
			r.short(out)
		} else {
			r.markdown(out)
		}
		return nil
	}
	if *list {
		printLists(out)
		return nil
	}
	if err := p.choose(*only, *which); err != nil {
		return err
	}
	if p.n < 1 || p.jobs < 1 || p.session < time.Second || p.session%time.Second != 0 {
		return errors.New("-n and -jobs must be at least 1, and -session whole seconds")
	}
	r, err := p.measure(ctx)
	if err != nil {
		return err
	}
	r.markdown(out)
	for _, c := range r.Cells {
		if len(c.Errors) > 0 {
			return errors.New("not all runs could be measured; see below the table")
		}
	}
	return context.Cause(ctx)
}

func printLists(w io.Writer) {
	for _, f := range faults {
		fmt.Fprintf(w, "%-12s %s: %s.\n", f.name, f.title, f.words)
	}
	fmt.Fprintln(w)
	for _, l := range libraries {
		fmt.Fprintf(w, "%-34s is told when %s.\n", l.id(), l.told)
	}
}
