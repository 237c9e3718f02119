package spread_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/elect/trace"
)

// A candidate hears of the heartbeats of whatever cluster its election lives on, also while that moves.
func TestHeartbeats(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		told := map[string]*atomic.Int64{"p": {}, "q": {}}
		for _, name := range []string{"p", "q"} {
			p := w.process(name, "a", "b")
			p.trace = func(ev trace.Event) {
				if ev.Kind == trace.Heartbeat {
					told[name].Add(1)
				}
			}
			p.run(election)
			w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
			time.Sleep(time.Second)
		}
		hear := func(when string) {
			t.Helper()
			before := map[string]int64{"p": told["p"].Load(), "q": told["q"].Load()}
			time.Sleep(2 * ttl)
			for name := range told {
				// A session sends three in a session time.
				if n := told[name].Load() - before[name]; n < 5 || n > 7 {
					t.Errorf("%s, %s was told of %d heartbeats in two session times", when, name, n)
				}
			}
		}
		hear("at home")
		op := w.process("operator", "a", "b")
		if err := op.Move(w.ctx, election, other(w.at(election)), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl)
		hear("while the move has not ended")
		w.finish(op, election)
		time.Sleep(ttl)
		hear("in its new home")
	}, "a", "b")
}
