package spread_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/record"
	"github.com/succession-dev/succession/spread"
)

// keeper returns the cluster that keeps the home of the election.
func (w *world) keeper() string {
	w.t.Helper()
	for name, c := range w.c {
		if c.Record(election+".spread").Version != backend.Absent {
			return name
		}
	}
	w.t.Fatal("no cluster keeps the home of the election")
	return ""
}

// ringsLate returns an operator who does meanwhile just before it first rings the bell.
func (w *world) ringsLate(meanwhile func()) *process {
	op := w.process("late", "a", "b", "c")
	rung := false
	op.before = func(call, on string) {
		if call == "put" && on == ".spread-moves" && !rung {
			rung = true
			meanwhile()
		}
	}
	return op
}

// An operator who rings the bell late, when another has gone on with the move, does not say what was.
func TestBellRingsLate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.process("p", "a", "b", "c").run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		to := other(w.at(election))
		if to == "" {
			to = "a"
		}
		op := w.process("operator", "a", "b", "c")
		late := w.ringsLate(func() {
			if err := op.Move(w.ctx, election, to, nil); err != nil {
				t.Error(err)
			}
			w.finish(op, election)
		})
		if err := late.Move(w.ctx, election, to, nil); err != nil {
			t.Fatal(err)
		}
		if bell := w.c[w.keeper()].Record(".spread-moves"); string(bell.Value) != "{}" {
			t.Errorf("the bell says %s", bell.Value)
		}
	}, "a", "b", "c")
}

// An operator who rings late that an election is not being moved does not hide a move from candidates
// that have not heard of it yet.
func TestBellRingsLateForNoMove(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all []*process
		for _, name := range []string{"p", "q"} {
			p := w.process(name, "a", "b", "c")
			p.run(election)
			all = append(all, p)
		}
		w.until("both stand in line", time.Minute, func() bool { at := w.at(election); return at != "" && len(w.c[at].Members(election)) == 2 })
		to := other(w.at(election))
		if to == "" {
			to = "a"
		}
		keeper := w.keeper()
		each := func(f func(*memory.Backend)) {
			for _, p := range all {
				p.each(keeper, f)
			}
		}
		op := w.process("operator", "a", "b", "c")
		moved := make(chan error, 1)
		late := w.ringsLate(func() {
			each((*memory.Backend).Hide)
			rung := w.c[keeper].Record(".spread-moves").Version
			w.wg.Go(func() {
				ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
				defer cancel()
				moved <- op.Move(ctx, election, to, nil)
			})
			w.until("the bell rings for the move", time.Minute, func() bool { return w.c[keeper].Record(".spread-moves").Version != rung })
		})
		if err := late.Abort(w.ctx, election); err != nil { // there is nothing to abort
			t.Fatal(err)
		}
		each((*memory.Backend).Heal)
		if err := <-moved; err != nil {
			t.Error(err)
		}
	}, "a", "b", "c")
}

// An operator who is killed before he rings the bell leaves one that is wrong. Candidates do not join again whenever it rings for
// others.
func TestBellDoesNotRing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		op := w.process("operator", "a", "b")
		to := other(home(t, op).At)
		if err := op.Move(w.ctx, election, to, nil); err != nil {
			t.Fatal(err)
		}
		dies := w.process("dies", "a", "b")
		dies.before = func(call, on string) {
			if call == "put" && on == ".spread-moves" {
				dies.kill()
			}
		}
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		if err := dies.Finish(ctx, election, nil); err == nil {
			t.Fatal("the bell rings")
		}
		for _, name := range []string{"p", "q", "r"} {
			w.process(name, "a", "b").run(election)
		}
		time.Sleep(ttl)
		before := w.c[to].Members(election)
		for _, name := range names(10) { // they ring the bells of both clusters
			if err := op.Abort(w.ctx, name); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(ttl)
		if now := w.c[to].Members(election); len(now) != 3 || !slices.Equal(now, before) {
			t.Errorf("when the bell rang for others, those in line became %v; they were %v", now, before)
		}
	}, "a", "b")
}

// A process that hears the bell just after it has read where an election lives reads that again, the
// second time too.
func TestBellRingsWhileHomeIsRead(t *testing.T) {
	for nth := range 2 {
		inWorld(t, func(t *testing.T, w *world) {
			op := w.process("operator", "a", "b")
			at := home(t, op).At
			to := other(at)
			vandal, err := w.c[w.keeper()].Client("vandal").Session(w.ctx)
			if err == nil { // so that the bell says something else when p reads
				_, err = vandal.Put(w.ctx, ".spread-moves", fmt.Appendf(nil, `{%q:{"at":%q,"to":%q}}`, election, at, to), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.process("q", "a", "b").run(election)
			w.until("q leads", time.Minute, func() bool { return w.leader(election) == "q" })
			move := func() {
				ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second) // who does not know is asked to resign after 20
				defer cancel()
				if err := op.Move(ctx, election, to, nil); err != nil {
					t.Error(err)
				}
			}
			p := w.process("p", "a", "b")
			reads := 0
			p.before = func(call, on string) {
				if call != "got" || on != election+".spread" {
					return
				}
				if reads++; reads != nth+1 {
					return
				}
				rung := w.c[w.keeper()].Record(".spread-moves").Version
				w.wg.Go(move)
				w.until("the bell rings", time.Minute, func() bool { return w.c[w.keeper()].Record(".spread-moves").Version != rung })
				time.Sleep(time.Second) // p hears it
			}
			for _, name := range names(10) { // from then on p follows both bells
				if err := uses(w.ctx, p, name); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			p.run(election)
			time.Sleep(15 * time.Second)
		}, "a", "b")
	}
}

// Many elections whose moves the bell tells of at one moment are not asked for one after the other.
func TestBellRingsForMany(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		asked := make(map[string]bool)
		p := w.process("p", "a", "b")
		p.before = func(call, on string) {
			mu.Lock()
			defer mu.Unlock()
			asked[on] = asked[on] || call == "got"
		}
		moving, vandal := make(map[string]spread.Home), w.c["a"].Client("vandal")
		defer vandal.Close()
		s, err := vandal.Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		put := func(name string, value any) {
			t.Helper()
			text, err := json.Marshal(value)
			if err == nil {
				_, err = s.Put(w.ctx, name, text, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range names(200) {
			if err := uses(w.ctx, p, name); err != nil {
				t.Fatal(err)
			}
			if home := name + ".spread"; w.c["a"].Record(home).Version != backend.Absent {
				moving[name] = spread.Home{At: "a", To: "b"}
				put(home, moving[name])
			}
		}
		time.Sleep(ttl)
		mu.Lock()
		clear(asked)
		mu.Unlock()
		p.each("a", func(b *memory.Backend) { b.Delay(25*time.Millisecond, 0) })
		put(".spread-moves", moving)
		w.until(fmt.Sprint("p has asked for ", len(moving), " homes"), time.Second, func() bool {
			mu.Lock()
			defer mu.Unlock()
			for name := range moving {
				if !asked[name+".spread"] {
					return false
				}
			}
			return len(moving) > 50
		})
	}, "a", "b")
}

// While the founder that keeps its home is out, who uses an election that lives elsewhere does not wait for that: neither if nothing
// has ever moved, nor if the bell was the last that was heard.
func TestKeeperIsOut(t *testing.T) {
	for name, rings := range map[string]bool{"at rest": false, "after it has rung": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				op := w.process("operator", "a", "b")
				_, keeper, err := op.Where(w.ctx, election)
				if err == nil {
					err = op.Put(w.ctx, election, other(keeper))
				}
				if err != nil {
					t.Fatal(err)
				}
				position := record.New(w.process("p", "a", "b").For(election), "position", record.Text())
				if _, err := position.Get(w.ctx); err != nil {
					t.Fatal(err)
				}
				time.Sleep(ttl)
				for _, name := range names(10) {
					if _, falls, err := op.Where(w.ctx, name); err != nil {
						t.Fatal(err)
					} else if rings && falls == keeper {
						if err := op.Abort(w.ctx, name); err != nil { // there is no move, and the bell rings
							t.Fatal(err)
						}
					}
				}
				time.Sleep(time.Second)
				w.c[keeper].Pause()
				defer w.c[keeper].Resume()
				for _, most := range []time.Duration{time.Second, 100 * time.Millisecond} { // at first it may be asked in vain
					began := time.Now()
					for range 10 {
						ctx, cancel := context.WithTimeout(w.ctx, time.Second)
						if _, err := position.Get(ctx); err != nil {
							t.Error(err)
						}
						cancel()
					}
					if d := time.Since(began); d > most || !rings && d > 100*time.Millisecond {
						t.Errorf("ten reads took %v", d)
					}
				}
			}, "a", "b")
		})
	}
}
