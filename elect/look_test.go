package elect_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/memory"
)

// An observer does not go back to an earlier leader when a server lags behind, also not when that happens a second time.
func TestObserveDoesNotGoBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		var old atomic.Pointer[backend.Line] // is shown once
		how := other{head: func(l *backend.Line) error {
			if was := old.Swap(nil); was != nil {
				*l = *was
			}
			return nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var seen []string
		end := make(chan struct{})
		go func() {
			defer close(end)
			for s := range elect.New(as(t, c, "observer", how), "reports", nil).Observe(ctx) {
				if !s.Vacant() {
					seen = append(seen, fmt.Sprint(s.Leader.ID, " ", s.Leader.Acknowledged))
				}
			}
		}()
		lead := func(id string) *elect.Term {
			term, err := elect.New(client(t, c, id), "reports", &elect.Options{ID: id}).Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return term
		}
		step := func(do func(context.Context) error) {
			if err := do(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		first := lead("a")
		early := backend.Line{Members: c.Members("reports")}
		step(first.Resign)
		second := lead("b")
		old.Store(&early)
		step(second.Acknowledge)
		old.Store(&early)
		step(second.Resign)
		third := lead("c")
		old.Store(&early)
		step(third.Acknowledge)
		latest := backend.Line{Members: c.Members("reports")}
		step(third.Resign)
		old.Store(&latest) // after nobody was first
		time.Sleep(10 * ttl)
		cancel()
		<-end
		if want := []string{"a false", "b false", "b true", "c false", "c true"}; !slices.Equal(seen, want) {
			t.Errorf("seen were %q, want %q", seen, want)
		}
	})
}

// Why nobody leads.
func TestStateWithoutALeader(t *testing.T) {
	gate := backend.Member{Key: "gate", Position: 7, Pinned: true, Value: "op\nfor the night"}
	one := backend.Member{Key: "one", Position: 9, Value: "web-1"}
	for _, tt := range []struct {
		name   string
		line   backend.Line
		is, no []error // what the error is, and is not
		says   string
	}{
		{name: "nobody stands", is: []error{elect.ErrNoLeader}, no: []error{elect.ErrPaused, backend.ErrSealed}},
		{name: "somebody leads", line: backend.Line{Members: []backend.Member{one}}, no: []error{elect.ErrNoLeader}},
		{name: "paused", line: backend.Line{Members: []backend.Member{gate, one}, Header: header.Header{Choice: header.Choice{Gate: 7}}.Stored()},
			is: []error{elect.ErrNoLeader, elect.ErrPaused}, says: "op"},
		{name: "a gate", line: backend.Line{Members: []backend.Member{gate, one}, Header: header.Header{Choice: header.Choice{Gate: 8}}.Stored()},
			is: []error{elect.ErrNoLeader}, no: []error{elect.ErrPaused}, says: "stands first for ever"},
		{name: "moved", line: backend.Line{Members: []backend.Member{gate}, Header: backend.Header{Sealed: "etcd://elsewhere"}},
			is: []error{elect.ErrNoLeader, backend.ErrSealed}, no: []error{elect.ErrPaused}, says: "etcd://elsewhere"},
		{name: "moved, and the seal was removed", line: backend.Line{Members: []backend.Member{one}, Header: backend.Header{Sealed: "etcd://elsewhere"}},
			is: []error{elect.ErrNoLeader, backend.ErrSealed}, says: "etcd://elsewhere"},
	} {
		s, _, err := elect.StateOf(tt.line)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Err()
		for _, is := range tt.is {
			if !errors.Is(err, is) {
				t.Errorf("%s: %v, want %v", tt.name, err, is)
			}
		}
		for _, no := range tt.no {
			if errors.Is(err, no) {
				t.Errorf("%s: %v, which is %v", tt.name, err, no)
			}
		}
		if err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v does not say %q", tt.name, err, tt.says)
		}
		if tt.says == "" && err != nil && err != elect.ErrNoLeader {
			t.Errorf("%s: %v says more than that nobody leads", tt.name, err)
		}
	}
}

// Whoever looks is told what cannot be read or watched.
func TestLookingIsRefused(t *testing.T) {
	no := func(string) error { return backend.ErrDenied }
	state := func(ctx context.Context, e *elect.Election) error { _, err := e.State(ctx); return err }
	leader := func(ctx context.Context, e *elect.Election) error { _, err := e.Leader(ctx); return err }
	line := func(ctx context.Context, e *elect.Election) error { _, _, err := e.Line(ctx); return err }
	observe := func(ctx context.Context, e *elect.Election) (err error) {
		for _, err = range e.Observe(ctx) {
		}
		return err
	}
	for _, tt := range []struct {
		name  string
		how   other
		looks func(context.Context, *elect.Election) error
		empty bool // nobody stands in line
	}{
		{"State: the head", other{head: func(*backend.Line) error { return backend.ErrDenied }}, state, false},
		{"Leader: the head", other{head: func(*backend.Line) error { return backend.ErrDenied }}, leader, false},
		{"State: an answer that is fresh", other{refresh: func() error { return backend.ErrDenied }}, state, false},
		{"Line: an answer that is fresh", other{refresh: func() error { return backend.ErrDenied }}, line, false},
		{"Line: the line", other{line: no}, line, false},
		{"Line: who is not ready", other{list: no}, line, false},
		{"Line: why one is not ready", other{get: func(name string) error {
			if strings.HasPrefix(name, "reports"+naming.Unready+"/") {
				return backend.ErrDenied
			}
			return nil
		}}, line, false},
		{"Observe: the head", other{head: func(*backend.Line) error { return backend.ErrDenied }}, observe, false},
		{"Observe: the leader", other{gone: func() error { return backend.ErrDenied }}, observe, false},
		{"Observe: the line", other{watchLine: no}, observe, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				able := unreadySwitch()
				if !tt.empty {
					r := run(ctx, elect.New(client(t, c, "a"), "reports", &elect.Options{Ready: able.ready}))
					time.Sleep(time.Second)
					defer func() { cancel(); <-r.end }()
				}
				if err := tt.looks(ctx, elect.New(as(t, c, "b", tt.how), "reports", nil)); !errors.Is(err, backend.ErrDenied) {
					t.Errorf("got %v, want %v", err, backend.ErrDenied)
				}
			})
		})
	}
}

// A leader that is not ready, and leads on as nobody else is, is shown so, and why.
func TestLeaderThatIsNotReadyIsShown(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		able := unreadySwitch()
		able.set(nil)
		f.join(elect.Options{ID: "a", Ready: able.ready})
		f.leader("a")
		able.set(errNoDisk)
		f.join(elect.Options{ID: "b"})
		f.join(elect.Options{ID: "c", Ready: unreadySwitch().ready})
		time.Sleep(time.Minute)
		s, line, err := f.operator.Line(t.Context())
		if err != nil || len(line) != 3 || s.Leader.ID != "b" || s.Leader.NotReady != "" {
			t.Errorf("%+v, %+v, %v; want that b leads, which is ready", s, line, err)
		}
		for _, one := range line {
			if (one.NotReady == errNoDisk.Error()) != (one.ID != "b") {
				t.Errorf("%s is not ready because of %q", one.ID, one.NotReady)
			}
		}
	})
	inField(t, func(t *testing.T, f *field) {
		able := unreadySwitch()
		able.set(nil)
		f.join(elect.Options{ID: "a", Ready: able.ready})
		f.leader("a")
		able.set(errNoDisk)
		time.Sleep(time.Minute)
		if s, _, err := f.operator.Line(t.Context()); err != nil || s.Leader.NotReady != errNoDisk.Error() {
			t.Errorf("%+v, %v; want that a leads, and is not ready", s, err)
		}
	})
}

// What one candidate has noted in the header stays when another one notes something else, and is noted once.
func TestMarks(t *testing.T) {
	able := unreadySwitch()
	able.set(nil)
	ranks, asks := elect.Options{Priority: 1}, elect.Options{Ready: able.ready}
	for _, order := range [][]elect.Options{{ranks, asks}, {asks, ranks}, {ranks, ranks}, {asks, asks}} {
		inField(t, func(t *testing.T, f *field) {
			f.join(elect.Options{ID: "leader"})
			for i, o := range order {
				o.ID = fmt.Sprint("c", i)
				f.join(o)
			}
			time.Sleep(time.Second)
			s, err := f.clients["leader"].Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Get(t.Context(), "reports")
			if err != nil {
				t.Fatal(err)
			}
			h, err := header.Parse(r.Value)
			if err != nil {
				t.Fatal(err)
			}
			wantRanked := order[0].Priority+order[1].Priority > 0
			wantReadiness := order[0].Ready != nil || order[1].Ready != nil
			if h.Choice.Ranked != wantRanked || h.Choice.Readiness != wantReadiness {
				t.Errorf("the header has %+v", h.Choice)
			}
			if order[0].Priority == order[1].Priority { // there is nothing for the second to note
				if n := f.c.Requests().Of("c1", memory.OpPut); n != 0 {
					t.Errorf("the second one has written %d times", n)
				}
				if n := f.c.Requests().Of("c1", memory.OpGet); order[0].Ready == nil && n != 0 {
					t.Errorf("the second one has read %d records", n)
				}
			}
		})
	}
}

// A candidate that may not note anything tries it once.
func TestMarkThatIsDenied(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		leader, err := elect.New(client(t, c, "leader"), "reports", nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var puts atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		r := run(ctx, elect.New(as(t, c, "a", other{put: func(string) error { puts.Add(1); return backend.ErrDenied }}), "reports", &elect.Options{Priority: 1}))
		synctest.Wait()
		for range 3 { // whoever waits looks again
			if err := leader.Acknowledge(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * ttl)
		}
		cancel()
		<-r.end
		if n := puts.Load(); n != 1 {
			t.Errorf("it has tried %d times", n)
		}
		leader.Resign(t.Context())
	})
}

// Ready is asked before a candidate joins, and then once a second; each call has five seconds.
func TestReadyIsAsked(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		var asked atomic.Int32
		var hangs atomic.Bool
		f.join(elect.Options{ID: "a", Ready: func(ctx context.Context) error {
			n := asked.Add(1)
			if d, ok := ctx.Deadline(); !ok || time.Until(d) != 5*time.Second {
				t.Errorf("a call has until %v", d)
			}
			if n == 1 && len(f.c.Members("reports")) > 0 {
				t.Error("it was not asked before it has joined")
			}
			if hangs.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}})
		term := f.leader("a")
		time.Sleep(10*time.Second + time.Millisecond)
		if n := asked.Load(); n != 11 {
			t.Errorf("it was asked %d times in ten seconds, and before", n)
		}
		hangs.Store(true)
		time.Sleep(7 * time.Second)
		hangs.Store(false)
		if err := term.Check(); err != nil { // as nobody else can lead
			t.Error(err)
		}
	})
}

// Who is first and not ready gives way at once to one that was there before it was first.
func TestUnreadyGivesWayAtOnce(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		f.join(elect.Options{ID: "leader"})
		term := f.leader("leader")
		f.join(elect.Options{ID: "a", Ready: unreadySwitch().ready})
		f.join(elect.Options{ID: "b"})
		time.Sleep(time.Second)
		began := time.Now()
		go term.Resign(t.Context())
		f.leader("b")
		if d := time.Since(began); d > 100*time.Millisecond {
			t.Errorf("it has given way after %v", d)
		}
	})
}

// Who is first and cannot look at its line stays, looks again, and leads. Only if it cannot for about a session
// time does it leave, so that it does not hold up the others.
func TestLookThatFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fails  int32
		leaves bool
	}{{"once", 1, false}, {"on and on", math.MaxInt32, true}} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				var looks atomic.Int32
				list := func(string) error {
					if looks.Add(1) <= tt.fails {
						return backend.ErrUnavailable
					}
					return nil
				}
				term, err := elect.New(client(t, c, "leader"), "reports", nil).Campaign(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first := run(ctx, elect.New(as(t, c, "first", other{list: list}), "reports", &elect.Options{ID: "first", Priority: 1}))
				synctest.Wait()
				next := run(ctx, elect.New(client(t, c, "next"), "reports", &elect.Options{ID: "next"}))
				synctest.Wait()
				defer func() { cancel(); <-first.end; <-next.end }()
				term.Resign(t.Context())
				who := first
				if tt.leaves {
					who = next
				}
				select {
				case <-who.terms:
				case <-time.After(2 * ttl):
					t.Errorf("after %d looks the wrong one leads", looks.Load())
				}
			})
		})
	}
}

// Names are checked before anything is sent; an election without a history may have a longer one.
func TestNamesOfElections(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		if _, err := b.Session(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := c.Requests()
		for _, name := range []string{"", "a//b", "a/../b", strings.Repeat("x", backend.MaxName+1), "reports" + naming.Fence} {
			if _, err := elect.New(b, name, nil).Campaign(t.Context()); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("%.20q: %v", name, err)
			}
		}
		long := strings.Repeat("x", backend.MaxName)
		if _, err := elect.New(b, long, &elect.Options{History: 1}).Campaign(t.Context()); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("a name that is too long for a history: %v", err)
		}
		if n := c.Requests().Since(before).Of("a"); n != 0 {
			t.Errorf("%d requests for names that are not allowed", n)
		}
		var l told
		term, err := elect.New(b, long, &elect.Options{Trace: l.trace}).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Leaving takes five seconds, if nothing else is said.
		b.Cut()
		began := time.Now()
		if err := term.Resign(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		b.Heal()
		for _, ev := range l.all(trace.Elected) {
			if ev.Election != long {
				t.Errorf("an event of %.20q", ev.Election)
			}
		}
	})
}
