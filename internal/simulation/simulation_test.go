package simulation_test

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/internal/simulation"
	"pgregory.net/rapid"
)

// stuck is how long one schedule may take in real time: thousands of times more
// than it needs. One that takes longer spins, and virtual time stands still.
const stuck = time.Minute

// run runs a plan in a bubble of its own.
func run(t *testing.T, p simulation.Plan) (r *simulation.Report) {
	watchdog := time.AfterFunc(stuck, func() { panic(fmt.Sprintf("this schedule does not end:\n%s", p)) })
	defer watchdog.Stop()
	synctest.Test(t, func(*testing.T) { r = simulation.Run(p, nil) })
	return r
}

// The number of schedules of each test, where nobody asks for another with
// -rapid.checks or RAPID_CHECKS.
const schedules = "10000"

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
		if err := f.Value.Set(schedules); err != nil {
			panic(err)
		}
	}
	// A world lives for a millisecond and is garbage then.
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}

// draw draws a plan. What is simplest comes first: shrinking goes there.
func draw(rt *rapid.T, elections int) simulation.Plan {
	ms := func(label string, from, to int) time.Duration {
		return time.Duration(rapid.IntRange(from, to).Draw(rt, label)) * time.Millisecond
	}
	p := simulation.Plan{
		Slack:     ms("slack", 0, 2) * 1000,
		Clients:   rapid.IntRange(1, 4).Draw(rt, "clients"),
		Elections: rapid.IntRange(1, elections).Draw(rt, "elections"),
	}
	step := rapid.Custom(func(rt *rapid.T) simulation.Step {
		s := simulation.Step{Do: rapid.SampledFrom(simulation.Acts).Draw(rt, "do")}
		s.Client = rapid.IntRange(0, 3).Draw(rt, "client")
		s.Election = rapid.IntRange(0, elections-1).Draw(rt, "election")
		switch rapid.IntRange(0, 5).Draw(rt, "pace") {
		case 0:
		case 1, 2:
			s.Then = ms("then", 1, 500)
		case 3, 4:
			s.Then = ms("then", 500, 5000)
		case 5:
			s.Then = ms("then", 5000, 20000)
		}
		switch s.Do {
		case simulation.Join:
			s.Campaign = rapid.Bool().Draw(rt, "campaign")
			if rapid.Bool().Draw(rt, "holds") {
				s.Hold = ms("hold", 1000, 20000)
			}
			if rapid.Bool().Draw(rt, "lingers") {
				s.Linger = ms("linger", 1, int(simulation.MaxLinger/time.Millisecond))
			}
			s.Ack = rapid.Bool().Draw(rt, "ack")
		case simulation.Delay:
			s.Request = ms("request", 0, int(simulation.MaxDelay/time.Millisecond))
			s.Answer = ms("answer", 0, int(simulation.MaxDelay/time.Millisecond))
		case simulation.Leave, simulation.Remove, simulation.Fence:
			s.Nth = rapid.IntRange(0, 5).Draw(rt, "nth")
		}
		return s
	})
	p.Steps = rapid.SliceOfN(step, 4, 30).Draw(rt, "steps")
	p.Seed = rapid.Uint64().Draw(rt, "seed")
	return p
}

// Every law holds in every schedule, with one election and with several that share
// their sessions.
func TestSimulation(t *testing.T) {
	for _, elections := range []int{1, 3} {
		t.Run(fmt.Sprint(elections), func(t *testing.T) {
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
				r := run(t, draw(rt, elections))
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
