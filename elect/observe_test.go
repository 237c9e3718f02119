package elect_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	virtual "github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
)

func TestObserve(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		seen, end := make(chan elect.State, 20), make(chan error, 1)
		go func() {
			for l, err := range elect.New(client(t, c, "observer"), "reports", nil).Observe(ctx) {
				if err != nil {
					end <- err
					continue
				}
				seen <- l
			}
			close(end)
		}()
		next := func(what string, ok func(elect.State) bool) elect.State {
			t.Helper()
			l := <-seen
			if !ok(l) {
				t.Errorf("want %s, got %+v", what, l)
			}
			return l
		}
		next("a vacant election", elect.State.Vacant)

		a := elect.New(client(t, c, "a"), "reports", &elect.Options{ID: "a", Value: "10.0.0.1:80"})
		first, err := a.Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		next("a, not acknowledged", func(l elect.State) bool {
			return l.Leader.ID == "a" && l.Leader.Value == "10.0.0.1:80" && l.Leader.Token == first.Token() && !l.Leader.Acknowledged
		})
		if err := first.Acknowledge(ctx); err != nil {
			t.Fatal(err)
		}
		next("a, acknowledged", func(s elect.State) bool { return s.Leader.ID == "a" && s.Leader.Acknowledged })

		b := run(ctx, elect.New(client(t, c, "b"), "reports", &elect.Options{ID: "b"}))
		synctest.Wait()
		if len(seen) != 0 {
			t.Errorf("somebody joined the line, and the observer was told %+v", <-seen)
		}
		if err := first.Resign(ctx); err != nil {
			t.Fatal(err)
		}
		second := <-b.terms
		next("b, not acknowledged", func(l elect.State) bool {
			return l.Leader.ID == "b" && l.Leader.Token == second.Token() && !l.Leader.Acknowledged
		})
		b.stop <- nil
		next("a vacant election", elect.State.Vacant)
		cancel()
		if err := <-end; err != context.Canceled {
			t.Errorf("the sequence ended with %v, want the cause of its context", err)
		}
	})
}

// Where an operator has deleted an election, the first in line raises the fence to its copy before it leads. Until then its token is smaller
// than those that an observer has seen, who waits for that, but no longer than some session times: a candidate of another library
// raises none.
func TestObserveWaitsForTheFence(t *testing.T) {
	for _, raised := range []bool{true, false} {
		bubble(t, func(t *testing.T, c *memory.Coordinator) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b := client(t, c, "a")
			operator := operate.New(b, "reports", "")
			if err := operator.RaiseFence(ctx, 1000); err != nil {
				t.Fatal(err)
			}
			first, err := elect.New(b, "reports", nil).Campaign(ctx)
			if err != nil {
				t.Fatal(err)
			}
			early := backend.Line{Members: c.Members("reports"), Header: backend.Header{Fence: 1000}}
			if err := first.Resign(ctx); err != nil {
				t.Fatal(err)
			}
			term, err := elect.New(b, "reports", nil).Campaign(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var old atomic.Pointer[backend.Line] // is shown once, by a server that lags behind
			lagging := other{head: func(l *backend.Line) error {
				if was := old.Swap(nil); was != nil {
					*l = *was
				}
				return nil
			}}
			var last atomic.Pointer[elect.State]
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for l, err := range elect.New(as(t, c, "observer", lagging), "reports", nil).Observe(ctx) {
					if err == nil {
						last.Store(&l)
					}
				}
			}()
			synctest.Wait()
			c.Drop("reports")
			synctest.Wait()
			s, err := client(t, c, "another library").Session(ctx)
			if err != nil {
				t.Fatal(err)
			}
			j, err := s.Join(ctx, "reports", "x", "")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(ttl / 2)
			synctest.Wait()
			if st := *last.Load(); !st.Vacant() {
				t.Errorf("it sees %+v while the fence is missing", st)
			}
			want := j.Position
			if raised {
				if err := operator.RaiseFence(ctx, 1000); err != nil {
					t.Fatal(err)
				}
				want += 1000
			} else {
				time.Sleep(ttl + ttl/10) // it has doubted what it sees, and waits for the fence
				old.Store(&early)
				time.Sleep(ttl) // it looks once more, and sees that
				if st := *last.Load(); !st.Vacant() && st.Leader.Token == first.Token() {
					t.Errorf("it has gone back to %+v", st)
				}
				time.Sleep(4 * ttl)
			}
			synctest.Wait()
			if st := *last.Load(); st.Vacant() || st.Leader.Token != want {
				t.Errorf("it ends on %+v, want token %d", st, want)
			}
			term.Resign(ctx)
			cancel()
			<-ended
		})
	}
}

// Whoever deletes an election and the record that keeps its fence lets tokens fall.
// Observers then doubt, and end on the truth.
func TestObserveEndsOnTheTruthAfterTheFenceIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b := client(t, c, "a")
		e := elect.New(b, "reports", &elect.Options{ID: "a"})
		if err := operate.New(b, "reports", "").RaiseFence(ctx, 1000); err != nil {
			t.Fatal(err)
		}
		term, err := e.Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var last elect.State
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for l, err := range elect.New(client(t, c, "observer"), "reports", nil).Observe(ctx) {
				if err == nil {
					last = l
				}
			}
		}()
		synctest.Wait()
		if last.Leader.Token != term.Token() {
			t.Fatalf("the observer sees %+v, want token %d", last, term.Token())
		}
		c.Drop("reports")
		s, err := client(t, c, "operator").Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(ctx, "reports.fence", nil); err != nil {
			t.Fatal(err)
		}
		<-term.Context().Done()
		term.Resign(ctx)
		r := run(ctx, elect.New(client(t, c, "b"), "reports", &elect.Options{ID: "b"}))
		second := <-r.terms
		if second.Token() >= term.Token() {
			t.Fatalf("token %d after %d: the fence was not lost", second.Token(), term.Token())
		}
		time.Sleep(3 * ttl)
		synctest.Wait()
		if last.Leader.ID != "b" || last.Leader.Token != second.Token() {
			t.Errorf("the observer ended on %+v, want b with token %d", last, second.Token())
		}
		cancel()
		<-r.end
		<-ended
	})
}

func TestLine(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		var ends []chan error
		for _, id := range []string{"a", "b", "c"} {
			r := run(ctx, elect.New(client(t, c, id), "reports", &elect.Options{ID: id}))
			ends = append(ends, r.end)
			synctest.Wait()
		}
		e := elect.New(client(t, c, "observer"), "reports", nil)
		_, line, err := e.Line(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(line) != 3 || line[0].ID != "a" || line[1].ID != "b" || line[2].ID != "c" {
			t.Errorf("the line is %+v, want a, b, c", line)
		}
		if l, err := e.Leader(ctx); err != nil || l.Candidate != line[0] {
			t.Errorf("the leader is %+v, %v; want %+v", l, err, line[0])
		}
		cancel()
		for _, end := range ends {
			<-end
		}
		if _, err := operate.New(client(t, c, "operator"), "reports", "").AskToResign(t.Context(), nil); !errors.Is(err, elect.ErrNoLeader) {
			t.Errorf("AskToResign of nobody: %v, want ErrNoLeader", err)
		}
	})
}

// A fence that would let tokens wrap, or shut every database that keeps tokens as signed numbers, is refused, and changes nothing.
func TestRaiseFenceTooFar(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		op := operate.New(client(t, c, "a"), "reports", "")
		for _, floor := range []uint64{1<<62 + 1, math.MaxInt64, math.MaxUint64} {
			err := op.RaiseFence(t.Context(), floor)
			if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "a digit too many") {
				t.Errorf("RaiseFence to %d: %v", floor, err)
			}
		}
		for _, name := range []string{"reports", "reports.fence"} {
			if r := c.Record(name); r.Version != backend.Absent {
				t.Errorf("%s is %q", name, r.Value)
			}
		}
	})
}

// Raising the fence makes up for a log that went back.
func TestRaiseFence(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		e, op := elect.New(b, "reports", nil), operate.New(b, "reports", "")
		for _, step := range []struct{ raise, least uint64 }{{1000, 1000}, {10, 1000}, {5000, 5000}} {
			if err := op.RaiseFence(t.Context(), step.raise); err != nil {
				t.Fatal(err)
			}
			term, err := e.Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if term.Token() <= step.least {
				t.Errorf("after raising the fence to %d the token is %d, want more than %d", step.raise, term.Token(), step.least)
			}
			term.Resign(t.Context())
		}
	})
}

// A fence that is raised in a term raises the token that others see, and takes away nothing that they know of the leader.
func TestRaiseFenceInATerm(t *testing.T) {
	for name, acknowledges := range map[string]string{
		"acknowledged before": "before", "acknowledged after": "after", "acknowledged before and after": "before and after", "not acknowledged": "never",
		"acknowledged after, and not told of the fence": "after", "acknowledged before and after, and not told of the fence": "before and after",
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				var b backend.Backend = client(t, c, "a")
				if strings.HasSuffix(name, "not told of the fence") {
					b = unwatching{b}
				}
				e, op := elect.New(b, "reports", nil), operate.New(b, "reports", "")
				earlier := virtual.Must[*elect.Term](t)(e.Campaign(t.Context()))
				_, err := op.AskToResign(t.Context(), nil) // that one, and nobody later
				if err := errors.Join(earlier.Acknowledge(t.Context()), err, earlier.Resign(t.Context())); err != nil {
					t.Fatal(err)
				}
				term := virtual.Must[*elect.Term](t)(e.Campaign(t.Context()))
				defer term.Resign(t.Context())
				acknowledge := func(when string) {
					if strings.Contains(acknowledges, when) {
						if err := term.Acknowledge(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
				}
				acknowledge("before")
				was := virtual.Must[elect.Leader](t)(e.Leader(t.Context()))
				if err := op.RaiseFence(t.Context(), 5000); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				acknowledge("after")
				want := was
				want.Token, want.Acknowledged = 5000+was.Position, acknowledges != "never"
				if now := virtual.Must[elect.Leader](t)(e.Leader(t.Context())); now != want {
					t.Errorf("the leader is shown as %+v, want %+v", now, want)
				}
				if err := term.Check(); err != nil {
					t.Errorf("after the fence was raised: %v", err)
				}
			})
		})
	}
}

func TestGuardedPut(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx := t.Context()
		e := elect.New(client(t, c, "a"), "reports", nil)
		term, err := e.Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		v, err := term.Put(ctx, "position", []byte("1"), backend.Absent)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := term.Put(ctx, "position", []byte("2"), backend.Absent); !errors.Is(err, backend.ErrVersion) {
			t.Errorf("a second creation: %v, want ErrVersion", err)
		}
		for _, own := range []string{"reports", "reports.fence", "reports/0000000000", "reports/a/b"} {
			if _, err := term.Put(ctx, own, nil, backend.Any); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("writing %s, which is the election's own: %v, want ErrInvalid", own, err)
			}
		}
		for _, beside := range []string{"reports-position", "reports.position", "reports2/0000000000"} {
			if _, err := term.Put(ctx, beside, nil, backend.Any); err != nil {
				t.Errorf("writing %s, which is beside the election: %v", beside, err)
			}
		}
		c.Remove("reports", term.Member().Key)
		var loss *elect.LostError
		if _, err := term.Put(ctx, "position", []byte("3"), v); !errors.Is(err, backend.ErrNotMember) || !errors.Is(err, elect.ErrLost) || !errors.As(err, &loss) || loss.Token != term.Token() {
			t.Errorf("a write after the member was removed: %v, want ErrNotMember and a LostError", err)
		}
		if r, err := term.Get(ctx, "position"); err != nil || string(r.Value) != "1" || r.Version != v {
			t.Errorf("the record is %+v, %v; want what was written first", r, err)
		}
		term.Resign(ctx)
		next, err := e.Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		next.Resign(ctx)
		if _, err := next.Put(ctx, "position", nil, backend.Any); !errors.Is(err, backend.ErrNotMember) || errors.Is(err, elect.ErrLost) {
			t.Errorf("a write after a resignation: %v, want ErrNotMember, and not ErrLost", err)
		}
	})
}
