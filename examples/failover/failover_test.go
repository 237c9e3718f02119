package failover

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// session is how long the coordinator waits for a process that it does not hear.
const session = 10 * time.Second

// A sent is a report: who sent it, with which token, and when.
type sent struct {
	by    string
	token uint64
	at    time.Time
}

// A world has processes on a coordinator in memory, and the reports that they send.
type world struct {
	*memory.Coordinator
	reports chan sent
	running sync.WaitGroup
}

func newWorld(t *testing.T) *world {
	w := &world{Coordinator: memory.New(&memory.Options{TTL: session}), reports: make(chan sent, 1000)}
	t.Cleanup(w.running.Wait) // by then t.Context has ended
	return w
}

// process starts a process, which ends with ctx, and waits until it stands in line.
func (w *world) process(ctx context.Context, id string) *memory.Backend {
	b := w.Client(id)
	w.running.Go(func() {
		defer b.Close()
		SendReports(ctx, elect.New(b, "reports", &elect.Options{ID: id}), func(token uint64) {
			w.reports <- sent{id, token, time.Now()}
		})
	})
	synctest.Wait()
	return b
}

// The leader is cut off. It stops in time, and the next one goes on within a session time.
func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.process(t.Context(), "a")
		w.process(t.Context(), "b")

		time.Sleep(5*time.Minute - time.Second)
		a.Cut()
		cut := time.Now()
		time.Sleep(5 * time.Minute)

		var last sent
		for len(w.reports) > 0 {
			r := <-w.reports
			switch {
			case r.by == "a" && r.at.After(cut.Add(session)):
				t.Errorf("a sends a report %v after it was cut off", r.at.Sub(cut))
			case r.by == "a" && last.by == "b":
				t.Error("a sends a report when b leads")
			case r.by == "b" && last.by == "a":
				if gap := r.at.Sub(cut); gap > session {
					t.Errorf("nobody leads for %v", gap)
				}
				if r.token <= last.token {
					t.Errorf("token %d after %d", r.token, last.token)
				}
			}
			last = r
		}
		if last.by != "b" {
			t.Errorf("the last report is from %q; b should have taken over", last.by)
		}
	})
}

// The leader is told to stop, as by a deployment. The next one leads at once.
func TestDeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, stop := context.WithCancel(t.Context())
		w.process(ctx, "a")
		w.process(t.Context(), "b")
		if r := <-w.reports; r.by != "a" {
			t.Fatalf("%s leads, who came second", r.by)
		}
		stopped := time.Now()
		stop()
		if r := <-w.reports; r.by != "b" || r.at != stopped {
			t.Errorf("%s leads after %v, want b at once", r.by, r.at.Sub(stopped))
		}
	})
}

// The coordinator is away for a while. Whoever leads then, somebody does soon after.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.process(t.Context(), "a")
		w.process(t.Context(), "b")
		<-w.reports
		w.Pause()
		time.Sleep(time.Hour)
		for len(w.reports) > 0 {
			<-w.reports
		}
		w.Resume()
		back := time.Now()
		if r := <-w.reports; r.at.Sub(back) > 2*session {
			t.Errorf("nobody leads until %v after the outage", r.at.Sub(back))
		}
	})
}
