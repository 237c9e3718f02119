package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

// covered and uncovered are the faults under the promise that no two lead, and the others.
func covered(f fault) bool   { return f.outside == "" }
func uncovered(f fault) bool { return f.outside != "" }

// markdown writes everything: the short tables, the long ones, and what is to be said of them.
func (r *report) markdown(w io.Writer) {
	r.summary(w)
	r.apart(w, "All that was measured, %s", r.long)
	r.remarks(w)
}

// short writes the times with two leaders, with a row for each library.
func (r *report) short(w io.Writer) {
	r.summary(w)
	r.remarks(w)
}

func (r *report) summary(w io.Writer) {
	fmt.Fprintln(w, r.from())
	if n := r.least(); n > 0 {
		_, high := bounds(0, n)
		fmt.Fprintf(w, "\nWhere a row has none in n = %d, two lead in at most %.0f %% of such runs, with a confidence of %.0f %%.\n", n, 100*high, 100*confidence)
	}
	r.apart(w, "For how long two acted as leader at the same time, worst run, %s", r.wide)
	if r.has(uncovered) {
		r.reasons(w)
	}
}

// apart writes two tables under a heading each: that of the faults that the promise covers, and
// that of the others.
func (r *report) apart(w io.Writer, heading string, table func(w io.Writer, of func(fault) bool)) {
	if r.has(covered) {
		fmt.Fprintf(w, "\n"+heading+":\n\n", "under the faults that the promise covers")
		table(w, covered)
	}
	if r.has(uncovered) {
		fmt.Fprintf(w, "\n"+heading+":\n\n", "under faults that the promise does not cover")
		table(w, uncovered)
	}
}

// reasons writes why the promise does not cover what it does not, each reason once.
func (r *report) reasons(w io.Writer) {
	var reasons []string
	of := make(map[string][]string) // reason to faults
	for _, f := range faults {
		if !uncovered(f) || !r.measured(f) {
			continue
		}
		if of[f.outside] == nil {
			reasons = append(reasons, f.outside)
		}
		of[f.outside] = append(of[f.outside], f.short)
	}
	fmt.Fprintln(w)
	for _, reason := range reasons {
		fmt.Fprintf(w, "- *%s*: %s\n", strings.Join(of[reason], "*, *"), reason)
	}
}

// has reports whether any of some faults was measured.
func (r *report) has(of func(fault) bool) bool {
	return slices.ContainsFunc(faults, func(f fault) bool { return of(f) && r.measured(f) })
}

func (r *report) measured(f fault) bool {
	return slices.ContainsFunc(r.Cells, func(c *cell) bool { return c.Fault == f.name })
}

// wide writes a table of some faults, a column each, with a row for each library that was
// measured under any of them.
func (r *report) wide(w io.Writer, of func(fault) bool) {
	var columns []fault
	head, rule := "| leader elected by |", "|---|"
	for _, f := range faults {
		if of(f) && r.measured(f) {
			columns = append(columns, f)
			head += " " + f.short + " |"
			rule += "---|"
		}
	}
	fmt.Fprintln(w, head+" two leaders in |")
	fmt.Fprintln(w, rule+"---|")
	for _, l := range libraries {
		name, row, bad, runs := "", "", 0, 0
		for _, f := range columns {
			c := r.of(f, l)
			switch {
			case c != nil:
				name = fmt.Sprintf("%s, on %s", c.library(), c.coordinator())
				row += " " + c.overlap() + " |"
				bad, runs = bad+len(c.both()), runs+len(c.followed())
			case f.possible(l):
				row += " not measured |"
			default:
				row += " – |"
			}
		}
		if name != "" {
			fmt.Fprintf(w, "| %s |%s %d of %d runs |\n", name, row, bad, runs)
		}
	}
}

// long writes a table of some faults, with a row for each fault on each library.
func (r *report) long(w io.Writer, of func(fault) bool) {
	fmt.Fprintf(w, "| fault | coordinator | library | two leaders in | with %.0f %% confidence | for how long, p50 / p90 / worst | nobody leads, p50 / p90 / worst | the old leader stops |\n", 100*confidence)
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for _, f := range faults {
		title := "**" + f.title + "**"
		for _, c := range r.Cells {
			if c.Fault == f.name && of(f) {
				fmt.Fprintf(w, "| %s | %s | %s | %s |\n", title, c.coordinator(), c.library(), c.figures())
				title = ""
			}
		}
	}
}

// figures is what a row of the long table says.
func (c *cell) figures() string {
	return strings.Join([]string{c.counted(), share(len(c.both()), len(c.followed())), spread(c.both()), spread(c.vacancies()), c.stops()}, " | ")
}

// remarks writes what could not be measured, what was not put on the leader as a whole, and what candidates complained of.
func (r *report) remarks(w io.Writer) {
	for _, c := range r.Cells {
		where := fmt.Sprintf("%s, %s on %s", c.Fault, c.library(), c.coordinator())
		for _, e := range c.Errors {
			fmt.Fprintf(w, "\nNot measured: %s: %s\n", where, e)
		}
		missed := 0
		for _, o := range c.Runs {
			if o.Missed {
				missed++
			}
		}
		if missed > 0 {
			fmt.Fprintf(w, "\nMeasured, and the leader had hung up before the answer came, so that it was only cut off: %s: in %d of %d runs\n", where, missed, len(c.Runs))
		}
		for _, o := range c.Runs {
			if o.Failed != "" {
				fmt.Fprintf(w, "\nMeasured, and a candidate complained: %s: %s\n", where, o.Failed)
			}
		}
	}
}

// library and coordinator are what was measured, with versions, for people.
func (c *cell) library() string { return strings.TrimSpace(c.Library + " " + c.Version) }
func (c *cell) coordinator() string {
	return strings.TrimSpace(candidate.Titles[c.Coordinator] + " " + c.Server)
}
