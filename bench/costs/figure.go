package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/bench/internal/program"
)

// What is measured.
const (
	handover = "handover"
	failover = "failover"
	rest     = "rest"
	server   = "server"
	many     = "many"
	lock     = "lock"
	contest  = "contest"
	queueing = "queue"
	grouping = "group"
)

var measures = []string{handover, failover, rest, server, many, lock, contest, queueing, grouping}

// A figure is what was measured of one library in one way.
type figure struct {
	Measure     string
	Coordinator string
	Library     string
	Server      string // version
	Version     string `json:",omitempty"`
	N           int    // candidates, those who wait, elections, items that stand, or members of a group
	Processes   int    `json:",omitempty"`
	Candidates  int    `json:",omitempty"` // of each of many elections
	Date        string
	NoDisk      bool `json:",omitempty"` // the server did not wait for its disk

	Times      []time.Duration                   `json:",omitempty"` // of handovers, failovers and locks, and until all follow
	Session    time.Duration                     `json:",omitempty"`
	Start      time.Duration                     `json:",omitempty"`
	Stood      int                               `json:",omitempty"` // at the end of Start
	Requests   float64                           `json:",omitempty"` // in a session time; of a lock and its unlock, of an item, or of each follower
	Bytes      float64                           `json:",omitempty"` // in a session time
	Alone      struct{ Requests, Bytes float64 } `json:",omitzero"`  // the same of a leader for whom nobody waits
	Memory     float64                           `json:",omitempty"` // bytes that one more takes who waits; of a server, what all take there
	CPU        float64                           `json:",omitempty"` // share of a core
	Goroutines float64                           `json:",omitempty"` // that one more takes who waits
	Rate       float64                           `json:",omitempty"` // handovers, locks or items in a second
	Error      string                            `json:",omitempty"`
}

// library and coordinator are what was measured, with versions, for people.
func (f *figure) library() string { return strings.TrimSpace(f.Library + " " + f.Version) }
func (f *figure) coordinator() string {
	return strings.TrimSpace(candidate.Titles[f.Coordinator] + " " + f.Server)
}

// like reports whether two figures are of the same thing, measured at different times.
func (f *figure) like(g *figure) bool {
	return f.Measure == g.Measure && f.Coordinator == g.Coordinator && f.Library == g.Library && f.N == g.N && f.Processes == g.Processes && f.Candidates == g.Candidates
}

// quantile returns the smallest of the times such that at least the share q of them is no larger.
func (f *figure) quantile(q float64) time.Duration {
	if len(f.Times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(f.Times))
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// A book is all figures of a file.
type book struct {
	Machine []string
	Figures []*figure
}

// load reads a file that save wrote. A book that does not exist is empty.
func load(path string) (*book, error) {
	b := &book{Machine: candidate.Machine()}
	text, err := os.ReadFile(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err == nil {
		err = json.Unmarshal(text, b)
	}
	return b, err
}

func (b *book) save(path string) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	// A figure a line, for those who compare two files.
	text = []byte(strings.ReplaceAll(string(text), `{"Measure"`, "\n"+`{"Measure"`) + "\n")
	return program.WriteFile(path, text)
}

// put adds a figure, in the place of one that is like it.
func (b *book) put(f *figure) {
	if i := slices.IndexFunc(b.Figures, f.like); i >= 0 {
		b.Figures[i] = f
	} else {
		b.Figures = append(b.Figures, f)
	}
}

// of returns the figures of a measure, ordered by coordinator, size, processes and library.
func (b *book) of(measure string) (out []*figure) {
	for _, f := range b.Figures {
		if f.Measure == measure {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(f, g *figure) int {
		return slices.Compare(f.rank(), g.rank())
	})
	return out
}

func (f *figure) rank() []int {
	i := slices.IndexFunc(candidate.Libraries, func(l candidate.Library) bool {
		return l.Coordinator == f.Coordinator && l.Name == f.Library
	})
	c := slices.IndexFunc(candidate.Libraries, func(l candidate.Library) bool { return l.Coordinator == f.Coordinator })
	return []int{c, f.N, f.Processes, i}
}
