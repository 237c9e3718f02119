package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A cell is one fault on one library, several times.
type cell struct {
	Fault       string    `json:"fault"`
	Coordinator string    `json:"coordinator"`
	Library     string    `json:"library"`
	Version     string    `json:"version"`
	Server      string    `json:"server"` // version
	Runs        []outcome `json:"runs"`
	Errors      []string  `json:"errors,omitempty"` // of runs that could not be measured
}

// tried is how many runs there were, measured or not.
func (c *cell) tried() int { return len(c.Runs) + len(c.Errors) }

// followed are the runs that can show two leaders: those in which somebody followed a leader that was paused, and all of other faults.
func (c *cell) followed() []outcome {
	return slices.DeleteFunc(slices.Clone(c.Runs), func(o outcome) bool { return o.Old == oldPaused })
}

// A length is a time that a run showed; open is one that had not ended.
type length struct {
	time time.Duration
	open bool
}

// overlaps and vacancies are the lengths of the runs that can show any, the shortest first.
func (c *cell) overlaps() []length {
	return lengths(c.followed(), func(o outcome) length { return length{o.Overlap, o.OverlapOpen} })
}

func (c *cell) vacancies() []length {
	return lengths(c.Runs, func(o outcome) length { return length{o.Vacancy, o.VacancyOpen} })
}

func lengths(runs []outcome, of func(outcome) length) (all []length) {
	for _, o := range runs {
		all = append(all, of(o))
	}
	slices.SortFunc(all, func(a, b length) int { return int(a.time - b.time) })
	return all
}

// both are the lengths of those runs in which two acted as leader.
func (c *cell) both() []length {
	return slices.DeleteFunc(c.overlaps(), func(l length) bool { return l.time == 0 })
}

// overlap returns the worst run's, for people. That some runs could not be measured shows.
func (c *cell) overlap() string {
	missing := ""
	if len(c.Errors) > 0 {
		missing = fmt.Sprintf(" (%d of %d not measured)", len(c.Errors), c.tried())
	}
	all := c.overlaps()
	switch {
	case len(c.Runs) == 0:
		return "?" + missing
	case len(all) == 0:
		return "nobody followed" + missing
	}
	worst := all[len(all)-1]
	if worst.time == 0 {
		return "none" + missing
	}
	return "**" + worst.String() + "**" + missing
}

// counted returns in how many of the runs that can show it two acted as leader, for people.
func (c *cell) counted() string {
	both, runs := len(c.both()), len(c.followed())
	if runs == 0 {
		return "–"
	}
	s := fmt.Sprintf("%d of %d", both, runs)
	if both > 0 {
		s = "**" + s + "**"
	}
	return s
}

// spread writes lengths for people, of which the shortest is the first: the median, the one that nine in ten do not
// exceed, and the longest.
func spread(all []length) string {
	if len(all) == 0 {
		return "–"
	}
	// The smallest such that at least that share of all is no longer.
	at := func(tenths int) string { return all[(tenths*len(all)+9)/10-1].String() }
	return at(5) + " / " + at(9) + " / " + at(10)
}

// stops returns how the old leaders fared, for people.
func (c *cell) stops() string {
	var inTime, late, never, kept, still int
	var worst time.Duration
	for _, o := range c.Runs {
		switch {
		case o.Old == oldPaused:
			still++
		case o.Old == oldKept:
			kept++
		case o.Old == oldNever:
			never++
		case o.Old == oldStopped && o.Late > 0:
			late++
			worst = max(worst, o.Late)
		case o.Old == oldStopped:
			inTime++
		}
	}
	var parts []string
	add := func(n int, what string) {
		if n == len(c.Runs) && n > 0 {
			parts = append(parts, what)
		} else if n > 0 {
			parts = append(parts, fmt.Sprintf("%d× %s", n, what))
		}
	}
	add(inTime, "in time")
	add(late, "up to "+length{worst, false}.String()+" late")
	add(never, "never")
	add(kept, "leads on")
	add(still, "still paused")
	if parts == nil {
		return "–"
	}
	return strings.Join(parts, ", ")
}

// String writes a length for people.
func (l length) String() string {
	s, d := "0", l.time
	switch {
	case l.open:
		s = fmt.Sprintf("> %.0f s", d.Truncate(time.Second).Seconds())
	case d >= 10*time.Second:
		s = fmt.Sprintf("%.0f s", d.Seconds())
	case d >= 100*time.Millisecond:
		s = fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Millisecond:
		s = fmt.Sprintf("%d ms", d.Milliseconds())
	case d > 0:
		s = "< 1 ms"
	}
	return s
}
