//go:build linux

package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/internal/rig/arena"
)

// A step is one fault of a schedule, drawn before the run begins.
type step = arena.Step

// A terrain is what a schedule is for.
type terrain struct {
	candidates, elections int
	servers               int
	session, vacancy      time.Duration
	length                time.Duration // at least; each kind of fault comes once
	can                   func(need) bool
}

// calm is the time at the beginning in which nothing happens yet.
const calm = 3 * time.Second

// A draw is a schedule that is being drawn.
type draw struct {
	terrain
	rand  *rand.Rand
	kinds []kind // that can be done
	steps []step
}

// schedule draws the faults of a run: each possible kind once, and then bursts until the
// length is over, with a pause after each that is often long enough for somebody to be
// bound to lead. The same seed and terrain are the same schedule.
func schedule(seed uint64, t terrain) []step {
	d := &draw{terrain: t, rand: rand.New(rand.NewPCG(seed, ^seed))} // small seeds with a second word of 0 begin alike
	for _, k := range kinds {
		if t.can(k.needs) {
			d.kinds = append(d.kinds, k)
		}
	}
	d.bursts(d.once())
	slices.SortStableFunc(d.steps, func(a, b step) int { return cmp.Compare(a.At, b.At) })
	return d.steps
}

// end returns when the last fault of a schedule is over.
func end(steps []step) (end time.Duration) {
	for _, s := range steps {
		end = max(end, s.At+s.For)
	}
	return end
}

func (d *draw) between(least, most time.Duration) time.Duration {
	return (least + time.Duration(d.rand.Float64()*float64(most-least))).Round(time.Millisecond)
}

// step draws what is open of a fault, of which spans are how long it may last.
func (d *draw) step(k kind, at time.Duration, spans [][2]float64) step {
	s := step{At: at, Kind: k.name, Leader: d.rand.IntN(2) == 0, Election: d.rand.IntN(d.elections)}
	s.Index = d.rand.IntN(d.candidates)
	switch {
	case k.everyone:
		s.Leader, s.Target = false, "all"
	case k.server != nil:
		s.Index %= d.servers
		s.Target = fmt.Sprintf("server %d", s.Index+1)
		if s.Leader {
			s.Target = "the servers' leader"
		}
	case k.operator != nil:
		s.Target = fmt.Sprintf("the leader of election %d", s.Election+1)
	}
	if k.lasts {
		span := spans[d.rand.IntN(len(spans))]
		session := float64(d.session)
		s.For = d.between(time.Duration(span[0]*session), time.Duration(span[1]*session))
	}
	if k.name == "delay" {
		s.Amount = d.between(20*time.Millisecond, d.session/4)
	}
	return s
}

// atOnce is how many candidates suffer at the same time where each kind of fault comes
// once. There are more, so that each finds one.
const atOnce = 3

// once draws each kind once, and returns when all are over. Operators come first, while
// all servers answer them, and then servers, one after the other and all but one for
// less than a session. Candidates suffer at the same time.
func (d *draw) once() time.Duration {
	lanes := make([]time.Duration, 1+atOnce) // when each is free
	for i := range lanes {
		lanes[i] = calm
	}
	put := func(k kind, lane int, spans [][2]float64) {
		s := d.step(k, lanes[lane]+d.between(0, d.session/4), spans)
		lanes[lane] = s.At + s.For + d.session/2
		d.steps = append(d.steps, s)
	}
	shuffled := slices.Clone(d.kinds)
	d.rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for _, k := range shuffled {
		if k.operator != nil {
			put(k, 0, arena.Spans)
		}
	}
	some := arena.Spans
	for _, k := range shuffled {
		switch {
		case k.server != nil:
			put(k, 0, some)
			some = arena.Spans[:1]
		case k.hitsCandidate():
			next := 1
			for i := range lanes[1:] {
				if lanes[1+i] < lanes[next] {
					next = 1 + i
				}
			}
			put(k, next, arena.Spans)
		}
	}
	return slices.Max(lanes)
}

// bursts draws faults by their weights from an instant on.
func (d *draw) bursts(at time.Duration) {
	total := 0
	for _, k := range d.kinds {
		total += k.weight
	}
	var serversFree time.Duration // one fault of servers at a time, and time to recover
	for at < d.length {
		for range 1 + d.rand.IntN(6) {
			n := d.rand.IntN(total)
			k := d.kinds[slices.IndexFunc(d.kinds, func(k kind) bool { n -= k.weight; return n < 0 })]
			s := d.step(k, at, arena.Spans)
			at += d.between(0, d.session)
			if s.At+s.For > d.length {
				continue
			}
			if k.server != nil {
				if s.At < serversFree {
					continue
				}
				serversFree = s.At + s.For + d.session
			}
			d.steps = append(d.steps, s)
		}
		at += d.between(d.vacancy/8, d.vacancy+d.session/2)
	}
}

// text returns a schedule as it is printed.
func text(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}
