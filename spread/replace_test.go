package spread_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/spread"
)

// lose has a cluster be lost for good, with an empty one in its place. The caller calls end, so that those who still wait for the
// lost one can end.
func (w *world) lose(name string) (end func()) {
	lost := w.c[name]
	lost.Pause()
	w.c[name] = memory.New(&memory.Options{TTL: ttl, Slack: time.Second})
	return lost.Resume
}

// lives checks where the election lives.
func (w *world) lives(b *process, at string) {
	w.t.Helper()
	if h, _, err := b.Where(w.ctx, election); err != nil || h != (spread.Home{At: at}) {
		w.t.Errorf("the election lives on %+v, %v; want %s", h, err, at)
	}
}

// keptElsewhere puts the election on another cluster than the one that keeps its home, and returns both.
func (w *world) keptElsewhere(op *process) (keeper, at string) {
	w.t.Helper()
	_, keeper, err := op.Where(w.ctx, election)
	at = other(keeper)
	if err == nil {
		err = op.Put(w.ctx, election, at)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return keeper, at
}

// A founder to which an election moves is lost before the cutover. With an empty cluster in its place the move can be taken back,
// and made again.
func TestFounderIsLostBeforeTheCutover(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		at := home(t, w.process("first", "a", "b")).At
		to := other(at)
		s := w.foreign(at)
		stop := w.process("p", "a", "b").run(election)
		op := w.process("operator", "a", "b")
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		defer cancel()
		want(t, op.Move(ctx, election, to, nil), context.DeadlineExceeded, "foreign")
		defer w.lose(to)()
		time.Sleep(2 * ttl)
		op = w.process("another operator", "a", "b")
		want(t, op.Abort(w.ctx, election), backend.ErrInvalid, to, "lost the record", "Replace")
		for range 2 {
			if err := op.Replace(w.ctx, to); err != nil {
				t.Fatal(err)
			}
		}
		if err := op.Abort(w.ctx, election); err != nil {
			t.Error(err)
		}
		w.lives(op, at)
		if err := s.Close(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		stop() // p still knows the lost cluster
		w.process("q", "a", "b").run(election)
		w.until("q leads", time.Minute, func() bool { return w.leader(election) == "q" })
		if err := op.Move(w.ctx, election, to, nil); err != nil {
			t.Fatal(err)
		}
		w.finish(op, election)
		w.lives(op, to)
		w.until("q leads there", time.Minute, func() bool { return w.leader(election) == "q" })
	}, "a", "b")
}

// A founder from which an election has moved is lost after the cutover. With an empty cluster in its place the move can be ended; the
// leader leads on.
func TestFounderIsLostAfterTheCutover(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		op := w.process("operator", "a", "b")
		keeper, at := w.keptElsewhere(op)
		w.process("p", "a", "b").run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		if err := op.Move(w.ctx, election, keeper, nil); err != nil {
			t.Fatal(err)
		}
		token := w.token(election)
		defer w.lose(at)()
		time.Sleep(5 * ttl)
		op = w.process("another operator", "a", "b")
		want(t, op.Finish(w.ctx, election, nil), backend.ErrInvalid, at, "lost the record")
		if err := op.Replace(w.ctx, at); err != nil {
			t.Fatal(err)
		}
		if err := op.Finish(w.ctx, election, nil); err != nil {
			t.Error(err)
		}
		w.lives(op, keeper)
		if w.leader(election) != "p" || w.token(election) != token {
			t.Errorf("%q leads, with token %d; want p, with token %d", w.leader(election), w.token(election), token)
		}
	}, "a", "b")
}

// A founder that keeps the home of an election is lost. The election is put where it was led, and led there again.
func TestKeeperIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		op := w.process("operator", "a", "b")
		keeper, at := w.keptElsewhere(op)
		stop := w.process("p", "a", "b").run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		defer w.lose(keeper)()
		stop()
		op = w.process("another operator", "a", "b")
		want(t, op.Put(w.ctx, election, at), backend.ErrInvalid, keeper, "lost the record")
		if err := op.Replace(w.ctx, keeper); err != nil {
			t.Fatal(err)
		}
		w.lives(op, "")
		if err := op.Put(w.ctx, election, at); err != nil {
			t.Fatal(err)
		}
		w.process("q", "a", "b").run(election)
		w.until("q leads", time.Minute, func() bool { return w.leader(election) == "q" })
		if now := w.at(election); now != at {
			t.Errorf("q stands on %s, want %s", now, at)
		}
		if r := w.c[keeper].Record(".spread-moves"); r.Version == backend.Absent {
			t.Error("the founder has no bell")
		}
	}, "a", "b")
}

// The founder that keeps the home of an election is lost while that moves. It is put where it is led, and the move goes on, or is done.
func TestKeeperIsLostWhileMoving(t *testing.T) {
	for name, cutOver := range map[string]bool{"before the cutover": false, "after the cutover": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				op := w.process("operator", "a", "b", "c")
				_, keeper, err := op.Where(w.ctx, election)
				if err != nil {
					t.Fatal(err)
				}
				rest := slices.DeleteFunc([]string{"a", "b", "c"}, func(name string) bool { return name == keeper })
				at, to := rest[0], rest[1]
				if err := op.Put(w.ctx, election, at); err != nil {
					t.Fatal(err)
				}
				foreign, err := elect.New(w.c[at].Client("foreign"), election, nil).Campaign(w.ctx)
				if err != nil {
					t.Fatal(err)
				}
				if cutOver {
					foreign.Resign(w.ctx)
				}
				ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
				defer cancel()
				if err := op.Move(ctx, election, to, nil); (err == nil) != cutOver {
					t.Fatal(err)
				}
				defer w.lose(keeper)()
				foreign.Resign(w.ctx)
				op = w.process("another operator", "a", "b", "c")
				if err := op.Replace(w.ctx, keeper); err != nil {
					t.Fatal(err)
				}
				led := at
				if cutOver {
					led = to
				}
				if err := op.Put(w.ctx, election, led); err != nil {
					t.Fatal(err)
				}
				w.process("p", "a", "b", "c").run(election)
				w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
				if now := w.at(election); now != led {
					t.Errorf("p leads on %s, want %s", now, led)
				}
				for _, to := range []string{to, at} {
					if err := op.Move(w.ctx, election, to, nil); err != nil {
						t.Fatal(err)
					}
					w.finish(op, election)
					w.lives(op, to)
				}
			}, "a", "b", "c")
		})
	}
}

// Nothing but a founder is replaced, and nothing but an empty cluster takes its place.
func TestReplaceIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		want(t, w.process("too early", "a", "b").Replace(w.ctx, "a"), spread.ErrRefused)
		if r := w.c["a"].Record(".spread"); r.Version != backend.Absent {
			t.Errorf("a says %s", r.Value)
		}
		for _, b := range []*process{w.process("p", "a", "b"), w.process("q", "x", "y")} {
			if err := uses(w.ctx, b, election); err != nil {
				t.Fatal(err)
			}
		}
		want(t, w.process("added", "a", "b", "c").Replace(w.ctx, "c"), spread.ErrRefused, "[a b]")
		want(t, w.process("foreign", "a", "b=x").Replace(w.ctx, "b"), backend.ErrInvalid, "is the cluster x")
		want(t, w.process("exchanged", "a=b", "b=a").Replace(w.ctx, "b"), backend.ErrInvalid, "is the cluster")
	}, "a", "b", "c", "x", "y")
}
