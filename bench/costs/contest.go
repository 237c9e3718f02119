package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// contestants are how many want the lock, each in a process of its own.
const contestants = 8

// contests measures how often in a second a lock changes hands that all want at once, and what requests that takes. Whoever holds the lock
// unlocks it as soon as this program, which hears of it, has told it to, and wants it again. The libraries take turns on one server.
func (b *bench) contests(ctx context.Context, coordinator string, libraries []candidate.Library) error {
	p, err := start(ctx, coordinator, b.disk)
	if err != nil {
		return err
	}
	defer p.stop()
	type turn struct {
		*figure
		line     *line
		held     int // how often the lock was held
		requests int
		timed    int // of held, those that took time
		took     time.Duration
		err      error
	}
	var turns []*turn
	for _, l := range libraries {
		f := &figure{
			Measure: contest, Coordinator: coordinator, Server: p.version, Library: l.Name, Version: l.Version(), N: contestants,
			Date: time.Now().Format(time.DateOnly), NoDisk: !b.disk,
		}
		q, err := open(ctx, p, l, contestants, how{session: cmp.Or(l.Session, longSession), idle: true})
		if err != nil {
			b.measured(ctx, f, err)
			continue
		}
		defer q.close()
		turns = append(turns, &turn{figure: f, line: q})
	}
	for round := range lockRounds + 1 { // the first does not count
		rand.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		for _, t := range turns {
			if t.err != nil {
				continue
			}
			before := t.line.count(ctx, &t.err)
			var held, timed int
			var took time.Duration
			if t.err == nil {
				held, timed, took, t.err = t.line.contest(ctx, max(2, b.times/lockRounds))
			}
			after := t.line.count(ctx, &t.err)
			if round > 0 {
				t.held, t.timed, t.took, t.requests = t.held+held, t.timed+timed, t.took+took, t.requests+after-before
			}
		}
	}
	for _, t := range turns {
		if t.err == nil {
			t.Rate = float64(t.timed) / t.took.Seconds()
			if p.requests != nil {
				t.Requests = float64(t.requests) / float64(t.held)
			}
		}
		b.measured(ctx, t.figure, t.err)
	}
	return nil
}

// contest has all processes of the line want the lock until it has been held n times, and then those have it who still wait. It
// returns how often it was held, and how long it took from the first of the n to the last, which are timed changes of hands.
func (q *line) contest(ctx context.Context, n int) (held, timed int, took time.Duration, err error) {
	if err := q.join(len(q.processes), q.processes...); err != nil {
		return 0, 0, 0, err
	}
	standing := len(q.processes)
	var first, last time.Time
	err = q.await(ctx, func(e coordtest.PeerEvent) bool {
		switch e.What {
		case "elected":
			held++
			if held == 1 {
				first = e.At
			}
			if held <= n {
				last, timed = e.At, held-1
			}
			err = e.Peer.Send("leave")
		case "left":
			standing--
			if held < n {
				standing++
				err = e.Peer.Send("join")
			}
		}
		return standing == 0 || err != nil
	})
	q.n = 0
	return held, timed, last.Sub(first), err
}

// count returns how many requests the server has been sent, if it can tell and nothing has failed.
func (q *line) count(ctx context.Context, err *error) (n int) {
	if q.place.requests != nil && *err == nil {
		n, *err = q.place.requests(ctx)
	}
	return n
}

// contestTable has a row for each lock.
func (b *book) contestTable(w io.Writer) {
	figures := slices.DeleteFunc(b.of(contest), func(f *figure) bool { return f.Rate == 0 })
	if len(figures) == 0 {
		return
	}
	fmt.Fprintf(w, "\nTo lock and to unlock, where %d processes want the lock all the time:\n\n"+
		"| coordinator | | requests | times a second | of succession / this |\n|---|---|---|---|---|\n", contestants)
	for _, f := range figures {
		name, beside := f.library(), "–"
		if i := slices.IndexFunc(figures, func(g *figure) bool {
			return g.Coordinator == f.Coordinator && strings.HasPrefix(g.Library, candidate.Ours)
		}); i >= 0 && figures[i] != f {
			beside = fmt.Sprintf("%.2f", figures[i].Rate/f.Rate)
		} else if i >= 0 {
			name = "**" + name + "**"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %.0f | %s |\n", f.coordinator(), name, f.sent(), f.Rate, beside)
	}
}

// sent is how many requests something took, for a table.
func (f *figure) sent() string {
	if f.Requests == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", f.Requests)
}
