// Command mutate changes the program in small ways, and looks whether its tests notice:
//
//	mutate -with "PACKAGES FLAGS" [-with …] [-equivalent FILE] [-since REVISION] [-sample N] PACKAGES
//
// It is run at the root of a module. PACKAGES are changed; the tests are those of the packages after -with, run with the
// flags there. What was changed and is noticed by no test is printed, and then a table. The tests of ./test mutants, and
// what their figures are, are in docs/tested.md.
//
// A mutant is the program with one change:
//
//   - a condition never holds, or always; one half of a && b or a || b is gone; a truth value is negated
//   - < is <=, and so on; + is -; min is max; a time is before another instead of after it
//   - a number is one more, a larger one or a duration is twice as much
//   - no error is returned where there is one
//   - a call, or an assignment to a field, is left out; break is continue
//
// Nothing is changed in what people alone read: logs, traces, messages, methods such as String. Neither are mutexes: what
// guards these is the race detector.
//
// All mutants are compiled at once, into one program that is any of them (see package mutant). So each test is
// compiled once, and a mutant costs only the run of some tests: of those that reach it, the quick ones first, until one
// fails. Whether a test reaches it, a run without a mutant has shown before. A test that fails as the mutant is run again
// without it, and counts only if it passes then. A test that takes several times what it usually takes has failed.
//
// Why not a tool that exists: gremlins, go-mutesting and ooze compile for each mutant, and gremlins runs only the tests
// of its own package, while most of ours are judged by rules in other packages; go-mutants, which compiles once, runs
// whole test programs, of which the suite's takes minutes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"sync"
	"syscall"
	"time"
)

type options struct {
	suites            []suite
	equivalent, since string
	sample            int
	seed              uint64
	run, log          string
	list, units       bool
	atOnce            int
	least             float64
	most, long        time.Duration
	packages          []string
}

func main() {
	var o options
	flag.Func("with", "`packages` whose tests are run, and flags for them", func(s string) error {
		suite, err := parseSuite(s)
		o.suites = append(o.suites, suite)
		return err
	})
	flag.StringVar(&o.equivalent, "equivalent", "", "a `file` that names mutants which do what the program does, with the reason")
	flag.StringVar(&o.since, "since", "", "only lines that are not as they were at this `revision`")
	flag.IntVar(&o.sample, "sample", 0, "only so `many`, drawn at random")
	flag.Uint64Var(&o.seed, "seed", 0, "how they are drawn; 0 draws otherwise each time")
	flag.StringVar(&o.run, "run", "", "only those whose name matches this `expression`")
	flag.StringVar(&o.log, "log", "", "a `file` for the result of each mutant, when it is known")
	flag.BoolVar(&o.list, "list", false, "only print the mutants")
	flag.BoolVar(&o.units, "units", false, "also print what each test takes and reaches")
	flag.IntVar(&o.atOnce, "p", 2, "how many tests at `once`")
	flag.Float64Var(&o.least, "least", 95, "exit with 1 if fewer `percent` are killed, of all packages together")
	flag.DurationVar(&o.most, "most", time.Minute, "how much of the processor the tests of one mutant may take, as they take without it")
	flag.DurationVar(&o.long, "long", 2*time.Second, "what takes more of the processor is run in portions")
	flag.Parse()
	o.packages = flag.Args()
	if len(o.packages) == 0 || len(o.suites) == 0 && !o.list {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := o.do(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// do reports whether enough mutants were killed.
func (o *options) do(ctx context.Context) (bool, error) {
	equivalent, err := readEquivalent(o.equivalent)
	if err != nil {
		return false, err
	}
	wanted, err := o.wanted(ctx)
	if err != nil {
		return false, err
	}
	seen, files := map[string]bool{}, map[string]bool{}
	same := map[string]int{} // by package
	counted := map[string]bool{}
	p, err := mutate(ctx, o.packages, func(m *mutant) bool {
		name := m.name()
		seen[name], files[m.file] = true, true
		if !wanted(m) {
			return false
		}
		if _, ok := equivalent[name]; ok {
			if !counted[name] {
				counted[name] = true
				same[m.pkg]++
			}
			return false
		}
		return true
	})
	if err != nil {
		return false, err
	}
	old := stale(equivalent, seen, files)
	for _, name := range old {
		fmt.Printf("%s names a mutant that there is not: %s\n", o.equivalent, name)
	}
	if o.list {
		for _, m := range p.mutants {
			fmt.Printf("%s:%d: %s\n", m.file, m.line, m.name())
		}
		fmt.Printf("%d mutants\n", len(p.mutants))
		return len(old) == 0, nil
	}
	if len(p.mutants) == 0 {
		fmt.Println("there is no mutant to be killed")
		return len(old) == 0, nil
	}
	results, err := o.kill(ctx, p)
	if err != nil {
		return false, err
	}
	if o.sample > 0 {
		same = nil
	}
	total := report(os.Stdout, p.module, results, same)
	if 100*total.fraction() < o.least {
		fmt.Printf("%.1f %% are killed in all; it must be %v %%. What is not killed stands above: test it, or name it in %s with the reason why it does the same\n",
			100*total.fraction(), o.least, o.equivalent)
		return false, nil
	}
	return len(old) == 0, nil
}

// wanted returns which mutants the options ask for.
func (o *options) wanted(ctx context.Context) (func(*mutant) bool, error) {
	name, err := regexp.Compile(o.run)
	if err != nil {
		return nil, err
	}
	if o.since == "" {
		return func(m *mutant) bool { return name.MatchString(m.name()) }, nil
	}
	changed, err := changedSince(ctx, o.since)
	return func(m *mutant) bool { return changed[m.file][m.line] && name.MatchString(m.name()) }, err
}

// kill runs the tests.
func (o *options) kill(ctx context.Context, p *program) ([]result, error) {
	began := time.Now()
	tell := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &runner{dir: dir, atOnce: o.atOnce, long: o.long, tell: tell}
	binaries, err := r.build(ctx, p, o.suites)
	if err != nil {
		return nil, err
	}
	units, failed, err := r.survey(ctx, binaries)
	if err != nil {
		return nil, err
	}
	for _, f := range failed {
		tell("left out, as it fails without a mutant: %s", f)
	}
	if o.units {
		for _, u := range units {
			fmt.Printf("%v\t%v\t%d mutants\t%v\n", u.processor.Round(time.Millisecond), u.time.Round(time.Millisecond), len(u.reached), u)
		}
	}
	by := reaching(units)
	mutants := p.mutants
	if o.sample > 0 {
		seed := o.seed
		for seed == 0 {
			seed = rand.Uint64()
		}
		fmt.Printf("a sample of %d of %d mutants, drawn with -seed %d\n", min(o.sample, len(mutants)), len(mutants), seed)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
		mutants = mutants[:min(o.sample, len(mutants))]
	}
	log, err := os.OpenFile(o.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if o.log == "" {
		log, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	if log != nil {
		defer log.Close()
	}
	var mu sync.Mutex
	var results []result
	dead, told := 0, time.Now()
	each(o.atOnce, mutants, func(m *mutant) {
		if ctx.Err() != nil {
			return
		}
		res := r.kill(ctx, m, by[m.number], o.most)
		mu.Lock()
		defer mu.Unlock()
		results = append(results, res)
		if res.fate == killed {
			dead++
		}
		if log != nil {
			fmt.Fprintf(log, "%s\t%d\t%s\t%d tests\tcut %v\t%v\t%s\n", res.fate, m.line, m.name(), res.tests, res.cut, res.took.Round(time.Millisecond), res.by)
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			tell("%d of %d mutants: %d killed", len(results), len(mutants), dead)
		}
	})
	if ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), context.Cause(ctx))
	}
	return results, nil
}
