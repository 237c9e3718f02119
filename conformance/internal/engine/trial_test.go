package engine

import (
	"sync"
	"sync/atomic"
	"testing"
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
