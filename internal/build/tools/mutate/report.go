package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// A count is what has become of the mutants of a package.
type count struct{ all, equivalent, killed, late, survived, unreached int }

// fraction is how many of the mutants that are not equivalent were killed.
func (c count) fraction() float64 {
	of := c.killed + c.survived + c.unreached
	if of == 0 {
		return 1
	}
	return float64(c.killed) / float64(of)
}

func (c *count) add(r result) {
	c.all++
	switch r.fate {
	case killed:
		c.killed++
		if r.late {
			c.late++
		}
	case survived:
		c.survived++
	case unreached:
		c.unreached++
	}
}

// report prints what was not killed, and a table, and returns the counts of all.
func report(out io.Writer, module string, results []result, equivalent map[string]int) count {
	slices.SortFunc(results, func(a, b result) int {
		return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.number, b.number))
	})
	for _, r := range results {
		if r.fate != killed {
			fmt.Fprintf(out, "%s:%d: %s (%d tests%s)\n    %s\n", r.file, r.line, r.fate, r.tests, map[bool]string{true: ", not all of them run"}[r.cut], r.name())
		}
	}
	counts := map[string]*count{}
	at := func(pkg string) *count {
		pkg = strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
		if counts[pkg] == nil {
			counts[pkg] = &count{}
		}
		return counts[pkg]
	}
	total := &count{}
	for _, r := range results {
		at(r.pkg).add(r)
		total.add(r)
	}
	for pkg, n := range equivalent {
		at(pkg).equivalent += n
		at(pkg).all += n
		total.equivalent += n
		total.all += n
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "mutants\tequivalent\tkilled\tby time\tsurvived\tnot reached\t\t")
	row := func(name string, c *count) {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%.1f %%\t  %s\n", c.all, c.equivalent, c.killed, c.late, c.survived, c.unreached, 100*c.fraction(), name)
	}
	for _, pkg := range slices.Sorted(maps.Keys(counts)) {
		row(pkg, counts[pkg])
	}
	if len(counts) != 1 {
		row("all", total)
	}
	w.Flush()
	return *total
}
