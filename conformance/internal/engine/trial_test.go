package engine

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/internal/calm"
)

type busy struct{}

func (busy) Since(time.Time) calm.Reading { return calm.Reading{Late: time.Hour, Limit: time.Second} }

// Rules that have disturbed each other are run again one after the other.
func TestTurns(t *testing.T) {
	const rules = 2
	var first, all sync.WaitGroup
	first.Add(rules)
	var again, trials atomic.Int32
	for range rules {
		all.Go(func() {
			once := sync.OnceFunc(func() { first.Done(); first.Wait() })
			tries := 0
			Exercise(t.Context(), &Coordinator{Calm: busy{}, TTL: time.Second, Abilities: &Abilities{known: true}}, Rule{ID: "Turns.all", Check: func(*Trial) {
				once()
				trials.Add(1)
				if tries++; tries == 1 {
					return
				}
				if n := again.Add(1); n > 1 {
					t.Errorf("%d rules are run again at once", n)
				}
				time.Sleep(700 * time.Millisecond) // longer than it takes to begin the other
				again.Add(-1)
			}})
		})
	}
	all.Wait()
	if n := trials.Load(); n != rules*calm.Tries {
		t.Errorf("%d trials, want %d", n, rules*calm.Tries)
	}
}

// killed is a harness whose server was killed, and which heeds the context when it starts it again.
type killed struct {
	Faults
	started func(context.Context) error
}

func (k killed) InjectServer(Fault, int) (undo func(context.Context) error, err error) {
	return k.started, nil
}

func (k killed) Inject(ctx context.Context, _ Fault, _ Target) (undo func(context.Context) error, err error) {
	return nil, k.started(ctx)
}

// exerciseOnce runs the check on a calm machine, as a rule.
func exerciseOnce(ctx context.Context, c Coordinator, check func(*Trial)) Outcome {
	c.Calm, c.TTL, c.Abilities = idle{}, time.Second, &Abilities{known: true}
	return Exercise(ctx, &c, Rule{ID: "Trial.once", Check: check})
}

type idle struct{}

func (idle) Since(time.Time) calm.Reading { return calm.Reading{Limit: time.Second} }

// The harness does to the end what it would leave half done, whatever has become of the rule: its servers serve other rules.
func TestHeals(t *testing.T) {
	for name, check := range map[string]func(tr *Trial, stop func()){
		"the rule fails": func(tr *Trial, _ func()) {
			tr.InjectServer(Kill, 0)
			tr.Fatalf("it fails")
		},
		"the run is interrupted": func(tr *Trial, stop func()) {
			tr.InjectServer(Kill, 0)
			stop()
			<-tr.Ctx.Done()
		},
		"a restart is under way": func(tr *Trial, stop func()) {
			stop()
			<-tr.Ctx.Done()
			tr.Inject(Restart)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			started := 0
			exerciseOnce(ctx, Coordinator{Faults: killed{started: func(ctx context.Context) error {
				if _, bounded := ctx.Deadline(); !bounded {
					t.Error("nothing bounds the start")
				}
				if err := ctx.Err(); err != nil {
					t.Errorf("the server is not started: %v", err)
				}
				started++
				return nil
			}}}, func(tr *Trial) { check(tr, stop) })
			if started != 1 {
				t.Errorf("the server was started %d times", started)
			}
		})
	}
}

// A rule that the timeout of go test cuts short says so.
func TestCutShort(t *testing.T) {
	const why = "half of what was left of go test's -timeout"
	hangs := func(tr *Trial) { <-tr.Ctx.Done() }
	synctest.Test(t, func(t *testing.T) {
		if out := exerciseOnce(t.Context(), Coordinator{Deadline: time.Now().Add(time.Second)}, hangs); !strings.Contains(out.Failure, "not done after 500ms, "+why) {
			t.Errorf("it fails with %q, which does not say %q", out.Failure, why)
		}
		if out := exerciseOnce(t.Context(), Coordinator{}, hangs); strings.Contains(out.Failure, why) || !strings.Contains(out.Failure, "not done after") {
			t.Errorf("without a deadline it fails with %q", out.Failure)
		}
	})
}
