package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

// The line whose handovers the short table has.
const (
	shortN         = 5
	shortProcesses = 5
)

// short writes a table of the handovers of elections in one line, with where they come from.
func (b *book) short(w io.Writer) {
	figures := b.shortFigures()
	dates, times := make(map[string]bool), make(map[string]bool)
	for _, f := range figures {
		dates[f.Date], times[fmt.Sprint(len(f.Times))] = true, true
	}
	disk := "one server, which waits for its disk"
	if slices.ContainsFunc(figures, func(f *figure) bool { return f.NoDisk }) {
		disk = "one server, which does not wait for its disk"
	}
	fmt.Fprintf(w, "%s, %s handovers for each row, %d candidates in as many processes, %s, %s. In milliseconds:\n\n",
		listed(dates), listed(times), shortN, disk, strings.Join(b.Machine, ", "))
	fmt.Fprintln(w, "| leader elected by | p50 | p99 | p50 / floor | p99 / floor | p50 of succession / this | p99 of succession / this |\n"+
		"|---|---|---|---|---|---|---|")
	for _, f := range figures {
		name := f.row() + ", on " + f.coordinator()
		if f.Library == candidate.Floor {
			name = "*the floor of " + f.coordinator() + "*"
		}
		aboveFloor, besideOurs := f.ratios(figures)
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s |\n", name, ms(f.quantile(0.5)), ms(f.quantile(0.99)),
			or(aboveFloor[0], "–"), or(aboveFloor[1], "–"), or(besideOurs[0], "–"), or(besideOurs[1], "–"))
	}
}

// shortFigures returns those that the short table shows.
func (b *book) shortFigures() []*figure {
	return slices.DeleteFunc(b.of(handover), func(f *figure) bool {
		return f.N != shortN || f.Processes != shortProcesses || len(f.Times) == 0 ||
			f.Library != candidate.Floor && !slices.ContainsFunc(shortLibraries(), f.of)
	})
}

// shortLibraries are the elections whose handovers are measured.
func shortLibraries() []candidate.Library {
	return slices.DeleteFunc(slices.Clone(candidate.Libraries), func(l candidate.Library) bool {
		return l.FaultsOnly || l.CostsOnly && l.Coordinator != candidate.Local || l.Most == 1
	})
}

// of reports whether a figure is of the library.
func (f *figure) of(l candidate.Library) bool {
	return f.Coordinator == l.Coordinator && f.Library == l.Name
}

// whole returns an error unless the short table has all rows, each of as many handovers on servers
// that waited for their disk. Kubernetes may be missing as a whole: its server takes minutes to
// build.
func (b *book) whole() error {
	figures := b.shortFigures()
	if len(figures) == 0 {
		return fmt.Errorf("no handovers of %d candidates in %d processes; measure them with -measure handover -n %[1]d -processes %[2]d", shortN, shortProcesses)
	}
	measured := func(is func(*figure) bool) bool { return slices.ContainsFunc(figures, is) }
	kubernetes := measured(func(f *figure) bool { return f.Coordinator == candidate.Kubernetes })
	for _, l := range shortLibraries() {
		if l.Coordinator == candidate.Kubernetes && !kubernetes {
			continue
		}
		least := func(f *figure) bool { return f.Coordinator == l.Coordinator && f.Library == candidate.Floor }
		if !measured(func(f *figure) bool { return f.of(l) }) || !measured(least) {
			return fmt.Errorf("%s: not measured beside its floor; only a whole table is for showing", l.ID())
		}
	}
	for _, f := range figures {
		switch {
		case f.NoDisk:
			return fmt.Errorf("%s, %s: measured on a server that did not wait for its disk (-disk=false)", f.Coordinator, f.Library)
		case len(f.Times) != len(figures[0].Times):
			return fmt.Errorf("%s, %s: %d handovers, where others have %d; measure all with the same -times",
				f.Coordinator, f.Library, len(f.Times), len(figures[0].Times))
		}
	}
	return nil
}

// listed joins what is in a set.
func listed(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), ", ")
}
