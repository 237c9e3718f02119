package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// A times says where the time went: how long each package took, and how much of the
// processors, its servers included, and how long each test that has no subtests.
type times struct {
	packages, tests []timed
	before          map[string]time.Duration // how long tests took in an earlier run, by name
	parents         map[string]bool          // tests with subtests, by key
}

type timed struct {
	name    string
	seconds float64
	cpu     float64 // of packages
}

// add takes the end of a test, or of a package where Test is empty. A subtest ends before
// its parent does.
func (t *times) add(e event) {
	if e.Test == "" {
		t.took(timed{name: e.Package, seconds: e.Elapsed})
		return
	}
	if t.parents == nil {
		t.parents = make(map[string]bool)
	}
	if i := strings.LastIndexByte(e.Test, '/'); i >= 0 {
		t.parents[key(event{Package: e.Package, Test: e.Test[:i]})] = true
	}
	if !t.parents[key(e)] {
		t.tests = append(t.tests, timed{name: e.Package + " " + e.Test, seconds: e.Elapsed})
	}
}

// used notes processor time, in seconds.
func (t *times) used(name string, cpu float64) { t.took(timed{name: name, cpu: cpu}) }

// processors returns the processor time of a process that has ended, and of those that it has waited for.
func processors(p *os.ProcessState) float64 {
	if p == nil {
		return 0
	}
	return (p.UserTime() + p.SystemTime()).Seconds()
}

// took notes a run of a package, which may be run twice, with the race detector and without.
func (t *times) took(p timed) {
	for i := range t.packages {
		if t.packages[i].name == p.name {
			t.packages[i].seconds += p.seconds
			t.packages[i].cpu += p.cpu
			return
		}
	}
	t.packages = append(t.packages, p)
}

func (t *times) merge(o times) {
	for _, p := range o.packages {
		t.took(p)
	}
	t.tests = append(t.tests, o.tests...)
}

// print prints the packages that took a second or more, and the slowest tests.
func (t *times) print(out io.Writer) {
	const slowest = 10
	longest := func(all []timed) []timed {
		slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
		i, _ := slices.BinarySearchFunc(all, 1.0, func(a timed, s float64) int { return cmp.Compare(s, a.seconds) })
		return all[:i]
	}
	show := func(title string, all []timed) {
		if len(all) == 0 {
			return
		}
		fmt.Fprintf(out, "\n== %s\n", title)
		for _, each := range all {
			if last, ok := t.before[each.name]; ok {
				fmt.Fprintf(out, "%7.1fs  %s (the last time %.1fs)\n", each.seconds, each.name, last.Seconds())
			} else if each.cpu > 0 {
				fmt.Fprintf(out, "%7.1fs %7.1fs  %s\n", each.seconds, each.cpu, each.name)
			} else {
				fmt.Fprintf(out, "%7.1fs  %s\n", each.seconds, each.name)
			}
		}
	}
	cpu := 0.0
	for _, p := range t.packages {
		cpu += p.cpu
	}
	show("time of each package, and of the processors", longest(t.packages))
	fmt.Fprintf(out, "         %7.1fs  in all\n", cpu)
	tests := longest(t.tests)
	show("the slowest tests", tests[:min(slowest, len(tests))])
	fmt.Fprintln(out)
}
