package recipes_test

import (
	"flag"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/rig/lane"
	. "github.com/succession-dev/succession/internal/rig/simulation/recipes"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.checks": strconv.Itoa(schedules)} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := f.Value.Set(value); err != nil {
				panic(err)
			}
		}
	}
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(1600) // a world lives for a millisecond and is garbage then
	}
	os.Exit(m.Run())
}

func draw(rt *rapid.T) plan {
	ms := func(rt *rapid.T, label string, from, to int) time.Duration {
		return time.Duration(rapid.IntRange(from, to).Draw(rt, label)) * time.Millisecond
	}
	return plan{
		Processes: rapid.IntRange(1, 5).Draw(rt, "processes"),
		Slack:     ms(rt, "slack", 0, 2000),
		Seed:      rapid.Uint64().Draw(rt, "seed"),
		Steps: rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			s := step{Do: rapid.SampledFrom(acts).Draw(rt, "do"), Process: rapid.IntRange(0, 4).Draw(rt, "process")}
			if s.Do == delay || s.Do == lag {
				s.Delay = ms(rt, "delay", 0, int(MaxDelay/time.Millisecond))
			}
			s.Then = ms(rt, "then", 0, []int{0, 50, 1000, 5000, 20000}[rapid.IntRange(0, 4).Draw(rt, "pace")])
			return s
		}), 2, 25).Draw(rt, "steps"),
	}
}

// within runs a plan in a bubble of its own.
func within(t *testing.T, r recipe, p plan, flaw func(backend.Session) backend.Session) (broken []string, log string) {
	bubble.Ending(t, p, func() { broken, log = run(r, p, flaw) })
	return broken, log
}

var recipes = map[string]recipe{
	"mutex":     mutex,
	"rwmutex":   rwMutex,
	"semaphore": semaphore,
	"several":   several,
	"queue":     newQueue(),
	"barrier":   newBarrier(),
	"double":    doubleBarrier,
	"group":     present,
	"assign":    assigned,
	"hot":       newStandby(false),
	"cold":      newStandby(true),
	"pool":      newPool(),
	"choice":    newChoice(),
	"value":     newValue(),
}

// What each recipe promises holds in every schedule.
func TestRecipes(t *testing.T) {
	lane.Unraced(t)
	for name, r := range recipes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				p := draw(rt)
				if broken, log := within(t, r, p, nil); len(broken) > 0 {
					t.Logf("%+v\n%s", p, log)
					rt.Fatal("a promise did not hold")
				}
			})
		})
	}
}
