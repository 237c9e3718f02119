package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// The whole procedure and the whole way back, with processes restarted one by one.
func TestThereAndBack(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.start(onOld, "a"), w.start(onOld, "b")
		w.until("somebody leads", time.Minute, func() bool { return a.leads() || b.leads() })
		modes := []struct {
			both, alone string
			old, new    int
		}{{onBoth, onNew, 0, 1}, {onBack, onOld, 1, 0}, {onBoth, onNew, 0, 1}}
		for round, m := range modes {
			op, _ := w.operator(m.both)
			if round == 0 {
				w.refuses(op.Cutover, migrate.ErrNotBegun)
				w.refuses(op.Abort, migrate.ErrNotBegun)
				w.refuses(op.Finish, migrate.ErrNotBegun)
			}
			s := w.do(op.Begin, migrate.Begun)
			if again := w.do(op.Begin, migrate.Begun); again.ID != s.ID {
				t.Errorf("beginning again made migration %s of %s", again.ID, s.ID)
			}
			w.refuses(op.Finish, migrate.ErrRefused, "cut over first")
			a.end()
			a = w.start(m.both, "a")
			w.leads(b)
			w.refuses(op.Cutover, migrate.ErrRefused, "has no place on")
			b.end()
			w.leads(a)
			b = w.start(m.both, "b")
			time.Sleep(time.Second)

			led := w.led
			w.do(op.Cutover, migrate.Moved)
			w.do(op.Cutover, migrate.Moved)
			if !a.leads() || w.led != led {
				t.Errorf("the term of the leader did not go on over the cutover")
			}
			w.refuses(op.Abort, migrate.ErrRefused, "too late")
			w.refuses(op.Begin, migrate.ErrRefused, "already")
			w.until("the other one has moved too", 3*ttl, func() bool { return len(w.c[m.new].Members(election)) == 2 })
			w.do(op.Finish, migrate.Moved)
			b.end()
			b = w.start(m.alone, "b")
			time.Sleep(time.Second)
			a.end()
			w.leads(b)
			a = w.start(m.alone, "a")
			op.Close()
			if seal := w.c[m.old].Members(election); len(seal) != 1 || !seal[0].Pinned {
				t.Errorf("on the coordinator left behind stands %+v; want the seal alone", seal)
			}
		}
		a.end()
		b.end()
	})
}

func TestAbortGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		op, a := w.underway(onBoth, "a")
		early := w.start(onNew, "early")
		led := w.led
		w.do(op.Abort, migrate.Aborted)
		w.do(op.Abort, migrate.Aborted)
		<-early.done
		if !errors.Is(early.err, backend.ErrSealed) {
			t.Errorf("a process with the new one alone ended with %v; want ErrSealed", early.err)
		}
		if !a.leads() || w.led != led {
			t.Errorf("the term did not go on")
		}
		if m := w.c[1].Members(election); len(m) != 0 {
			t.Errorf("on the new coordinator stand %+v", m)
		}
		w.refuses(op.Cutover, migrate.ErrRefused, "aborted")
		b := w.start(onBoth, "b")
		a.end()
		w.leads(b)
		c := w.start(onOld, "c")
		b.end()
		w.leads(c)
		w.do(op.Begin, migrate.Begun)
		c.end()
		a = w.start(onBoth, "a")
		w.leads(a)
		w.do(op.Cutover, migrate.Moved)
		a.end()
	})
}

// An abort seals the new coordinator by its header, and the gate stands as before: those who wait just
// behind it, with the new coordinator alone, are told nevertheless, one after the other.
func TestAbortTellsWhoWaitsBehindTheGate(t *testing.T) {
	inWorld(t, func(w *world) {
		op := w.begun(onBoth)
		var early []*process
		for i := range 3 {
			early = append(early, w.start(onNew, fmt.Sprint("early", i)))
			w.until("it stands behind the gate", time.Minute, func() bool { return len(w.c[1].Members(election)) == 2+i })
		}
		w.do(op.Abort, migrate.Aborted)
		for _, p := range early {
			<-p.done
			if !errors.Is(p.err, backend.ErrSealed) {
				t.Errorf("%s ended with %v; want ErrSealed", p.name, p.err)
			}
		}
		if m := w.c[1].Members(election); len(m) != 0 {
			t.Errorf("on the new coordinator stand %+v", m)
		}
	})
}

// A seal towards a third coordinator is a gate as good as any, where the election can
// have come from there.
func TestBeginWhereItWentElsewhere(t *testing.T) {
	inWorld(t, func(w *world) {
		s, err := w.c[1].Client("raw").Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Join(w.ctx, election, "former leader", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Pin(w.ctx, m.Member, backend.Header{Sealed: "memory:third"}, backend.Absent); err != nil {
			t.Fatal(err)
		}
		op, _ := w.operator(onBoth)
		defer op.Close()
		w.refuses(op.Begin, migrate.ErrRefused, "memory:third", "nobody knows it")
		a := w.start(onOld, "a")
		w.leads(a)
		w.do(op.Begin, migrate.Begun)
		b := w.start(onBoth, "b")
		a.end()
		w.leads(b)
		w.do(op.Cutover, migrate.Moved)
		b.end()
	})
}

// An abort that races with the seal: one of them wins, and both know which.
func TestAbortAgainstSeal(t *testing.T) {
	outcomes := make(map[migrate.Phase]int)
	for after := time.Duration(0); after < 6*time.Second; after += 100 * time.Millisecond {
		inWorld(t, func(w *world) {
			op, a := w.underway(onBoth, "a")
			time.Sleep(time.Second)
			a.sub[0].Delay(time.Second, time.Second)
			ask, cancel := context.WithTimeout(w.ctx, after+100*time.Millisecond)
			defer cancel()
			w.wg.Go(func() { op.Cutover(ask, election) })
			time.Sleep(after)
			ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
			defer cancel()
			_, err := op.Abort(ctx, election)
			if err != nil && !errors.Is(err, migrate.ErrRefused) {
				t.Fatalf("Abort after %v: %v", after, err)
			}
			time.Sleep(3 * ttl)
			want := migrate.Aborted
			if err != nil {
				want = migrate.Moved
			}
			if s, serr := op.Status(w.ctx, election); serr != nil || s.Phase != want {
				t.Errorf("after %v Abort returned %v, and the status is %+v, %v", after, err, s, serr)
			}
			if !a.leads() || w.led != 1 {
				t.Errorf("after %v: the term did not go on", after)
			}
			outcomes[want]++
			a.end()
		})
	}
	if outcomes[migrate.Aborted] == 0 || outcomes[migrate.Moved] == 0 {
		t.Errorf("the moments of aborting were not well chosen: %v", outcomes)
	}
}

func TestBegin(t *testing.T) {
	inWorld(t, func(w *world) {
		op, _ := w.operator(onBoth)
		defer op.Close()
		n := w.start(onNew, "n")
		w.leads(n)
		w.refuses(op.Begin, migrate.ErrRefused, "n-new", "stop them")
		if m := w.c[1].Members(election); len(m) != 1 {
			t.Errorf("a refused Begin left %+v", m)
		}
		a := w.start(onBoth, "a")
		<-a.done
		if !errors.Is(a.err, migrate.ErrNotBegun) {
			t.Errorf("a process without a gate ended with %v; want ErrNotBegun", a.err)
		}
		n.end()
		w.do(op.Begin, migrate.Begun)

		sub := [2]*memory.Backend{w.c[0].Client("x"), w.c[1].Client("x")}
		other := migrate.New(sub[0], sub[1], &migrate.Options{From: "memory:third", To: newURL})
		defer other.Close()
		_, err := elect.New(other, election, nil).Campaign(w.ctx)
		if !errors.Is(err, migrate.ErrOther) || !strings.Contains(err.Error(), oldURL) {
			t.Errorf("a process of another migration ended with %v; want ErrOther", err)
		}
		w.refuses(other.Begin, migrate.ErrOther)
		back, _ := w.operator(onBack)
		defer back.Close()
		w.refuses(back.Begin, migrate.ErrRefused, "has not ended")
	})
}

// TestOptionsBegin has processes begin the migration themselves: several at the same
// moment, beside one of the old coordinator alone; one that has the coordinators exchanged
// refuses, and so does every one where somebody stands on the new coordinator.
func TestOptionsBegin(t *testing.T) {
	refuses := func(t *testing.T, p *process, says string) {
		t.Helper()
		<-p.done
		if !errors.Is(p.err, migrate.ErrNotBegun) || !strings.Contains(p.err.Error(), says) {
			t.Errorf("%s ended with %v; want ErrNotBegun that says %q", p.name, p.err, says)
		}
	}
	inWorld(t, func(w *world) {
		old := w.start(onOld, "o")
		w.leads(old)
		refuses(t, w.start(beginsBack, "x"), "stop them")
		procs := []*process{w.start(beginsBoth, "a"), w.start(beginsBoth, "b"), w.start(beginsBoth, "c")}
		w.until("all stand in line", time.Minute, func() bool { return len(w.c[0].Members(election)) == 1+len(procs) })
		op, _ := w.operator(onBoth)
		defer op.Close()
		s, err := op.Status(w.ctx, election)
		if err != nil || s.Phase != migrate.Begun || len(s.OnTo) != 0 {
			t.Fatalf("Status: %+v, %v; want begun, and nobody in line on the new coordinator", s, err)
		}
		for next := old; len(procs) > 0; {
			next.end()
			w.until("the next leads", time.Minute, func() bool {
				i := slices.IndexFunc(procs, (*process).leads)
				if i >= 0 {
					next = procs[i]
					procs = slices.Delete(procs, i, i+1)
				}
				return i >= 0
			})
		}
	})
	inWorld(t, func(w *world) {
		n := w.start(onNew, "n")
		w.leads(n)
		refuses(t, w.start(beginsBoth, "a"), "n-new")
	})
	inWorld(t, func(w *world) { // the old coordinator has led it, and nobody stands there at the moment
		b, _ := w.backend(onOld, "o")
		defer b.Close()
		if err := operate.New(b, election, "").RaiseFence(w.ctx, 1000); err != nil {
			t.Fatal(err)
		}
		refuses(t, w.start(beginsBack, "x"), "exchanged")
		if m := w.c[0].Members(election); len(m) != 0 {
			t.Errorf("a process that refused has left %+v", m)
		}
		op, _ := w.operator(onBack)
		defer op.Close()
		w.plansNot(op, migrate.ErrRefused, migrate.Begin)
		w.refuses(op.Begin, migrate.ErrRefused, "exchanged")
		if m := w.c[0].Members(election); len(m) != 0 {
			t.Errorf("an operator who was refused has left %+v", m)
		}
	})
}

// Where an election has moved to, no migration brings it from a third coordinator, also if nobody stands in line: an abort of that
// would seal the one where it is.
func TestBeginTowardsItsHome(t *testing.T) {
	inWorld(t, func(w *world) {
		op, p := w.underway(onBoth, "p")
		w.do(op.Cutover, migrate.Moved)
		p.end()
		x := memory.New(&memory.Options{TTL: ttl, Slack: slack})
		if err := operate.New(x.Client("fence"), election, "").RaiseFence(w.ctx, 1000); err != nil { // so that it knows the election, too
			t.Fatal(err)
		}
		wrong := migrate.New(x.Client("wrong"), w.c[1].Client("wrong"), &migrate.Options{From: "memory:third", To: newURL})
		defer wrong.Close()
		w.refuses(wrong.Begin, migrate.ErrRefused, "is on "+newURL)
		if m := w.c[1].Members(election); len(m) != 0 {
			t.Errorf("on the new one stands %+v", m)
		}
		n := w.start(onNew, "n")
		w.leads(n)
		n.end()
	})
}

// An answer that is lost while a composite restores the fence on the new coordinator costs
// it no place on the old one.
func TestLostAnswerOfARestoredFence(t *testing.T) {
	inWorld(t, func(w *world) {
		w.begun(onBoth)
		_, raw := w.raw(0, "") // so that there is time for the fault
		kept := backend.Header{Fence: 5000}
		s, err := w.c[1].Client("raw").Session(w.ctx)
		if err == nil {
			_, err = s.Put(w.ctx, election+".fence", kept.Encode(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		a := w.start(onBoth, "a")
		w.until("it stands in line", ttl, func() bool { return len(w.c[0].Members(election)) == 2 })
		second := w.c[0].Members(election)[1]
		a.sub[1].LoseAnswer(memory.OpPut)
		if err := raw.Close(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.leads(a)
		if first := w.c[0].Members(election)[0]; first.Position != second.Position {
			t.Errorf("it leads at position %d, and stood at %d", first.Position, second.Position)
		}
		if w.newest <= kept.Fence {
			t.Errorf("its token is %d; want one above the fence, %d", w.newest, kept.Fence)
		}
		a.end()
	})
}
