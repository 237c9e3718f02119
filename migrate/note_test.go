package migrate_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

const (
	record    = "progress"
	unguarded = "config" // no leader guards it before the cutover
)

// reads checks what a client says that has never seen the election.
func (w *world) reads(mode, want string) {
	w.t.Helper()
	w.readsOf(record, mode, want)
}

func (w *world) readsOf(record, mode, want string) {
	w.t.Helper()
	b, _ := w.backend(mode, "reader")
	defer b.Close()
	s, err := b.Session(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	if r, err := s.Get(w.ctx, record); err != nil || string(r.Value) != want {
		w.t.Errorf("a client of %s reads %q, %v; want %q", mode, r.Value, err, want)
	}
}

// guards has a leader write the record as one does who reads it first, and returns how
// often that was refused.
func (w *world) guards(p *process, value string) (refused int) {
	w.t.Helper()
	s, err := p.b.Session(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	for ; refused < 3; refused++ {
		r, err := s.Get(w.ctx, record)
		if err == nil {
			_, err = p.term.Put(w.ctx, record, []byte(value), r.Version)
		}
		if err == nil {
			return refused
		}
		if !errors.Is(err, backend.ErrVersion) {
			w.t.Fatalf("%s writes %q: %v", p.name, value, err)
		}
	}
	w.t.Fatalf("%s cannot write %q at the version that it has read", p.name, value)
	return
}

// watches waits for values of the record, until one of them is the last.
func (w *world) watches(last string) (seen <-chan []string) {
	w.t.Helper()
	result := make(chan []string, 1)
	w.wg.Go(func() {
		b, _ := w.backend(onBoth, "watcher")
		defer b.Close()
		var values []string
		defer func() { result <- values }()
		s, err := b.Session(w.ctx)
		var r backend.Record
		for err == nil && string(r.Value) != last {
			r, err = s.Watch(w.ctx, record, r.Version)
			values = append(values, string(r.Value))
		}
		if err != nil {
			w.t.Errorf("the watcher: %v", err)
		}
	})
	return result
}

// What a leader guards is where the election is, there and back and there again, for
// those who know nothing of the election too, and old values do not come back.
func TestGuardedRecordsFollow(t *testing.T) {
	inWorld(t, func(w *world) {
		move := func(mode, value string) {
			op, p := w.underway(mode, "p")
			defer p.end()
			w.guards(p, value+"a")
			w.reads(mode, value+"a")
			w.do(op.Cutover, migrate.Moved)
			w.reads(mode, value+"a")
			if refused := w.guards(p, value+"b"); refused != 0 {
				t.Errorf("the first write after the cutover was refused %d times, at the version that was read after it", refused)
			}
			w.reads(mode, value+"b")
			if refused := w.guards(p, value+"c"); refused != 0 {
				t.Errorf("the next write was refused %d times", refused)
			}
			w.reads(mode, value+"c")
		}
		seen := w.watches("1c")
		synctest.Wait()
		move(onBoth, "1")
		// What had not been seen when the next was written may be left out.
		if values := <-seen; values[len(values)-1] != "1c" {
			t.Errorf("the watcher saw %q", values)
		}
		w.reads(onNew, "1c")
		move(onBack, "2")
		w.reads(onOld, "2c")
		move(onBoth, "3")
		w.reads(onNew, "3c")
	})
}

// No two migrations have one ID, also where somebody names them alike: what the first has
// carried over is not what the next one finds.
func TestMigrationsOfOneName(t *testing.T) {
	inWorld(t, func(w *world) {
		ids := make(map[string]bool)
		move := func(mode, id, value string) {
			o, from, to := &migrate.Options{From: oldURL, To: newURL, ID: id}, 0, 1
			if mode == onBack {
				o.From, o.To, from, to = newURL, oldURL, 1, 0
			}
			op := migrate.New(w.c[from].Client("operator"), w.c[to].Client("operator"), o)
			defer op.Close()
			s := w.do(op.Begin, migrate.Begun)
			if ids[s.ID] {
				t.Errorf("the ID %s was used before", s.ID)
			}
			ids[s.ID] = true
			p := w.start(mode, "p")
			defer p.end()
			w.leads(p)
			w.guards(p, value)
			w.do(op.Cutover, migrate.Moved)
			w.reads(mode, value)
			w.guards(p, value)
		}
		move(onBoth, "there", "1")
		move(onBack, "back", "2")
		move(onBoth, "there", "3")
	})
}

// writesAndMoves returns the leader of an election that has moved, who has written the
// record before and not since. Somebody else has written the one that nobody guards.
func (w *world) writesAndMoves() *process {
	w.t.Helper()
	op, p := w.underway(onBoth, "p")
	w.guards(p, "1")
	s, err := w.c[0].Client("other").Session(w.ctx)
	if err == nil {
		_, err = s.Put(w.ctx, unguarded, []byte("1"), nil)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.do(op.Cutover, migrate.Moved)
	return p
}

// A record that its leader has deleted stays away, although its last value stands on the
// coordinator that the election has gone from.
func TestDeletedRecordStaysAway(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.writesAndMoves()
		defer p.end()
		s, err := p.b.Session(w.ctx)
		if err == nil {
			err = s.Delete(w.ctx, record, &backend.If{Member: p.term.Member()})
		}
		if err != nil {
			t.Fatal(err)
		}
		w.reads(onBoth, "")
		if old := w.c[0].Record(record); string(old.Value) != "1" {
			t.Errorf("on the old one is %q", old.Value)
		}
	})
}

// After the cutover a leader does without the old coordinator. What nobody has written
// since is out of reach, and costs the leader nothing.
func TestRecordsWithoutTheOldCoordinator(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.writesAndMoves()
		defer p.end()
		p.sub[0].Cut()
		time.Sleep(3 * ttl)
		term := p.term
		if !p.leads() {
			t.Fatal("the leader needs the old coordinator")
		}
		s, err := p.b.Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.ctx, ttl)
		defer cancel()
		if r, err := s.Get(ctx, record); err != nil || string(r.Value) != "1" {
			t.Errorf("the record that has moved is %q, %v", r.Value, err)
		}
		if _, err := s.Get(ctx, unguarded); !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("a record that the old one keeps: %v; want ErrUnavailable", err)
		}
		if _, err := term.Put(w.ctx, unguarded, []byte("2"), backend.Any); err != nil {
			t.Errorf("a guarded write of it: %v", err)
		}
		if _, err := term.Put(w.ctx, record, []byte("2"), backend.Any); err != nil {
			t.Errorf("a guarded write: %v", err)
		}
		if r, err := s.Get(w.ctx, record); err != nil || string(r.Value) != "2" {
			t.Errorf("the leader reads %q, %v", r.Value, err)
		}
		if p.term != term || !p.leads() {
			t.Error("the leader's term has ended")
		}
	})
}

// A first write that fails, while the old coordinator is out of reach, leaves the record as
// it was.
func TestFailedWriteWithoutTheOldCoordinator(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.writesAndMoves()
		defer p.end()
		p.sub[0].Cut()
		time.Sleep(3 * ttl)
		if _, err := p.term.Put(w.ctx, unguarded, make([]byte, backend.MaxRecord+1), backend.Any); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("a value that is too long: %v, want %v", err, backend.ErrInvalid)
		}
		w.readsOf(unguarded, onBoth, "1")
		s, err := p.b.Session(w.ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		if err := s.Delete(w.ctx, unguarded, &backend.If{Member: p.term.Member()}); err != nil {
			t.Error(err)
		}
		w.readsOf(unguarded, onBoth, "")
	})
}

// The fence that a migration has raised outlives the election, also when only clients of
// the new coordinator are left.
func TestFenceOutlivesTheMovedElection(t *testing.T) {
	inWorld(t, func(w *world) {
		if err := operate.New(w.c[0].Client("fence"), election, "").RaiseFence(w.ctx, 1_000_000); err != nil {
			t.Fatal(err)
		}
		op, p := w.underway(onBoth, "p")
		w.do(op.Cutover, migrate.Moved)
		p.end()
		w.c[1].Drop(election)
		n := w.start(onNew, "n")
		w.leads(n) // and its token is larger; see began
		n.end()
	})
}

// A deaf backend does not hear that its first write of the record was done.
type deaf struct {
	backend.Backend
	record string
	hears  error // instead
	lost   *atomic.Bool
}

type deafSession struct {
	backend.Session
	b deaf
}

func (b deaf) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return deafSession{s, b}, err
}

func (s deafSession) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	v, err := s.Session.Put(ctx, name, value, cond)
	if err == nil && name == s.b.record && s.b.lost.CompareAndSwap(false, true) {
		return 0, s.b.hears
	}
	return v, err
}

// writesAlone has a leader of the new coordinator alone, who finds what was carried over, write the record.
func (w *world) writesAlone(record, value string) {
	w.t.Helper()
	n := w.start(onNew, "n")
	w.leads(n)
	w.guardsAs(n, record, value)
	n.end()
}

// keepsNewer checks that a leader with both coordinators overwrites nothing that one of the new coordinator alone has
// written in the record, but reads it, and writes over it without a version.
func (w *world) keepsNewer(record, value string) {
	w.t.Helper()
	q := w.start(onBoth, "q")
	w.leads(q)
	s, err := q.b.Session(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := s.Get(w.ctx, record)
	if err != nil || string(r.Value) != value || string(w.c[1].Record(record).Value) != value {
		w.t.Errorf("the leader reads %q, %v, and on the new coordinator is %q; want %q", r.Value, err, w.c[1].Record(record).Value, value)
	}
	w.guardsAs(q, record, string(r.Value)+"+")
	if now := string(w.c[1].Record(record).Value); now != value+"+" {
		w.t.Errorf("after the leader's write is %q; want %q", now, value+"+")
	}
	q.end()
}

// Finish carries a record over, and crashes, or does not hear that it has. Then a leader of the new coordinator alone
// writes the record. That is never undone, and who finishes again makes the record known.
func TestLostAnswerOfFinish(t *testing.T) {
	for _, tt := range []struct {
		crash, again bool
	}{{}, {crash: true}, {crash: true, again: true}} {
		inWorld(t, func(w *world) {
			op, p := w.underway(onBoth, "p")
			w.guardsAs(p, record, "1")
			w.leavesBehind(op, p, record)
			o := &migrate.Options{From: oldURL, To: newURL, Carry: []string{record}}
			to := deaf{w.c[1].Client("deaf"), record, backend.ErrUnavailable, new(atomic.Bool)}
			if tt.crash {
				to.hears = errCrashed
			}
			b := migrate.New(w.c[0].Client("deaf"), to, o)
			defer b.Close()
			if tt.crash {
				w.refuses(b.Finish, errCrashed)
			} else {
				w.do(b.Finish, migrate.Moved)
			}
			w.reads(onNew, "1")
			w.writesAlone(record, "2")
			if tt.again {
				w.do(op.Finish, migrate.Moved)
			}
			if tt.again || !tt.crash {
				w.reads(onBoth, "2")
			}
			w.keepsNewer(record, "2")
		})
	}
}

// The same holds for the leader's first write of a record after the cutover, whether it reaches the old coordinator then
// or not.
func TestLostAnswerOfTheFirstWrite(t *testing.T) {
	for _, reaches := range []bool{true, false} {
		inWorld(t, func(w *world) {
			old := w.c[0].Client("p")
			b := migrate.New(old, deaf{w.c[1].Client("p"), unguarded, errCrashed, new(atomic.Bool)}, &migrate.Options{From: oldURL, To: newURL})
			defer b.Close()
			w.writes(0, unguarded, "1")
			op := w.begun(onBoth)
			term, err := elect.New(b, election, nil).Campaign(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			w.do(op.Cutover, migrate.Moved)
			at := backend.Any
			if reaches {
				s, err := b.Session(w.ctx)
				if err != nil {
					t.Fatal(err)
				}
				r, err := s.Get(w.ctx, unguarded)
				if err != nil {
					t.Fatal(err)
				}
				at = r.Version
			} else {
				old.Cut()
				time.Sleep(3 * ttl)
			}
			if _, err := term.Put(w.ctx, unguarded, []byte("1a"), at); !errors.Is(err, errCrashed) {
				t.Fatalf("a write that is done before the crash: %v", err)
			}
			if err := term.Resign(w.ctx); err != nil {
				t.Fatal(err)
			}
			w.writesAlone(unguarded, "2")
			w.keepsNewer(unguarded, "2")
		})
	}
}

// A leader of the new coordinator alone writes a record that nobody has carried over. All processes with both read the old
// one, whether they stand in line or not. A leader's first write takes back nothing: where the old one has another value, it is refused
// until a person has made them the same.
func TestWrittenByTheNewOneAlone(t *testing.T) {
	for _, old := range []string{"", "o1"} {
		inWorld(t, func(w *world) {
			if old != "" {
				w.writes(0, unguarded, old)
			}
			op, p := w.underway(onBoth, "p")
			w.do(op.Cutover, migrate.Moved)
			p.end()
			w.writesAlone(unguarded, "2")
			q := w.start(onBoth, "q")
			defer q.end()
			w.leads(q)
			w.readsOf(unguarded, onBoth, old)
			r, err := q.term.Get(w.ctx, unguarded)
			if err != nil || string(r.Value) != old {
				t.Fatalf("the leader reads %q, %v; want %q, as those do that stand nowhere", r.Value, err, old)
			}
			_, err = q.term.Put(w.ctx, unguarded, []byte("3"), r.Version)
			if old == "" && !errors.Is(err, backend.ErrVersion) {
				t.Errorf("a write at the version of the old coordinator: %v, want %v", err, backend.ErrVersion)
			}
			if old != "" {
				if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), unguarded) || !strings.Contains(err.Error(), "copy the newer one") {
					t.Errorf("a write where nobody knows which counts: %v, want %v, and what to do", err, backend.ErrInvalid)
				}
				w.writes(0, unguarded, "2")
			}
			if now := w.c[1].Record(unguarded); string(now.Value) != "2" {
				t.Fatalf("on the new coordinator is %q; want what the leader of it alone has written", now.Value)
			}
			for err, tries := backend.ErrVersion, 0; errors.Is(err, backend.ErrVersion) && tries < 3; tries++ {
				if r, err = q.term.Get(w.ctx, unguarded); err == nil && string(r.Value) == "2" {
					_, err = q.term.Put(w.ctx, unguarded, []byte("3"), r.Version)
				}
				if err != nil && !errors.Is(err, backend.ErrVersion) {
					t.Error(err)
				}
			}
			w.readsOf(unguarded, onBoth, "3")
			w.readsOf(unguarded, onNew, "3")
		})
	}
}

// The gate goes without the records, and the new coordinator has an older one, from when the election was there before: with a
// note, if leaders with both were there, or without. The leader reads the old coordinator's as soon as that is back, and
// does not replace it in silence.
func TestOlderValueWhereTheGateGoesWithoutTheRecords(t *testing.T) {
	for _, note := range []string{"", `{"record":"` + record + `","election":"` + election + `","migration":""}`, `{"record":"` + record + `","election":"` + election + `","migration":"earlier"}`} {
		inWorld(t, func(w *world) {
			w.writes(1, record, "0")
			if note != "" {
				w.writes(1, record+".migrate-home", note)
			}
			var old *memory.Backend
			term := w.sealsThen(func(b *memory.Backend) { old = b; b.Cut() })
			w.until("the gate has gone", 5*ttl, func() bool { return !w.c[1].Members(election)[0].Pinned })
			if r, err := term.Get(w.ctx, record); !errors.Is(err, backend.ErrUnavailable) {
				t.Errorf("without the old coordinator the leader reads %q, %v; want %v", r.Value, err, backend.ErrUnavailable)
			}
			old.Heal()
			var r backend.Record
			w.until("the old one is back", 5*ttl, func() (is bool) {
				var err error
				r, err = term.Get(w.ctx, record)
				return err == nil
			})
			if string(r.Value) != "1" {
				t.Errorf("the leader reads %q; want what it has written on the old coordinator", r.Value)
			}
			if _, err := term.Put(w.ctx, record, []byte("2"), r.Version); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("a write where nobody knows which counts: %v, want %v", err, backend.ErrInvalid)
			}
			op, _ := w.operator(onBoth)
			defer op.Close()
			w.refuses(op.Finish, migrate.ErrRefused, record, "copy the newer one")
			w.writes(1, record, "1")
			w.do(op.Finish, migrate.Moved)
			if r, err := term.Get(w.ctx, record); err != nil || string(r.Value) != "1" {
				t.Errorf("after that the leader reads %q, %v", r.Value, err)
			} else if _, err := term.Put(w.ctx, record, []byte("2"), r.Version); err != nil {
				t.Error(err)
			}
			if err := term.Resign(w.ctx); err != nil {
				t.Error(err)
			}
			w.reads(onNew, "2")
		})
	}
}

// A record of an election that has not moved yet is read on the old coordinator, also by a process that stands only in one that has.
func TestRecordOfAnElectionThatHasNotMoved(t *testing.T) {
	inWorld(t, func(w *world) {
		w.writes(0, unguarded, "2")
		w.writes(1, unguarded, "1")
		w.writes(1, unguarded+".migrate-home", `{"record":"`+unguarded+`","election":"another","migration":""}`)
		op, p := w.underway(onBoth, "p")
		defer p.end()
		w.do(op.Cutover, migrate.Moved)
		if r, err := p.term.Get(w.ctx, unguarded); err != nil || string(r.Value) != "2" {
			t.Errorf("the leader reads %q, %v; want what is on the old coordinator", r.Value, err)
		}
	})
}

// A leader's first write without a version overwrites both, also where nobody knows which of the two counts.
func TestFirstWriteWithoutAVersion(t *testing.T) {
	inWorld(t, func(w *world) {
		w.writes(0, unguarded, "o1")
		op, p := w.underway(onBoth, "p")
		defer p.end()
		w.do(op.Cutover, migrate.Moved)
		w.writes(1, unguarded, "2")
		w.guardsAs(p, unguarded, "3")
		w.readsOf(unguarded, onBoth, "3")
		w.readsOf(unguarded, onNew, "3")
	})
}
