package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// standing is who stands where, and how: "a-old/old b-both/both | b-both/both".
func standing(s migrate.Status) string {
	var b strings.Builder
	for _, c := range s.OnFrom {
		fmt.Fprintf(&b, "%s:%s ", c.ID, c.Mode)
	}
	b.WriteString("|")
	for _, c := range s.OnTo {
		fmt.Fprintf(&b, " %s:%s", c.ID, c.Mode)
	}
	return b.String()
}

// shows fails the test where the status is not as told.
func (w *world) shows(op *migrate.Backend, phase migrate.Phase, who, blocked, next string) {
	w.t.Helper()
	s, err := op.Status(w.ctx, election)
	if err != nil {
		w.t.Fatal(err)
	}
	if s.Phase != phase || standing(s) != who {
		w.t.Errorf("the status is %s, %q; want %s, %q", s.Phase, standing(s), phase, who)
	}
	if got := strings.Join(s.Blocks, "; "); !strings.Contains(got, blocked) || blocked == "" && got != "" {
		w.t.Errorf("in phase %s the next step is blocked by %q; want %q", phase, got, blocked)
	}
	if !strings.Contains(s.Next, next) {
		w.t.Errorf("in phase %s the next step is %q; want %q", phase, s.Next, next)
	}
}

// A status names who runs how, what is in the way and what to do, in every phase.
func TestStatus(t *testing.T) {
	inWorld(t, func(w *world) {
		op, _ := w.operator(onBoth)
		defer op.Close()
		a := w.start(onOld, "a")
		w.leads(a)
		m, raw := w.raw(1, "raw")
		w.shows(op, migrate.None, "a-old:old | raw:new", "raw (n_0000000000) stands in line on memory:new: stop it", "begin")
		if err := raw.Leave(w.ctx, m); err != nil {
			t.Fatal(err)
		}
		w.shows(op, migrate.None, "a-old:old |", "", "begin")
		w.do(op.Begin, migrate.Begun)
		early := w.start(onNew, "early")
		b := w.start(onBoth, "b")
		time.Sleep(time.Second)
		w.shows(op, migrate.Begun, "a-old:old b-both:both | early-new:new",
			"the leader, a-old (n_0000000000), runs with memory:old alone",
			"stop until the cutover: early-new (n_0000000002); then restart with both coordinators: a-old (n_0000000000); then cut over")
		a.end()
		time.Sleep(time.Second)
		w.shows(op, migrate.Begun, "b-both:both | early-new:new b-both:both", "early-new (n_0000000002) was started with memory:new alone", "stop until")
		early.end()
		w.leads(b)
		m, raw = w.raw(0, "a-old") // does not look, and so does not see the seal
		w.shows(op, migrate.Begun, "b-both:both a-old:old | b-both:both", "", "restart with both coordinators: a-old (n_0000000002); then cut over")
		w.do(op.Cutover, migrate.Moved)
		w.shows(op, migrate.Moved, "a-old:old | b-both:both", "a-old (n_0000000002) waits behind the seal on memory:old", "restart with memory:new alone: a-old (n_0000000002)")
		w.refuses(op.Finish, migrate.ErrRefused, "a-old (n_0000000002)", "restart them with memory:new")
		if err := raw.Leave(w.ctx, m); err != nil {
			t.Fatal(err)
		}
		n := w.start(onNew, "n")
		time.Sleep(time.Second)
		w.shows(op, migrate.Moved, "| b-both:both n-new:new", "", "restart with memory:new alone, when it suits: b-both")
		b.end()
		w.shows(op, migrate.Moved, "| n-new:new", "", "nothing: nobody who stands in line knows memory:old")
		n.end()
	})
}

// Who waits on the old coordinator at the cutover with both is on its way, and not
// somebody to restart.
func TestStatusAfterCutover(t *testing.T) {
	inWorld(t, func(w *world) {
		op, a := w.underway(onBoth, "a")
		b := w.start(onBoth, "b")
		time.Sleep(time.Second)
		b.sub[0].Delay(time.Millisecond, time.Second) // it learns of the seal later
		w.do(op.Cutover, migrate.Moved)
		w.shows(op, migrate.Moved, "b-both:both | a-both:both", "b-both (n_0000000001) is on its way", "when it suits: a-both")
		w.refuses(op.Finish, migrate.ErrRefused, "by themselves", "b-both")
		time.Sleep(3 * ttl)
		w.shows(op, migrate.Moved, "| a-both:both b-both:both", "", "when it suits: a-both (n_0000000001), b-both")
		a.end()
		b.end()
	})
}

// A candidate that may not say how it runs stands and leads all the same, and one that
// crashed leaves nothing that says it.
func TestMarks(t *testing.T) {
	inWorld(t, func(w *world) {
		op, a := w.underway(onBoth, "a")
		const marks = election + ".migrate-both"
		for side, c := range w.c {
			if m := c.Members(marks); len(m) != 1 {
				t.Errorf("on side %d there are the marks %+v; want one", side, m)
			}
			if m := c.Members(election); m[len(m)-1].Value != a.name {
				t.Errorf("on side %d the value of the member is %q; want %q", side, m[len(m)-1].Value, a.name)
			}
		}
		a.end()
		for side, c := range w.c {
			if m := c.Members(marks); len(m) != 0 {
				t.Errorf("on side %d a process that left leaves the marks %+v", side, m)
			}
		}
		sub := [2]*memory.Backend{w.c[0].Client("d"), w.c[1].Client("d")}
		d := migrate.New(denied{sub[0]}, denied{sub[1]}, &migrate.Options{From: oldURL, To: newURL})
		defer d.Close()
		term, err := elect.New(d, election, &elect.Options{ID: "d"}).Campaign(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.shows(op, migrate.Begun, "d:old | d:new", "", "restart with both coordinators: d")
		if err := term.Resign(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

// denied is a client without rights to anything but the election itself.
type denied struct{ backend.Backend }

func (b denied) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return deniedSession{s}, err
}

type deniedSession struct{ backend.Session }

var errNoRight = errors.New("a right is missing")

func (s deniedSession) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	if line != election {
		return backend.Joined{}, errors.Join(backend.ErrDenied, errNoRight)
	}
	return s.Session.Join(ctx, line, value, record)
}

// A backup of the old coordinator from before the cutover has no seal, and the status says so.
func TestStatusOfALostSeal(t *testing.T) {
	inWorld(t, func(w *world) {
		op, a := w.underway(onBoth, "a")
		if s := w.do(op.Cutover, migrate.Moved); len(s.Blocks) > 0 {
			t.Errorf("after the cutover it says %q", s.Blocks)
		}
		back, _ := w.operator(onBack)
		defer back.Close()
		w.do(back.Begin, migrate.Begun) // there the seal is the gate
		if s, err := op.Status(w.ctx, election); err != nil || len(s.Blocks) > 0 {
			t.Errorf("on the way back it says %q, %v", s.Blocks, err)
		}
		w.do(back.Abort, migrate.Aborted)
		raw, err := w.c[0].Client("backup").Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.c[0].Remove(election, w.c[0].Members(election)[0].Key)
		if err := raw.Delete(w.ctx, election, nil); err != nil {
			t.Fatal(err)
		}
		s, err := op.Status(w.ctx, election)
		if err != nil || s.Phase != migrate.Moved || len(s.Blocks) != 1 || !strings.Contains(s.Blocks[0], "no seal") {
			t.Errorf("the status is %+v, %v; want that the seal is gone", s, err)
		}
		if !a.leads() || w.led != 1 {
			t.Error("the leader, who needs the old one no more, was disturbed")
		}
		a.end()
	})
}
