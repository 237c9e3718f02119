package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/bench/internal/program"
	"github.com/succession-dev/succession/bench/internal/section"
)

func main() {
	if candidate.Is(os.Args) {
		os.Exit(candidate.Main(os.Args, nil))
	}
	ctx, stop := program.Context()
	defer stop()
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
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
	set.IntVar(&p.n, "n", 3, "runs that each row is to have in the end; what -json has already counts")
	set.IntVar(&p.jobs, "jobs", 5, "runs at a time; they mostly wait")
	seed := set.Uint64("seed", uint64(rand.Uint32()), "what the moments of the faults are drawn with")
	set.DurationVar(&p.session, "session", 6*time.Second, "session time of all, in whole seconds")
	set.DurationVar(&p.patience, "patience", 30*time.Second, "how long without a change ends a run; twice that while nobody leads")
	only := set.String("only", ".*", "only faults whose name matches this regular expression as a whole")
	which := set.String("library", "", `only libraries such that this regular expression matches in "coordinator: name"; if empty, all, those on Kubernetes and Redis only where the server is there`)
	set.StringVar(&p.json, "json", "", "keep everything measured in this file, and go on with what it has")
	from := set.String("from", "", "measure nothing, and print the tables of a file that -json wrote")
	short := set.Bool("short", false, "only the times with two leaders, a row for each library")
	file := set.String("into", "", "print into this file, between its lines <!-- table --> and <!-- /table -->; only what is whole")
	list := set.Bool("list", false, "measure nothing, and list faults and libraries")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *list {
		printLists(out)
		return nil
	}
	p.seed = uint32(*seed)
	var r *report
	var err error
	if *from != "" {
		r, err = read(*from)
	} else if err = p.choose(*only, *which); err == nil {
		r, err = p.measure(ctx)
	}
	if err != nil {
		return err
	}
	var text strings.Builder
	if *short {
		r.short(&text)
	} else {
		r.markdown(&text)
	}
	if *file == "" {
		_, err = io.WriteString(out, text.String())
	} else if err = r.whole(); err == nil {
		err = section.Write(*file, "table", text.String())
	}
	return errors.Join(err, r.failed(), context.Cause(ctx))
}

func printLists(w io.Writer) {
	for _, f := range faults {
		outside := ""
		if !covered(f) {
			outside = " (not covered by the promise)"
		}
		fmt.Fprintf(w, "%-12s %s%s: %s.\n", f.name, f.title, outside, f.words)
	}
	fmt.Fprintln(w)
	width := 0
	for _, l := range libraries {
		width = max(width, len(l.ID()))
	}
	for _, l := range libraries {
		fmt.Fprintf(w, "%-*s acts while %s.\n", width, l.ID(), l.Asks)
	}
}
