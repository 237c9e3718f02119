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

// overlap returns the worst run's, for people. That some runs could not be measured shows.
func (c *cell) overlap() string {
	missing := ""
	if len(c.Errors) > 0 {
		missing = fmt.Sprintf(" (%d of %d not measured)", len(c.Errors), len(c.Runs)+len(c.Errors))
	}
	if len(c.Runs) == 0 {
		return "?" + missing
	}
	worst := slices.MaxFunc(c.Runs, func(a, b outcome) int { return int(a.Overlap - b.Overlap) })
	if worst.Overlap == 0 {
		return "none" + missing
	}
	return "**" + show(worst.Overlap, worst.OverlapOpen) + "**" + missing
}

// overlaps returns in how many runs two acted as leader.
func (c *cell) overlaps() (n int) {
	for _, o := range c.Runs {
		if o.Overlap > 0 {
			n++
		}
	}
	return n
}

// vacancy returns the worst and the median run's, for people.
func (c *cell) vacancy() string {
	if len(c.Runs) == 0 {
		return "?"
	}
	runs := slices.SortedFunc(slices.Values(c.Runs), func(a, b outcome) int { return int(a.Vacancy - b.Vacancy) })
	worst, median := runs[len(runs)-1], runs[(len(runs)-1)/2]
	return show(worst.Vacancy, worst.VacancyOpen) + " / " + show(median.Vacancy, median.VacancyOpen)
}

// stops returns how the old leaders fared, for people.
func (c *cell) stops() string {
	var inTime, late, never, kept int
	var worst time.Duration
	for _, o := range c.Runs {
		switch {
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
	add(late, show(worst, false)+" late")
	add(never, "never")
	add(kept, "leads on")
	if parts == nil {
		return "–"
	}
	return strings.Join(parts, ", ")
}

// show writes a time for people; open is one that had not ended.
func show(d time.Duration, open bool) string {
	s := "0"
	switch {
	case open:
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
