package simulation_test

import (
	"flag"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/internal/rig/simulation"
	"pgregory.net/rapid"
)

// run runs a plan in a bubble of its own.
func run(t *testing.T, p simulation.Plan) (r *simulation.Report) {
	bubble.Ending(t, p, func() { r = simulation.Run(p, nil) })
	return r
}

// The seed of the schedules, where nobody asks for another with -rapid.seed or
// RAPID_SEED: the test command runs the same ones each time, so that what fails there
// was broken by a change. 0 draws new ones.
const seed = "1"

func TestMain(m *testing.M) {
	if f := flag.Lookup("rapid.seed"); f.DefValue == "0" {
		if err := f.Value.Set(seed); err != nil {
			panic(err)
		}
	}
	if f := flag.Lookup("rapid.checks"); f.DefValue == "100" { // rapid's own default
		if err := f.Value.Set(strconv.Itoa(schedules)); err != nil {
			panic(err)
		}
	}
	debug.SetGCPercent(1600) // a world lives for a millisecond and is garbage then
	os.Exit(m.Run())
}

// A kind is what plans have in common.
type kind struct {
	name      string
	elections int // at most
	migrate   bool
	choice    bool
}

// kinds are those whose plans bring the same leaders whenever they are run. Choices are of a kind of their own.
var (
	kinds   = []kind{{name: "1", elections: 1}, {name: "3", elections: 3}, {name: "migrations", elections: 2, migrate: true}}
	choices = kind{name: "choices", elections: 2, choice: true}
)

// draw draws a plan. What is simplest comes first: shrinking goes there.
func (k kind) draw(rt *rapid.T) simulation.Plan {
	p := simulation.Plan{
		Slack:     ms(rt, "slack", 0, 2) * 1000,
		Clients:   rapid.IntRange(1, 4).Draw(rt, "clients"),
		Elections: rapid.IntRange(1, k.elections).Draw(rt, "elections"),
		Migrate:   k.migrate,
		Choice:    k.choice,
	}
	p.Margin = rapid.SampledFrom(margins).Draw(rt, "margin")
	covered := p.Margin
	if covered == 0 {
		covered = simulation.TTL / 10
	}
	if rapid.Bool().Draw(rt, "drifts") {
		for range p.Clients {
			p.Early = append(p.Early, covered*time.Duration(rapid.IntRange(-99, 99).Draw(rt, "drift"))/100)
		}
	}
	acts := simulation.Acts
	if k.migrate {
		acts = simulation.Moves
		p.OldAhead = rapid.Bool().Draw(rt, "old ahead")
		p.Begun = rapid.IntRange(0, 3).Draw(rt, "begun") > 0
		for range p.Clients {
			p.Modes = append(p.Modes, rapid.SampledFrom([]simulation.Mode{simulation.Old, simulation.Both, simulation.Both}).Draw(rt, "mode"))
		}
	}
	if k.choice {
		acts = simulation.Choices
	}
	slowest := int(min(simulation.MaxDelay, (simulation.TTL*2/3-covered)/2) / time.Millisecond)
	if p.Margin == 0 {
		slowest = int(simulation.MaxDelay / time.Millisecond)
	}
	p.Steps = rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) simulation.Step { return step(rt, k, acts, slowest) }), 4, 30).Draw(rt, "steps")
	p.Seed = rapid.Uint64().Draw(rt, "seed")
	return p
}

// margins are some that the driver can keep; the last is the longest.
var margins = []time.Duration{0, simulation.TTL / 100, 3 * simulation.TTL / 10, simulation.TTL / 2}

func ms(rt *rapid.T, label string, from, to int) time.Duration {
	return time.Duration(rapid.IntRange(from, to).Draw(rt, label)) * time.Millisecond
}

func step(rt *rapid.T, k kind, acts []simulation.Act, slowest int) simulation.Step {
	s := simulation.Step{Do: rapid.SampledFrom(acts).Draw(rt, "do")}
	s.Client = rapid.IntRange(0, 3).Draw(rt, "client")
	s.Election = rapid.IntRange(0, k.elections-1).Draw(rt, "election")
	if k.migrate {
		s.Side = rapid.IntRange(0, 1).Draw(rt, "side")
	}
	switch rapid.IntRange(0, 5).Draw(rt, "pace") {
	case 0:
	case 1, 2:
		s.Then = ms(rt, "then", 1, 500)
	case 3, 4:
		s.Then = ms(rt, "then", 500, 5000)
	case 5:
		s.Then = ms(rt, "then", 5000, 20000)
	}
	switch s.Do {
	case simulation.Join:
		s.Campaign = rapid.Bool().Draw(rt, "campaign")
		if rapid.Bool().Draw(rt, "holds") {
			s.Hold = ms(rt, "hold", 1000, 20000)
		}
		if rapid.Bool().Draw(rt, "lingers") {
			s.Linger = ms(rt, "linger", 1, int(simulation.MaxLinger/time.Millisecond))
		}
		s.Ack = rapid.Bool().Draw(rt, "ack")
		if k.choice {
			s.Priority = rapid.IntRange(0, 2).Draw(rt, "priority")
			s.Site = rapid.SampledFrom([]string{"", "east", "west"}).Draw(rt, "site")
			s.Unready = rapid.IntRange(0, 3).Draw(rt, "unready") == 3
		}
	case simulation.Delay:
		s.Request = ms(rt, "request", 0, slowest)
		s.Answer = ms(rt, "answer", 0, slowest)
	case simulation.Lag:
		s.Answer = ms(rt, "behind", 0, int(simulation.MaxDelay/time.Millisecond))
	case simulation.Leave, simulation.Remove, simulation.Fence, simulation.NotReady, simulation.Ready, simulation.Wish:
		s.Nth = rapid.IntRange(0, 5).Draw(rt, "nth")
	case simulation.Roll:
		s.Mode = rapid.SampledFrom(simulation.Modes).Draw(rt, "mode")
	case simulation.Begin, simulation.Cutover, simulation.Abort, simulation.Finish:
		s.Request = ms(rt, "request", 0, 200)
		s.Answer = ms(rt, "answer", 0, 200)
		s.Patience = 10 * time.Second
		if rapid.IntRange(0, 3).Draw(rt, "gives up") == 0 {
			s.Patience = ms(rt, "patience", 1, 1000)
		}
		s.Patience += 500 * time.Microsecond
	}
	return s
}

// Every law holds in every schedule, with one election and with several that share
// their sessions.
func TestSimulation(t *testing.T) {
	lane.Unraced(t)
	for _, k := range append(slices.Clone(kinds), choices) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			var failed *simulation.Report // the last, which is the simplest where a failure comes again
			schedules, steps, terms := 0, 0, 0
			defer func() {
				t.Logf("%d schedules, %d steps, %d terms", schedules, steps, terms)
				if failed != nil {
					dir, err := failed.Save()
					t.Logf("the picture is %s/history.svg, and -run Plan -plan %[1]s/plan.json runs it again (%v)\n%s", dir, err, failed)
				}
			}()
			rapid.Check(t, func(rt *rapid.T) {
				r := run(t, k.draw(rt))
				schedules, steps, terms = schedules+1, steps+len(r.Plan.Steps), terms+r.Terms
				if len(r.Violations) > 0 {
					failed = r
					// Not which law: rapid takes a failure with other words for another one.
					rt.Fatal("a law did not hold")
				}
			})
		})
	}
}
