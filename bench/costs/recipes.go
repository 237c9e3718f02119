package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

// recipes is what the page of the recipes shows: locks, queues and groups, with where the figures come from.
func (b *book) recipes(w io.Writer) {
	figures := b.of(lock)
	dates, times := make(map[string]bool), make(map[string]bool)
	for _, f := range figures {
		dates[f.Date], times[fmt.Sprint(len(f.Times))] = true, true
	}
	fmt.Fprintf(w, "%s, %s times for each row, one server, which waits for its disk, %s.\n", listed(dates), listed(times), strings.Join(b.Machine, ", "))
	b.lockTable(w)
	b.contestTable(w)
	b.queueTable(w)
	b.groupTable(w)
}

// shownQueues and shownGroups are the sizes that the page has.
var (
	shownQueues = []int{200, 1000}
	shownGroups = []int{100, 500}
)

// wholeRecipes returns an error unless each lock, queue and group was measured, on servers that waited for their disk. Without a
// server each member of a group watches each other one, so a large group may be too large to be measured: its row says so.
func (b *book) wholeRecipes() error {
	measured := func(measure string, is func(*figure) bool) bool {
		return slices.ContainsFunc(b.of(measure), func(f *figure) bool { return is(f) && f.Error == "" && !f.NoDisk })
	}
	for _, l := range candidate.Libraries {
		if !isLock(l) || l.Coordinator == candidate.Kubernetes {
			continue
		}
		for _, m := range []string{lock, contest} {
			if !measured(m, func(f *figure) bool { return f.of(l) }) {
				return fmt.Errorf("%s, %s: not measured on a server that waits for its disk; only a whole table is for showing", m, l.ID())
			}
		}
	}
	for _, c := range candidate.Coordinators {
		if c == candidate.Kubernetes {
			continue
		}
		for m, has := range map[string]struct {
			sizes     []int
			libraries []string
		}{queueing: {shownQueues, queuesOf(c)}, grouping: {shownGroups, groupsOf(c)}} {
			for _, n := range has.sizes {
				for _, l := range has.libraries {
					if m == grouping && c == candidate.Local && n > slices.Min(shownGroups) {
						continue
					}
					if !measured(m, func(f *figure) bool { return f.Coordinator == c && f.N == n && f.Library == l }) {
						return fmt.Errorf("%s of %d, %s: %s: not measured on a server that waits for its disk; only a whole table is for showing", m, n, c, l)
					}
				}
			}
		}
	}
	return nil
}
