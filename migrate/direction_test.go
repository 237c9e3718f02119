package migrate_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// Two operators begin to move an unused election in opposite directions, one a little
// later than the other. Either one is refused, or both gates stand: then nobody
// leads, everybody is told what to do, and aborting one lets the other go on.
func TestOppositeBegins(t *testing.T) {
	met := make(map[bool]int)
	for after := time.Duration(0); after < 48*time.Millisecond; after += 2 * time.Millisecond {
		inWorld(t, func(w *world) {
			there, _ := w.operator(onBoth)
			defer there.Close()
			back, _ := w.operator(onBack)
			defer back.Close()
			for _, op := range []*migrate.Backend{there, back} { // so that both have sessions
				w.shows(op, migrate.None, "|", "", "begin")
			}
			var errs [2]error
			var done [2]chan struct{}
			for i, op := range []*migrate.Backend{there, back} {
				done[i] = make(chan struct{})
				w.wg.Go(func() {
					defer close(done[i])
					time.Sleep(time.Duration(i) * after)
					_, errs[i] = op.Begin(w.ctx, election)
				})
			}
			<-done[0]
			<-done[1]
			both := len(w.c[0].Members(election)) > 0 && len(w.c[1].Members(election)) > 0
			met[both]++
			if !both {
				if (errs[0] == nil) == (errs[1] == nil) {
					t.Errorf("after %v one gate stands, and the two Begin returned %v and %v", after, errs[0], errs[1])
				}
				return
			}
			for i, err := range errs {
				if err != nil && !errors.Is(err, migrate.ErrOther) {
					t.Errorf("after %v both gates stand, and Begin %d returned %v", after, i, err)
				}
			}
			if errs[0] == nil && errs[1] == nil {
				t.Errorf("after %v both gates stand, and nobody was told", after)
			}
			opposed(w, there, back)
		})
	}
	if met[true] == 0 || met[false] == 0 {
		t.Errorf("the moments of beginning were not well chosen: %v", met)
	}
}

// opposed is what happens when both gates stand.
func opposed(w *world, there, back *migrate.Backend) {
	for mode, op := range map[string]*migrate.Backend{onBoth: there, onBack: back} {
		w.shows(op, migrate.Conflict, "|", "", "nobody leads until one of them is aborted")
		w.plansNot(op, migrate.ErrOther, migrate.Begin, migrate.Cutover, migrate.Finish)
		w.plans(op, migrate.Abort, true, "the opposite one goes on")
		w.refuses(op.Begin, migrate.ErrOther, "opposite directions", "aborted")
		w.refuses(op.Cutover, migrate.ErrOther, "opposite directions")
		p := w.start(mode, "p")
		<-p.done
		if !errors.Is(p.err, migrate.ErrOther) || !strings.Contains(p.err.Error(), "aborted") {
			w.t.Errorf("a process that runs with %s ended with %v; want ErrOther, and what to do", mode, p.err)
		}
	}
	w.do(there.Abort, migrate.Elsewhere)
	w.shows(back, migrate.Begun, "|", "nobody leads", "start a process with both")
	a := w.start(onBack, "a")
	w.leads(a)
	w.do(back.Cutover, migrate.Moved)
	w.do(back.Finish, migrate.Moved)
	w.do(there.Begin, migrate.Begun)
	a.end()
}

// Of two opposed migrations that are aborted at the same moment one is forgotten. The abort
// of the other one is refused, or comes when nothing opposes it any more, and then the
// election is on the coordinator that it comes from.
func TestOppositeAborts(t *testing.T) {
	met := make(map[bool]int)
	// Which it is depends on the pauses that each makes, at random, before it looks again.
	for i := range 200 {
		after := time.Duration(i*i) * time.Millisecond / 4 // up to ten seconds
		inWorld(t, func(w *world) {
			there, _ := w.operator(onBoth)
			defer there.Close()
			back, _ := w.operator(onBack)
			defer back.Close()
			ops := []*migrate.Backend{back, there} // by the side that each moves the election to
			for side, op := range ops {
				forge(w, side, op)
			}
			var errs [2]error
			var wg sync.WaitGroup
			for side, op := range ops {
				wg.Go(func() {
					time.Sleep(time.Duration(1-side) * after)
					_, errs[side] = op.Abort(w.ctx, election)
				})
			}
			wg.Wait()
			refused := 0
			for side, err := range errs {
				if err == nil {
					continue
				}
				if refused++; !errors.Is(err, migrate.ErrRefused) || !strings.Contains(err.Error(), "being aborted") {
					t.Errorf("after %v: %v; want a refusal, as the other one is being aborted", after, err)
				}
				if m := w.c[side].Members(election); len(m) != 1 || !m[0].Pinned {
					t.Errorf("after %v its gate does not stand: %+v", after, m)
				}
				w.do(ops[side].Abort, migrate.Aborted)
			}
			if met[refused > 0]++; refused > 1 {
				t.Errorf("after %v both were refused", after)
			}
			for side, c := range w.c {
				if m := c.Members(election); len(m) > 0 {
					t.Errorf("after %v on side %d there still is %+v", after, side, m)
				}
			}
			mode := map[migrate.Phase]string{migrate.Aborted: onOld, migrate.Moved: onNew}
			st, err := there.Status(w.ctx, election)
			if err != nil || mode[st.Phase] == "" {
				t.Fatalf("after both aborts the status is %+v, %v", st, err)
			}
			p := w.start(mode[st.Phase], "p")
			w.leads(p)
			p.end()
		})
	}
	if met[true] == 0 || met[false] == 0 {
		t.Errorf("of these two, only one came about: %v", met)
	}
}

// forge puts the gate of op's migration on the side, as if it had been begun there at
// the same moment as the other one.
func forge(w *world, side int, op *migrate.Backend) {
	w.t.Helper()
	s, err := op.Status(w.ctx, election)
	if err != nil {
		w.t.Fatal(err)
	}
	apart := migrate.New(memory.New(nil).Client("x"), w.c[side].Client("forger"), &migrate.Options{From: s.From, To: s.To})
	defer apart.Close()
	if _, err := apart.Begin(w.ctx, election); err != nil {
		w.t.Fatal(err)
	}
}

// A process that runs the other way round than the migration that has begun does not
// stand in anybody's way, and is told with which URLs to run.
func TestOppositeProcess(t *testing.T) {
	inWorld(t, func(w *world) {
		op, a := w.underway(onBoth, "a")
		p := w.start(onBack, "p")
		<-p.done
		if !errors.Is(p.err, migrate.ErrOther) || !strings.Contains(p.err.Error(), "from "+oldURL+" to "+newURL) {
			t.Errorf("it ended with %v; want ErrOther, and the migration named", p.err)
		}
		w.do(op.Cutover, migrate.Moved)
		a.end()
	})
}

// A gate that another migration put on the coordinator that this one comes from is
// in the way of all but itself.
func TestGateOfAThird(t *testing.T) {
	inWorld(t, func(w *world) {
		op := w.begun(onBoth)
		third := migrate.New(memory.New(nil).Client("x"), w.c[0].Client("third"), &migrate.Options{From: "memory:third", To: oldURL})
		defer third.Close()
		w.do(third.Begin, migrate.Begun)
		s, err := op.Status(w.ctx, election)
		if err != nil || s.Phase != migrate.Elsewhere || !strings.Contains(s.Next, "memory:third") {
			t.Errorf("the status is %+v, %v; want elsewhere, and the other migration named", s, err)
		}
		b, _ := w.backend(onBoth, "p")
		defer b.Close()
		ctx, cancel := context.WithTimeout(w.ctx, ttl)
		defer cancel()
		if _, err := elect.New(b, election, nil).Campaign(ctx); !errors.Is(err, migrate.ErrOther) || !strings.Contains(err.Error(), "memory:third") {
			t.Errorf("a process ended with %v; want ErrOther, and the other migration named", err)
		}
		w.do(third.Abort, migrate.Aborted)
	})
}
