package spread_test

import (
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/spread"
)

// guards has the leader write a record through its term.
func (w *world) guards(name, value string) {
	w.t.Helper()
	w.mu.Lock()
	term := w.leads[election]
	w.mu.Unlock()
	if term == nil {
		w.t.Fatal("nobody leads")
	}
	if _, err := term.Put(w.ctx, name, []byte(value), backend.Any); err != nil {
		w.t.Fatal(err)
	}
}

// reads checks what a new process reads.
func (w *world) reads(name, value string) {
	w.t.Helper()
	s, err := w.process("reader", "a", "b").For(election).Session(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := s.Get(w.ctx, name)
	if err != nil || string(r.Value) != value {
		w.t.Errorf("the record %s is %q, %v; want %q", name, r.Value, err, value)
	}
}

// What leaders have written through their terms moves with the election, also what they wrote before
// the move, and leaders that have gone: there, and back.
func TestGuardedRecordsMove(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stop := w.process("gone", "a", "b").run(election)
		w.until("somebody leads", time.Minute, func() bool { return w.leader(election) != "" })
		w.guards("elsewhere/first", "1")
		stop()
		for _, name := range []string{"p", "q"} {
			w.process(name, "a", "b").run(election)
		}
		op := w.process("operator", "a", "b")
		for i, value := range []string{"2", "3"} {
			w.until("somebody leads", time.Minute, func() bool { return w.leader(election) != "" })
			w.guards("elsewhere/position", value)
			w.guards("state", value)
			if i == 1 {
				w.guards("elsewhere/first", value)
			}
			if err := op.Move(w.ctx, election, other(w.at(election)), nil); err != nil {
				t.Fatal(err)
			}
			w.finish(op, election)
			w.reads("elsewhere/first", []string{"1", "3"}[i])
			w.reads("elsewhere/position", value)
			w.reads("state", value)
		}
		s, err := op.For(election).Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		names, err := s.List(w.ctx, "elsewhere")
		if want := []string{"elsewhere/first", "elsewhere/position"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("listed are %v, %v; want %v", names, err, want)
		}
		records, err := s.ReadAll(w.ctx, "elsewhere")
		if err != nil || len(records) != 2 {
			t.Errorf("read are %+v, %v; want 2", records, err)
		}
	}, "a", "b")
}

// A record beside the election that no leader has written through its term is named before anybody is
// disturbed, and when the move ends. An operator says what becomes of it, or takes the move back.
func TestRecordBesideTheElection(t *testing.T) {
	const beside = election + "-position"
	for _, carries := range []bool{true, false} {
		inWorld(t, func(t *testing.T, w *world) {
			at := home(t, w.process("first", "a", "b")).At
			s, err := w.c[at].Client("another program").Session(w.ctx)
			if err == nil {
				_, err = s.Put(w.ctx, beside, []byte("7"), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"p", "q"} {
				w.process(name, "a", "b").run(election)
			}
			w.until("somebody leads", time.Minute, func() bool { return w.leader(election) != "" })
			op := w.process("operator", "a", "b")
			want(t, op.Move(w.ctx, election, other(at), nil), spread.ErrRefused, beside)
			want(t, op.Move(w.ctx, election, other(at), &spread.MoveOptions{Carry: []string{"mistyped"}}), spread.ErrRefused, "mistyped")
			time.Sleep(2 * ttl)
			if n, now := w.count(election), w.at(election); n != 1 || now != at {
				t.Errorf("a move that was refused led to %d terms, on %q", n, now)
			}
			if err := op.Abort(w.ctx, election); err != nil {
				t.Error(err)
			}
			value, o := "7", &spread.MoveOptions{Carry: []string{beside}}
			if !carries {
				value, o = "", &spread.MoveOptions{Leave: true}
			}
			if err := op.Move(w.ctx, election, other(at), o); err != nil {
				t.Fatal(err)
			}
			w.until("all candidates have followed", 5*ttl, func() bool { return len(w.c[at].Members(election)) == 1 }) // the seal
			if !carries {
				want(t, op.Finish(w.ctx, election, nil), spread.ErrRefused, beside)
			}
			if err := op.Finish(w.ctx, election, o); err != nil {
				t.Error(err)
			}
			w.reads(beside, value)
		}, "a", "b")
	}
}
