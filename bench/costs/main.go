package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	if err := command(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "costs:", err)
		os.Exit(1)
	}
}

// A bench is what to measure.
type bench struct {
	what                                           *regexp.Regexp // measures
	chosen                                         []candidate.Library
	sizes, processes, waiters, elections, replicas numbers
	items, members                                 numbers
	times, runs, candidates, joins                 int
	together                                       bool
	session, limit                                 time.Duration
	disk                                           bool

	mu       sync.Mutex
	progress io.Writer
	keep     func(*figure) error
	unkept   error
}

// measured keeps a figure, whether or not measuring it has failed. One that was interrupted is not kept: the file may have what an
// earlier run has measured.
func (b *bench) measured(ctx context.Context, f *figure, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	how := "measured"
	if err != nil {
		f.Error = err.Error()
		how = "not measured: " + f.Error
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(b.progress, "%s, %s: %s, %d: %s\n", f.Measure, f.Coordinator, f.Library, f.N, how)
	b.unkept = errors.Join(b.unkept, b.keep(f))
}

// numbers are a flag: sizes with commas between.
type numbers []int

func (n *numbers) String() string { return strings.Trim(fmt.Sprint([]int(*n)), "[]") }

func (n *numbers) Set(text string) error {
	*n = nil
	for _, t := range strings.Split(text, ",") {
		i, err := strconv.Atoi(t)
		if err != nil || i < 1 {
			return fmt.Errorf("%q is not a positive number", t)
		}
		*n = append(*n, i)
	}
	return nil
}

// command is the program.
func command(ctx context.Context, args []string, out, progress io.Writer) error {
	b := &bench{
		sizes: numbers{2, 5, 100, 1000, 10000}, processes: numbers{1, 5}, waiters: numbers{100, 1000}, replicas: numbers{shownReplicas}, elections: numbers{100, 1000},
		items: shownQueues, members: shownGroups,
		progress: progress,
	}
	set := flag.NewFlagSet("costs", flag.ContinueOnError)
	set.SetOutput(progress)
	what := set.String("measure", ".*", "only measures whose name matches this regular expression as a whole: "+strings.Join(measures, ", "))
	which := set.String("library", "", `only libraries such that this regular expression matches in "coordinator: name"; if empty, all, those on Kubernetes only where its server is there`)
	set.Var(&b.sizes, "n", "handover: candidates in line")
	set.Var(&b.processes, "processes", "handover: processes that the candidates are dealt to")
	set.IntVar(&b.times, "times", 200, "handover, lock, contest: how many for each row")
	set.Var(&b.items, "items", "queue: items that stand")
	set.Var(&b.members, "members", "group: members that follow")
	set.IntVar(&b.joins, "joins", 20, "group: how often one more joins")
	set.IntVar(&b.runs, "runs", 5, "failover: how many for each row")
	set.Var(&b.waiters, "waiters", "rest: candidates that wait")
	set.Var(&b.replicas, "replicas", "server: candidates, each in a process of its own")
	set.Var(&b.elections, "elections", "many: how many")
	set.IntVar(&b.candidates, "candidates", 2, "many: of each election")
	set.BoolVar(&b.together, "together", false, "many: all in one process, and not in two")
	set.DurationVar(&b.session, "session", 10*time.Second, "session time of all but handovers, in whole seconds")
	set.DurationVar(&b.limit, "limit", time.Minute, "how long a line may take to assemble")
	set.BoolVar(&b.disk, "disk", true, "whether servers wait for their disk")
	file := set.String("json", "", "keep the figures in this file, beside those that it has")
	from := set.String("from", "", "measure nothing, and show the figures of a file that -json wrote")
	short := set.Bool("short", false, fmt.Sprintf("show only the handovers of elections with %d candidates in as many processes", shortN))
	recipes := set.Bool("recipes", false, "show only locks, queues and groups")
	page := set.String("page", "", "show only what the page of this coordinator has: handovers, failovers, lines at rest, and what these cost the server")
	text := set.String("into", "", "show them in this file, between its lines <!-- costs --> and <!-- /costs -->; only what is whole")
	pictures := set.String("svg", "", "also draw pictures, into this folder")
	if err := set.Parse(args); err != nil {
		return err
	}
	var err error
	if b.what, err = regexp.Compile("^(" + *what + ")$"); err != nil {
		return fmt.Errorf("-measure: %w", err)
	}
	if b.candidates < 1 {
		return errors.New("-candidates: nobody stands for election")
	}
	if slices.Min(b.sizes) < 2 {
		return errors.New("-n: nobody follows where one stands in line")
	}
	figures, err := load(or(*from, *file))
	if err != nil {
		return err
	}
	b.keep = func(f *figure) error {
		figures.put(f)
		if *file == "" {
			return nil
		}
		return figures.save(*file)
	}
	if *from == "" {
		if b.chosen, err = candidate.Choose(*which, progress); err != nil {
			return err
		}
		b.chosen = slices.DeleteFunc(b.chosen, func(l candidate.Library) bool { return l.FaultsOnly })
		err = b.measure(ctx)
	}
	show := figures.markdown
	whole := figures.whole
	if *short {
		show = figures.short
	}
	if *recipes {
		show, whole = figures.recipes, figures.wholeRecipes
	}
	if *page != "" {
		show = func(w io.Writer) { figures.page(w, *page) }
		whole = func() error { return figures.wholePage(*page) }
	}
	if *text == "" {
		show(out)
	} else if err == nil {
		if err = whole(); err == nil {
			var table strings.Builder
			show(&table)
			err = section.Write(*text, "costs", table.String())
		}
	}
	if *pictures != "" {
		err = errors.Join(err, figures.draw(*pictures))
	}
	return err
}

// measure measures everything that is chosen.
func (b *bench) measure(ctx context.Context) (err error) {
	do := func(measure string, do func() error) {
		if b.what.MatchString(measure) && err == nil {
			err = errors.Join(do(), b.unkept, context.Cause(ctx))
		}
	}
	for _, c := range candidate.Coordinators {
		libraries := b.libraries(func(l candidate.Library) bool { return l.Coordinator == c })
		for _, n := range b.sizes {
			for _, k := range b.processes {
				if len(libraries) > 0 {
					do(handover, func() error { return b.handovers(ctx, c, libraries, n, k) })
				}
			}
		}
		if locks := slices.DeleteFunc(slices.Clone(libraries), func(l candidate.Library) bool { return !isLock(l) }); len(locks) > 0 {
			do(lock, func() error { return b.locks(ctx, c, locks) })
			do(contest, func() error { return b.contests(ctx, c, locks) })
		}
		if len(libraries) == 0 || c == candidate.Kubernetes {
			continue
		}
		for _, n := range b.items {
			do(queueing, func() error { return b.queues(ctx, c, n) })
		}
		for _, n := range b.members {
			do(grouping, func() error { return b.groups(ctx, c, n) })
		}
	}
	elections := b.libraries(func(l candidate.Library) bool { return !l.CostsOnly || l.Coordinator == candidate.Local })
	do(failover, func() error { return b.alone(ctx, failover, elections, jobs, 1, b.failovers) })
	for _, n := range b.waiters {
		do(rest, func() error { return b.alone(ctx, rest, elections, jobs, n, b.rest) })
	}
	ourProcesses := slices.DeleteFunc(elections, func(l candidate.Library) bool { return l.Peer != "" })
	for _, n := range b.replicas {
		do(server, func() error {
			return b.alone(ctx, server, slices.DeleteFunc(ourProcesses, func(l candidate.Library) bool { return l.Coordinator == candidate.Local }), 1, n, b.server)
		})
	}
	for _, n := range b.elections {
		do(many, func() error { return b.alone(ctx, many, ourProcesses, 1, n, b.many) })
	}
	return err
}

// libraries returns those of the chosen that pick picks.
func (b *bench) libraries(pick func(candidate.Library) bool) (out []candidate.Library) {
	for _, l := range b.chosen {
		if pick(l) {
			out = append(out, l)
		}
	}
	return out
}
