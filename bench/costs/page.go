package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

// pageLengths are the lines whose handovers the page of a coordinator has, with the candidates in as many processes as the short table has.
var pageLengths = map[string][]int{
	candidate.Kubernetes: {5, 100},
	candidate.Postgres:   {2, 5, 100, 1000},
}

// pageWaiters is how many wait in the line at rest that it has.
const pageWaiters = 1

// shownReplicas is how many candidates burden the server that it has.
const shownReplicas = 100

// page writes what the page of a coordinator shows.
func (b *book) page(w io.Writer, coordinator string) {
	p := &book{Machine: b.Machine}
	dates := make(map[string]bool)
	for _, f := range b.Figures {
		switch {
		case f.Coordinator != coordinator,
			f.Measure == handover && (f.Processes != shortProcesses || !slices.Contains(pageLengths[coordinator], f.N)),
			f.Measure == rest && f.N != pageWaiters,
			f.Measure == server && f.N != shownReplicas,
			!slices.Contains([]string{handover, failover, rest, server}, f.Measure):
			continue
		}
		p.put(f)
		dates[f.Date] = true
	}
	fmt.Fprintf(w, "%s, one server, which waits for its disk, candidates in %d processes, %s.\n", listed(dates), shortProcesses, strings.Join(b.Machine, ", "))
	p.handovers(w)
	p.failovers(w)
	p.rests(w)
	p.loads(w)
}

// wholePage returns an error unless the page of a coordinator has all that it shows, on servers that waited for their disk.
func (b *book) wholePage(coordinator string) error {
	if pageLengths[coordinator] == nil {
		return fmt.Errorf("-page: %q has no page with figures; those that have are %s and %s", coordinator, candidate.Kubernetes, candidate.Postgres)
	}
	missing := func(measure, library string, n int) error {
		if slices.ContainsFunc(b.of(measure), func(f *figure) bool {
			return f.Coordinator == coordinator && f.Library == library && f.N == n && (measure != handover || f.Processes == shortProcesses) &&
				f.Error == "" && !f.NoDisk
		}) {
			return nil
		}
		return fmt.Errorf("%s, %s: %s, %d: not measured on a server that waits for its disk; only a whole table is for showing", measure, coordinator, library, n)
	}
	for _, n := range pageLengths[coordinator] {
		if err := missing(handover, candidate.Floor, n); err != nil {
			return err
		}
	}
	for _, l := range candidate.Libraries {
		if l.Coordinator != coordinator || l.CostsOnly {
			continue
		}
		for _, n := range pageLengths[coordinator] {
			if l.Most > 0 && n > l.Most {
				continue
			}
			if err := missing(handover, l.Name, n); err != nil {
				return err
			}
		}
		for measure, n := range map[string]int{failover: 1, rest: pageWaiters, server: shownReplicas} {
			if l.Most > 0 && n > l.Most {
				continue
			}
			if err := missing(measure, l.Name, n); err != nil {
				return err
			}
		}
	}
	return nil
}
