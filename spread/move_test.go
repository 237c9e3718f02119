package spread_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
	"github.com/succession-dev/succession/recipes/record"
	"github.com/succession-dev/succession/spread"
)

const election = "reports"

// other returns the other one of the two clusters.
func other(at string) string { return map[string]string{"a": "b", "b": "a"}[at] }

// finish ends the move, when those who stand on the old cluster have followed.
func (w *world) finish(b *process, name string) {
	w.t.Helper()
	w.until("the move ends", 5*ttl, func() bool {
		err := b.Finish(w.ctx, name, nil)
		if err != nil && !errors.Is(err, spread.ErrRefused) {
			w.t.Fatal(err)
		}
		return err == nil
	})
}

// An election moves while it is led and others wait, there and back. Nobody is restarted; the leader
// hands over once, to one who knows of the move, and the term of that one goes on over the move.
func TestMove(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, name := range []string{"p", "q", "r"} {
			w.process(name, "a", "b").run(election)
			w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
			time.Sleep(time.Second)
		}
		bystander := w.process("bystander", "a", "b")
		others := names(10)
		bystander.run(others...)
		time.Sleep(time.Second)
		tokens := make(map[string]uint64)
		for _, name := range others {
			tokens[name] = w.token(name)
		}
		op := w.process("operator", "a", "b")
		terms := 1
		for range 3 {
			led := w.leader(election)
			from := w.at(election)
			to := other(from)
			began := time.Now()
			ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
			defer cancel()
			if err := op.Move(ctx, election, to, nil); err != nil {
				t.Fatalf("move from %s to %s: %v", from, to, err)
			}
			token := w.token(election)
			leads := w.leader(election)
			if leads == led || leads == "" {
				t.Errorf("after the move to %s, %q leads, and %s did", to, leads, led)
			}
			terms++
			if w.count(election) != terms {
				t.Errorf("after the move to %s there were %d terms, want %d", to, w.count(election), terms)
			}
			if d := time.Since(began); d > 10*time.Second {
				t.Errorf("the move to %s took %v", to, d)
			}
			if h, _, err := op.Where(w.ctx, election); err != nil || h.At != from || h.To != to {
				t.Errorf("after the move: %+v, %v", h, err)
			}
			for range 2 {
				if err := op.Move(w.ctx, election, to, nil); err != nil {
					t.Errorf("once more: %v", err)
				}
			}
			w.finish(op, election)
			if h, _, err := op.Where(w.ctx, election); err != nil || h != (spread.Home{At: to}) {
				t.Errorf("after the end of the move: %+v, %v", h, err)
			}
			time.Sleep(2 * ttl)
			if now := w.token(election); now != token {
				t.Errorf("the term of %s did not go on", leads)
			}
			if at := w.at(election); at != to {
				t.Errorf("candidates stand on %s, want %s", at, to)
			}
			if n := len(w.c[to].Members(election)); n < 3 {
				t.Errorf("%d stand on %s, want 3 and perhaps a seal", n, to)
			}
		}
		for _, name := range others {
			if w.token(name) != tokens[name] {
				t.Errorf("the move of %s cost a term of %s", election, name)
			}
		}
	}, "a", "b")
}

// Whoever gives up a move, at whatever moment, is told that it may be under way if it is.
func TestMoveGivenUp(t *testing.T) {
	for after := time.Duration(0); after < 60*time.Millisecond; after += 500 * time.Microsecond {
		inWorld(t, func(t *testing.T, w *world) {
			w.process("p", "a", "b").run(election)
			w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
			op := w.process("operator", "a", "b")
			if _, _, err := op.Where(w.ctx, election); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(w.ctx, after)
			defer cancel()
			err := op.Move(ctx, election, other(w.at(election)), nil)
			want(t, err, context.DeadlineExceeded)
			time.Sleep(time.Second) // what was sent arrives
			h, _, herr := op.Where(w.ctx, election)
			if herr != nil {
				t.Fatal(herr)
			}
			if h.To != "" {
				want(t, err, context.DeadlineExceeded, "the move may be under way: move it again, or abort")
			} else if after > 50*time.Millisecond {
				t.Errorf("nothing is under way after %v", after)
			}
		}, "a", "b")
	}
}

// The error of a move that is given up says what has failed at that moment.
func TestMoveFailsWhenGivenUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.process("p", "a", "b").run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		at, p, after := w.at(election), w.process("operator", "a", "b"), time.Now().Add(time.Second)
		op := spread.New(spread.List(list("a", "b")...), &spread.Options{Open: func(url string) (backend.Backend, error) {
			b, err := p.open(url)
			if err != nil || url != "memory:"+at {
				return b, err
			}
			return view.Of(b, func(s backend.Session) backend.Session { return silenced{s, after, cancel} }), nil
		}})
		defer op.Close()
		want(t, op.Move(ctx, election, other(at), nil), backend.ErrUnavailable, "context canceled", "before that", "it waits for this")
	}, "a", "b")
}

// A silenced session cannot read the election's line any more after a while, and tells.
type silenced struct {
	backend.Session
	after time.Time
	tell  func()
}

func (s silenced) Line(ctx context.Context, line string) (backend.Line, error) {
	if line == election && time.Now().After(s.after) {
		s.tell()
		return backend.Line{}, backend.ErrUnavailable
	}
	return s.Session.Line(ctx, line)
}

// The old cluster is lost for good after the cutover. With an empty one in its place the move can be ended; the leader leads on.
func TestOldClusterIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.process("founder", "a", "b").run("another")
		w.until("somebody leads", time.Minute, func() bool { return w.leader("another") != "" })
		w.process("p", "a", "b", "c").run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		op, to := w.process("operator", "a", "b", "c"), other(w.keeper())
		if err := op.Move(w.ctx, election, "c", nil); err != nil {
			t.Fatal(err)
		}
		w.finish(op, election)
		if err := op.Move(w.ctx, election, to, nil); err != nil {
			t.Fatal(err)
		}
		token := w.token(election)
		w.c["c"].Pause()
		time.Sleep(5 * ttl)
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		if err := op.Finish(ctx, election, nil); err == nil {
			t.Error("finish says that nobody stands on a cluster that it cannot ask")
		}
		lost := w.c["c"]
		w.c["c"] = memory.New(&memory.Options{TTL: ttl, Slack: time.Second})
		op = w.process("operator", "a", "b", "c")
		if err := op.Finish(w.ctx, election, nil); err != nil {
			t.Errorf("finish with an empty cluster in its place: %v", err)
		}
		if h, _, err := op.Where(w.ctx, election); err != nil || h != (spread.Home{At: to}) {
			t.Errorf("after the end of the move: %+v, %v", h, err)
		}
		if w.leader(election) != "p" || w.token(election) != token {
			t.Errorf("%q leads, with token %d; want p, with token %d", w.leader(election), w.token(election), token)
		}
		lost.Resume()
	}, "a", "b", "c")
}

// foreign has a client of another library lead on a cluster. It never stands on both.
func (w *world) foreign(at string) backend.Session {
	w.t.Helper()
	c := w.c[at].Client("foreign")
	w.t.Cleanup(func() { c.Close() })
	s, err := c.Session(w.ctx)
	if err == nil {
		_, err = s.Join(w.ctx, election, "foreign", "")
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// The new cluster is lost for good before the cutover. With an empty one in its place the move can be taken back.
func TestNewClusterIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		at := home(t, w.process("founder", "a", "b")).At
		s := w.foreign(at)
		op := w.process("operator", "a", "b", "c")
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		defer cancel()
		want(t, op.Move(ctx, election, "c", nil), context.DeadlineExceeded, "foreign")
		lost := w.c["c"]
		lost.Pause()
		defer lost.Resume()
		w.c["c"] = memory.New(&memory.Options{TTL: ttl, Slack: time.Second})
		op = w.process("another operator", "a", "b", "c")
		if err := op.Abort(w.ctx, election); err != nil {
			t.Error(err)
		}
		if h, _, err := op.Where(w.ctx, election); err != nil || h != (spread.Home{At: at}) {
			t.Errorf("after the abort: %+v, %v; want %s", h, err, at)
		}
		w.process("p", "a", "b", "c").run(election)
		if err := s.Close(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
	}, "a", "b", "c")
}

// The same holds where the new one that takes its place knows the election, by a fence alone, and the cluster where it lives does not, and
// nobody stands there.
func TestNewClusterIsReplacedByOneWithAFence(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		at := home(t, w.process("founder", "a", "b")).At
		s := w.foreign(at)
		op := w.process("operator", "a", "b", "c")
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		defer cancel()
		want(t, op.Move(ctx, election, "c", nil), context.DeadlineExceeded, "foreign")
		if err := s.Close(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.c[at].Drop(election)
		lost := w.c["c"]
		lost.Pause()
		defer lost.Resume()
		w.c["c"] = memory.New(&memory.Options{TTL: ttl, Slack: time.Second})
		c := w.c["c"].Client("fence")
		defer c.Close()
		if err := operate.New(c, election, "").RaiseFence(w.ctx, 1000); err != nil {
			t.Fatal(err)
		}
		op = w.process("another operator", "a", "b", "c")
		if err := op.Abort(w.ctx, election); err != nil {
			t.Error(err)
		}
		if h, _, err := op.Where(w.ctx, election); err != nil || h != (spread.Home{At: at}) {
			t.Errorf("after the abort: %+v, %v; want %s", h, err, at)
		}
		w.process("p", "a", "b", "c").run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
	}, "a", "b", "c")
}

// An election that nobody has used moves to a cluster that knows it by a fence.
func TestMoveToAClusterWithAFence(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process("p", "a", "b")
		at := home(t, p).At
		c := w.c[other(at)].Client("fence")
		defer c.Close()
		if err := operate.New(c, election, "").RaiseFence(w.ctx, 1000); err != nil {
			t.Fatal(err)
		}
		if err := p.Move(w.ctx, election, other(at), nil); err != nil {
			t.Error(err)
		}
	}, "a", "b")
}

// When the move has ended, the old cluster is not needed: not by who leads and waits, nor by who
// starts, as long as the founder can be asked.
func TestMovedNeedsOldClusterNoMore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stop := w.process("p", "a", "b", "c").run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		from := w.at(election)
		var to, keeper string
		for name := range w.c {
			if w.c[name].Record(election+".spread").Version != backend.Absent {
				keeper = name
			} else {
				to = name
			}
		}
		if keeper != from {
			t.Fatalf("the home of %s is kept by %s, and it lives on %s", election, keeper, from)
		}
		op := w.process("operator", "a", "b", "c")
		if err := op.Move(w.ctx, election, to, nil); err != nil {
			t.Fatal(err)
		}
		w.finish(op, election)
		w.process("q", "a", "b", "c").run(election)
		time.Sleep(time.Second)
		w.c[from].Pause()
		time.Sleep(5 * ttl)
		if got := w.leader(election); got != "p" {
			t.Errorf("%q leads while the old cluster is out, want p", got)
		}
		go stop()
		w.until("q leads", time.Minute, func() bool { return w.leader(election) == "q" })
		w.c[from].Resume()
	}, "a", "b", "c")
}

// An election in which nobody stands moves, too.
func TestMoveOfNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		op := w.process("operator", "a", "b")
		if err := uses(w.ctx, op, election); err != nil {
			t.Fatal(err)
		}
		h, _, _ := op.Where(w.ctx, election)
		if err := op.Move(w.ctx, election, other(h.At), nil); err != nil {
			t.Fatal(err)
		}
		if err := op.Finish(w.ctx, election, nil); err != nil {
			t.Fatal(err)
		}
		w.process("p", "a", "b").run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		if at := w.at(election); at != other(h.At) {
			t.Errorf("p stands on %s, want %s", at, other(h.At))
		}
	}, "a", "b")
}

// Package migrate takes the URLs of two clusters for two names of one. A move between them is refused before anything is written that
// nobody could take back.
func TestMoveBetweenTwoNames(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		op := w.process("operator", "a=x?client=1", "b=x?client=2")
		if err := uses(w.ctx, op, election); err != nil {
			t.Fatal(err)
		}
		h, _, _ := op.Where(w.ctx, election)
		want(t, op.Move(w.ctx, election, other(h.At), nil), backend.ErrInvalid, "one coordinator")
		if now, _, err := op.Where(w.ctx, election); err != nil || now != h {
			t.Errorf("after that it lives at %+v, %v; want %+v", now, err, h)
		}
		if err := op.Abort(w.ctx, election); err != nil {
			t.Error(err)
		}
	}, "x?client=1", "x?client=2")
}

// An election is paused just before candidates are told that it is about to move, which cannot go on then. The pause still waits for
// the leader's work: its gate stands.
func TestPauseWhileSomebodyMoves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process("p", "a", "b")
		term, err := elect.New(p.For(election), election, nil).Campaign(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		h := home(t, p)
		op, mover := w.process("operator", "a", "b"), w.process("mover", "a", "b")
		paused := make(chan error, 1)
		puts := 0
		mover.before = func(call, on string) {
			if call != "put" || on != election+".spread" {
				return
			}
			if puts++; puts == 2 { // it is planned, and the gate stands on the new cluster
				w.wg.Go(func() {
					_, err := operate.New(op.For(election), election, "operator").Pause(w.ctx, "maintenance")
					paused <- err
				})
				<-term.Context().Done() // it is asked to resign, and its work goes on
			}
		}
		ctx, cancel := context.WithTimeout(w.ctx, 3*ttl)
		defer cancel()
		want(t, mover.Move(ctx, election, other(h.At), nil), context.DeadlineExceeded)
		select {
		case err := <-paused:
			t.Fatalf("Pause ends with %v, while the leader's work goes on", err)
		default:
		}
		if err := term.Resign(w.ctx); err != nil {
			t.Error(err)
		}
		if err := <-paused; err != nil {
			t.Error(err)
		}
	}, "a", "b")
}

// While an election moves, an outage of the new cluster is none of the others on the old one.
func TestOutageWhileMoving(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process("p", "a", "b")
		h := home(t, p)
		var beside []string
		for _, name := range names(20) {
			if _, falls, _ := p.Where(w.ctx, name); falls == h.At {
				beside = append(beside, name)
			}
		}
		p.run(append(beside, election)...)
		time.Sleep(time.Second)
		op := w.process("operator", "a", "b")
		if err := op.Move(w.ctx, election, other(h.At), nil); err != nil {
			t.Fatal(err)
		}
		w.c[other(h.At)].Pause()
		time.Sleep(5 * ttl)
		if got := w.leader(election); got != "" {
			t.Errorf("%s leads %s, which has moved to a cluster that is out", got, election)
		}
		for _, name := range beside {
			if w.leader(name) != "p" || w.count(name) != 1 {
				t.Errorf("%q leads %s in term %d, which did not move", w.leader(name), name, w.count(name))
			}
		}
		w.c[other(h.At)].Resume()
		w.until("p leads again", time.Minute, func() bool { return w.leader(election) == "p" })
	}, "a", "b")
}

// An election that an operator has moved by package migrate itself is where that says, once Move has
// been told.
func TestMovedByMigrate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		op := w.process("operator", "a", "b")
		at := home(t, op).At
		to := other(at)
		m := migrate.New(w.c[at].Client("old"), w.c[to].Client("new"), &migrate.Options{From: "memory:" + at, To: "memory:" + to, Begin: true})
		defer m.Close()
		term, err := elect.New(m, election, nil).Campaign(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Cutover(w.ctx, election); err != nil {
			t.Fatal(err)
		}
		term.Resign(w.ctx)
		_, err = elect.New(op.For(election), election, nil).Campaign(w.ctx)
		want(t, err, backend.ErrSealed)
		if err := op.Move(w.ctx, election, to, nil); err != nil {
			t.Fatal(err)
		}
		w.finish(op, election)
		w.process("p", "a", "b").run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		if now := w.at(election); now != to {
			t.Errorf("p stands on %s, want %s", now, to)
		}
	}, "a", "b")
}

// A process that has missed the whole move finds its way.
func TestMoveIsMissed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process("p", "a", "b")
		h := home(t, p)
		stop := p.run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		observer := w.process("observer", "a", "b")
		watches := make(chan elect.State, 100)
		w.wg.Go(func() {
			for l, err := range elect.New(observer.For(election), election, nil).Observe(w.ctx) {
				if err == nil {
					watches <- l
				}
			}
		})
		time.Sleep(time.Second)
		p.each(h.At, (*memory.Backend).Hide)
		observer.each(h.At, (*memory.Backend).Hide)
		q := w.process("q", "a", "b")
		q.run(election)
		w.until("q leads", time.Minute, func() bool { return w.leader(election) == "q" })
		op := w.process("operator", "a", "b")
		if err := op.Move(w.ctx, election, other(h.At), nil); err != nil {
			t.Fatal(err)
		}
		w.finish(op, election)
		token := w.token(election)
		p.each(h.At, (*memory.Backend).Heal)
		observer.each(h.At, (*memory.Backend).Heal)
		time.Sleep(3 * ttl)
		if now := w.leader(election); now != "q" || w.token(election) != token {
			t.Errorf("%q leads with token %d; want q, with %d", now, w.token(election), token)
		}
		w.until("p stands behind q", time.Minute, func() bool { return len(w.c[other(h.At)].Members(election)) == 2 })
		var last elect.State
		for len(watches) > 0 {
			last = <-watches
		}
		if last.Leader.ID != "q" || last.Leader.Token != token {
			t.Errorf("an observer that missed the move sees %+v, want q with %d", last, token)
		}
		stop()
	}, "a", "b")
}

// A process that only reads records of an election finds its way too, though no member and no line tell it of a move that it
// has missed. So does a candidate that comes when the old cluster has been taken away.
func TestMoveIsMissedByReader(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.process("founder", "a", "b").run("another")
		w.until("somebody leads", time.Minute, func() bool { return w.leader("another") != "" })
		p := w.process("p", "a", "b", "c")
		if err := p.Put(w.ctx, election, "c"); err != nil {
			t.Fatal(err)
		}
		p.run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		w.guards("position", "1")
		reader, late := w.process("reader", "a", "b", "c"), w.process("late", "a", "b", "c")
		position := record.New(reader.For(election), "position", record.Text())
		read := make(chan string, 100)
		w.wg.Go(func() {
			for e, err := range position.Follow(w.ctx) {
				if err == nil {
					read <- e.Value
				}
			}
		})
		if err := uses(w.ctx, late, election); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl)
		keeper := w.keeper()
		reader.each(keeper, (*memory.Backend).Hide)
		late.each(keeper, (*memory.Backend).Hide)
		op := w.process("operator", "a", "b", "c")
		if err := op.Move(w.ctx, election, other(keeper), nil); err != nil {
			t.Fatal(err)
		}
		w.finish(op, election)
		w.guards("position", "2")
		reader.each(keeper, (*memory.Backend).Heal)
		late.each(keeper, (*memory.Backend).Heal)
		time.Sleep(3 * ttl)
		last := ""
		for len(read) > 0 {
			last = <-read
		}
		if last != "2" {
			t.Errorf("who follows the record sees %q last; want 2", last)
		}
		w.c["c"].Pause()
		late.run(election)
		w.until("the late one stands in line", time.Minute, func() bool { return len(w.c[other(keeper)].Members(election)) == 2 })
		w.c["c"].Resume()
	}, "a", "b", "c")
}

// Who cannot find out where an election has gone is told why, and does not look for ever.
func TestHomeIsDamaged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process("p", "a", "b")
		at := home(t, p).At
		for _, c := range w.c {
			s, err := c.Client("vandal").Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if c.Record(election+".spread").Version != backend.Absent {
				if _, err := s.Put(t.Context(), election+".spread", []byte("nonsense"), nil); err != nil {
					t.Fatal(err)
				}
			}
			if c == w.c[at] {
				if _, err := s.Put(t.Context(), election, backend.Header{Sealed: "elsewhere"}.Encode(), nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := elect.New(p.For(election), election, nil).Campaign(ctx); err == nil || ctx.Err() != nil {
			t.Errorf("where the record of the home is damaged: %v", err)
		}
	}, "a", "b")
}

// home gives the election a home.
func home(t *testing.T, p *process) spread.Home {
	t.Helper()
	if err := uses(t.Context(), p, election); err != nil {
		t.Fatal(err)
	}
	h, _, err := p.Where(t.Context(), election)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// each does something to each connection with the coordinator.
func (p *process) each(coordinator string, f func(*memory.Backend)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.clients[coordinator] {
		f(b)
	}
}

// A move that cannot be made is taken back, and the election stays.
func TestAbort(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process("p", "a", "b", "c")
		h := home(t, p)
		var to, third string
		for name := range w.c {
			if name != h.At {
				to, third = name, to
			}
		}
		// A client of another program leads, and never stands on both clusters.
		foreign := w.c[h.At].Client("foreign")
		defer foreign.Close()
		s, err := foreign.Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Join(w.ctx, election, "foreign", "")
		if err != nil {
			t.Fatal(err)
		}
		p.run(election)
		time.Sleep(time.Second)
		op := w.process("operator", "a", "b", "c")
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		want(t, op.Move(ctx, election, to, nil), context.DeadlineExceeded, "foreign")
		want(t, op.Finish(w.ctx, election, nil), spread.ErrRefused)
		want(t, op.Move(w.ctx, election, third, nil), spread.ErrRefused, "being moved from "+h.At+" to "+to)
		for range 2 {
			if err := op.Abort(w.ctx, election); err != nil {
				t.Fatal(err)
			}
		}
		if got, _, err := op.Where(w.ctx, election); err != nil || got != h {
			t.Errorf("after the abort: %+v, %v; want %+v", got, err, h)
		}
		if err := s.Leave(w.ctx, m.Member); err != nil {
			t.Fatal(err)
		}
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		if at := w.at(election); at != h.At {
			t.Errorf("p stands on %s, want %s", at, h.At)
		}
		if err := op.Move(w.ctx, election, third, nil); err != nil {
			t.Error(err)
		}
		want(t, op.Abort(w.ctx, election), spread.ErrRefused, "too late")
		w.finish(op, election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		if at := w.at(election); at != third {
			t.Errorf("p stands on %s, want %s", at, third)
		}
	}, "a", "b", "c")
}
