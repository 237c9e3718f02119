//go:build linux

package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A step is one fault of a schedule, drawn before the run begins. What it hits may be
// found out only then: who leads, and which server leads the others.
type step struct {
	At, For time.Duration
	Kind    string
	// Index is of the candidate, or of the server, that is hit.
	Index int
	// Leader says that whoever leads is hit, where somebody does: of the election
	// Election, or of the servers.
	Leader   bool
	Election int
	Amount   time.Duration // of a delay
}

func (s step) String() string {
	target := fmt.Sprintf("candidate %d", s.Index+1)
	k := kindOf(s.Kind)
	switch {
	case k.server != nil && s.Leader:
		target = "the servers' leader"
	case k.server != nil:
		target = fmt.Sprintf("server %d", s.Index+1)
	case k.operator != nil:
		target = fmt.Sprintf("the leader of election %d", s.Election+1)
	case s.Leader:
		target = fmt.Sprintf("the leader of election %d, or %s", s.Election+1, target)
	}
	text := fmt.Sprintf("%9.3fs %-14s %s", s.At.Seconds(), s.Kind, target)
	if s.For > 0 {
		text += fmt.Sprintf(", for %v", s.For)
	}
	if s.Amount > 0 {
		text += fmt.Sprintf(", by %v", s.Amount)
	}
	return text
}

// A terrain is what a schedule is for.
type terrain struct {
	candidates, elections int
	servers               int
	session, vacancy      time.Duration
	length                time.Duration
	can                   func(need) bool
}

// calm is the time at the beginning in which nothing happens yet.
const calm = 3 * time.Second

// unhurried is what faults are measured by where sessions have no time.
const unhurried = 2 * time.Second

// spans are how long faults last, in sessions: less than one, about as long, or longer.
var spans = [][2]float64{{0.1, 0.7}, {0.8, 1.3}, {1.5, 2.5}}

// longestFault returns how long a fault lasts at most.
func longestFault(session time.Duration) time.Duration {
	return time.Duration(spans[len(spans)-1][1] * float64(session))
}

// schedule draws the faults of a run: bursts, and after each a pause that is often long
// enough for somebody to be bound to lead. The same seed and terrain are the same
// schedule.
func schedule(seed uint64, t terrain) []step {
	r := rand.New(rand.NewPCG(seed, ^seed)) // small seeds with a second word of 0 begin alike
	between := func(least, most time.Duration) time.Duration {
		return (least + time.Duration(r.Float64()*float64(most-least))).Round(time.Millisecond)
	}
	var possible []kind
	total := 0
	for _, k := range kinds {
		if t.can(k.needs) {
			possible = append(possible, k)
			total += k.weight
		}
	}
	draw := func() kind {
		n := r.IntN(total)
		i := slices.IndexFunc(possible, func(k kind) bool { n -= k.weight; return n < 0 })
		return possible[i]
	}
	var out []step
	var serversFree time.Duration // one fault of servers at a time: two may take all there are
	for at := calm; at < t.length; {
		for range 1 + r.IntN(6) {
			k := draw()
			s := step{At: at, Kind: k.name, Leader: r.IntN(2) == 0, Election: r.IntN(t.elections)}
			s.Index = r.IntN(t.candidates)
			if k.lasts {
				span := spans[r.IntN(len(spans))]
				session := float64(t.session)
				s.For = between(time.Duration(span[0]*session), time.Duration(span[1]*session))
			}
			if k.name == "delay" {
				s.Amount = between(20*time.Millisecond, t.session/4)
			}
			at += between(0, t.session)
			if s.At+s.For > t.length {
				continue
			}
			if k.server != nil {
				s.Index %= t.servers
				if s.At < serversFree {
					continue
				}
				serversFree = s.At + s.For + t.session
			}
			out = append(out, s)
		}
		at += between(t.vacancy/8, t.vacancy+t.session/2)
	}
	return out
}

// text returns a schedule as it is printed.
func text(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}
