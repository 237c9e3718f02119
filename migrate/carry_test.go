package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// guardsAs has a leader write a record in its term, whatever the version.
func (w *world) guardsAs(p *process, name, value string) {
	w.t.Helper()
	if _, err := p.term.Put(w.ctx, name, []byte(value), backend.Any); err != nil {
		w.t.Fatal(err)
	}
}

// deletes has a client of one side delete the record, on condition that m stands.
func (w *world) deletes(b backend.Backend, m backend.Member) {
	w.t.Helper()
	s, err := b.Session(w.ctx)
	if err == nil {
		err = s.Delete(w.ctx, record, &backend.If{Member: m})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// The five steps and nothing else: what a leader has guarded before the cutover is what the next
// leader reads that knows the new coordinator alone.
func TestGuardedRecordMovesByItself(t *testing.T) {
	inWorld(t, func(w *world) {
		op, p := w.underway(onBoth, "p")
		w.guardsAs(p, record, "1")
		w.do(op.Cutover, migrate.Moved)
		w.reads(onBoth, "1")
		p.end()
		w.do(op.Finish, migrate.Moved)
		w.reads(onNew, "1")
	})
}

// What a leader wrote that has gone since moves too. So it is on the way back, where leaders of the new
// coordinator alone have written the record, or deleted it.
func TestRecordOfAnEarlierLeaderMoves(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		inWorld(t, func(w *world) {
			op, p := w.underway(onBoth, "a")
			w.guardsAs(p, record, "1")
			p.end()
			p = w.start(onBoth, "b")
			w.leads(p)
			w.do(op.Cutover, migrate.Moved)
			p.end()
			w.reads(onNew, "1")
			n := w.start(onNew, "n")
			w.leads(n)
			w.guardsAs(n, record, "2")
			want := "2"
			if deleted {
				want = ""
				w.deletes(n.b, n.term.Member())
			}
			n.end()
			back, q := w.underway(onBack, "q")
			w.do(back.Cutover, migrate.Moved)
			q.end()
			w.do(back.Finish, migrate.Moved)
			w.reads(onOld, want)
		})
	}
}

// What belongs to another election is not carried over, although it is in the list: a candidate can write that, and who
// completes the cutover may have more rights.
func TestListNamesAnotherElection(t *testing.T) {
	inWorld(t, func(w *world) {
		op, p := w.underway(onBoth, "p")
		w.guardsAs(p, record, "1") // which makes the list
		var sides [2]backend.Session
		for i, on := range []string{onOld, onNew} {
			b, _ := w.backend(on, "mallory-"+on)
			defer b.Close()
			var err error
			if sides[i], err = b.Session(w.ctx); err != nil {
				t.Fatal(err)
			}
		}
		put := func(s backend.Session, name, text string) {
			t.Helper()
			if _, err := s.Put(w.ctx, name, []byte(text), nil); err != nil {
				t.Fatal(err)
			}
		}
		headers := []string{"victim", "victim.fence", "gone", "gone.fence"}
		for _, name := range headers {
			put(sides[0], name, string(backend.Header{Fence: 1, Sealed: "memory:nowhere"}.Encode()))
		}
		kept := string(backend.Header{Fence: 1000}.Encode())
		put(sides[1], "victim", kept)
		put(sides[1], "victim.fence", kept)
		only := []string{"only", "victim.spread", ".spread", ".spread-moves"} // on From there are none, so these would be deleted
		for _, name := range only {
			put(sides[1], name, map[bool]string{true: kept, false: `{"at":"east"}`}[name == "only"])
		}
		// Plain records of another application; beside one of them its own leaders say so.
		put(sides[0], "billing", "old")
		put(sides[0], "stock", "old")
		put(sides[0], "stock.migrate-home", `{"record":"stock","election":"warehouse"}`)
		plain := []string{"billing", "stock", "orders"}
		for _, name := range plain {
			put(sides[1], name, "new")
		}
		list := strings.Join(slices.Concat(headers, only, plain), `","`)
		put(sides[0], election+".migrate-records", `{"election":"`+election+`","records":["`+record+`","`+list+`"]}`)
		put(sides[1], election+".migrate-records", `{"election":"`+election+`","records":["`+list+`"]}`)
		w.do(op.Cutover, migrate.Moved)
		p.end()
		if _, err := op.Finish(w.ctx, election); err != nil && !strings.Contains(err.Error(), "gone: it is that of an election") && !strings.Contains(err.Error(), "stay on") {
			t.Error("finish:", err)
		}
		for name, want := range map[string]string{"victim": kept, "victim.fence": kept, "only": kept, "victim.spread": `{"at":"east"}`, ".spread": `{"at":"east"}`, ".spread-moves": `{"at":"east"}`, "gone": "", "gone.fence": "", "billing": "new", "stock": "new", "orders": "new"} {
			if r, err := sides[1].Get(w.ctx, name); err != nil || string(r.Value) != want {
				t.Errorf("%s has become %s, %v; want %q", name, r.Value, err, want)
			}
		}
		w.reads(onNew, "1")
	})
}

// The history moves at the cutover, whoever wrote it.
func TestHistoryMovesByItself(t *testing.T) {
	inWorld(t, func(w *world) {
		a, _ := w.backend(onOld, "a")
		defer a.Close()
		term, err := elect.New(a, election, &elect.Options{ID: "a", History: 9}).Campaign(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := term.Resign(w.ctx); err != nil {
			t.Fatal(err)
		}
		op, p := w.underway(onBoth, "p")
		w.do(op.Cutover, migrate.Moved)
		p.end()
		b, _ := w.backend(onNew, "reader")
		defer b.Close()
		if terms, err := operate.New(b, election, "").History(w.ctx); err != nil || len(terms) != 1 || terms[0].ID != "a" {
			t.Errorf("the history is %+v, %v; want the term of a", terms, err)
		}
	})
}

// A crashing backend does nothing more after so many writes.
type crashing struct {
	backend.Backend
	left *atomic.Int64
}

type crashingSession struct {
	backend.Session
	left *atomic.Int64
}

var errCrashed = errors.New("the process has crashed")

func (b crashing) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return crashingSession{s, b.left}, err
}

func (s crashingSession) crash() error {
	if s.left.Add(-1) < 0 {
		return errCrashed
	}
	return nil
}

func (s crashingSession) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if err := s.crash(); err != nil {
		return 0, err
	}
	return s.Session.Put(ctx, name, value, cond)
}

func (s crashingSession) Leave(ctx context.Context, m backend.Member) error {
	if err := s.crash(); err != nil {
		return err
	}
	return s.Session.Leave(ctx, m)
}

// The leader crashes when it has sealed, and who completes the cutover before each of its writes. Until
// somebody else has completed it, nobody leads who knows the new coordinator alone; then that one
// reads what was guarded.
func TestCrashWhileRecordsMove(t *testing.T) {
	crashes := 0
	for n := 0; n == crashes; n++ {
		inWorld(t, func(w *world) {
			op, p := w.underway(onBoth, "p")
			id := w.do(op.Status, migrate.Begun).ID
			w.guardsAs(p, record, "1")
			w.guardsAs(p, "another", "2")
			p.end()
			m, raw := w.raw(0, "leader")
			w.seals(raw, m, id)
			next := w.start(onNew, "n")
			left := calls(int64(n))
			b := migrate.New(crashing{w.c[0].Client("c"), left}, crashing{w.c[1].Client("c"), left}, &migrate.Options{From: oldURL, To: newURL})
			_, err := b.Finish(w.ctx, election)
			b.Close()
			if errors.Is(err, errCrashed) {
				crashes++
			} else if err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * ttl)
			check := func() {
				for name, want := range map[string]string{record: "1", "another": "2"} {
					if r := w.c[1].Record(name); string(r.Value) != want {
						t.Errorf("after %d writes one leads by the new coordinator, and reads %q in %s; want %q", n, r.Value, name, want)
					}
				}
			}
			if next.leads() {
				check()
			}
			w.do(op.Finish, migrate.Moved)
			w.leads(next)
			check()
			next.end()
		})
	}
	if crashes < 5 {
		t.Errorf("a cutover was completed with %d writes; want some for each record, for the list and for the gate", crashes)
	}
}

// A late backend is held before it writes the record, until it is let go.
type late struct {
	backend.Backend
	held, goOn chan struct{}
}

type lateSession struct {
	backend.Session
	b late
}

func (b late) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return lateSession{s, b}, err
}

func (s lateSession) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if name == record {
		select {
		case s.b.held <- struct{}{}:
			<-s.b.goOn
		default:
		}
	}
	return s.Session.Put(ctx, name, value, cond)
}

// A request to carry a record over that is late overwrites nothing: neither what the next leader has
// written, nor where it has deleted the record.
func TestLateHandCarriesNothingOver(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		inWorld(t, func(w *world) {
			op, p := w.underway(onBoth, "p")
			id := w.do(op.Status, migrate.Begun).ID
			w.guardsAs(p, record, "1")
			p.end()
			m, raw := w.raw(0, "leader")
			w.seals(raw, m, id)
			held, goOn := make(chan struct{}, 1), make(chan struct{})
			slow := migrate.New(w.c[0].Client("slow"), late{w.c[1].Client("slow"), held, goOn}, &migrate.Options{From: oldURL, To: newURL})
			defer slow.Close()
			w.wg.Go(func() { slow.Finish(w.ctx, election) })
			select {
			case <-held:
			case <-time.After(ttl):
				t.Fatal("who completes the cutover carries nothing over")
			}
			w.do(op.Finish, migrate.Moved)
			n := w.start(onNew, "n")
			w.leads(n)
			want := "2"
			w.guardsAs(n, record, want)
			if deleted {
				want = ""
				w.deletes(n.b, n.term.Member())
			}
			close(goOn)
			time.Sleep(ttl)
			w.reads(onNew, want)
			n.end()
		})
	}
}

// A sealing backend has something done as soon as its session has pinned a member.
type sealing struct {
	backend.Backend
	by func()
}

type sealingSession struct {
	backend.Session
	b *sealing
}

func (b *sealing) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return sealingSession{s, b}, err
}

func (s sealingSession) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	err := s.Session.Pin(ctx, m, h, at)
	if err == nil {
		s.b.by()
	}
	return err
}

// sealsThen returns the term of a leader who has guarded the record and sealed
// the old coordinator, on which by is done at once. The operator waits for it no longer. What is given as before is done before the cutover.
func (w *world) sealsThen(by func(old *memory.Backend), before ...func()) *elect.Term {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	sealed := make(chan struct{})
	old, young := w.c[0].Client("p"), w.c[1].Client("p")
	b := migrate.New(&sealing{old, func() { cancel(); by(old); close(sealed) }}, young, &migrate.Options{From: oldURL, To: newURL})
	w.t.Cleanup(func() { b.Close() })
	op := w.begun(onBoth)
	term, err := elect.New(b, election, nil).Campaign(w.ctx)
	if err == nil {
		_, err = term.Put(w.ctx, record, []byte("1"), backend.Any)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for _, do := range before {
		do()
	}
	w.wg.Go(func() { op.Cutover(ctx, election) })
	<-sealed
	return term
}

// A leader that cannot reach the old coordinator any more when it has sealed leads on, also when it
// cannot write, and opens the new one to others in the end.
func TestCutoverLosesTheOldCoordinator(t *testing.T) {
	inWorld(t, func(w *world) {
		term := w.sealsThen((*memory.Backend).Cut)
		n := w.start(onNew, "n")
		time.Sleep(2 * ttl)
		if _, err := term.Put(w.ctx, record, []byte("2"), backend.Any); !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("a write before the record is there: %v, want %v", err, backend.ErrUnavailable)
		}
		time.Sleep(time.Minute)
		if err := term.Check(); err != nil {
			t.Fatalf("the leader's term has ended: %v", err)
		}
		if got := w.c[1].Members(election); got[0].Pinned {
			t.Errorf("after a minute the gate still stands: %+v", got)
		}
		if _, err := term.Put(w.ctx, record, []byte("3"), backend.Any); err != nil {
			t.Error(err)
		}
		if err := term.Resign(w.ctx); err != nil {
			t.Error(err)
		}
		w.leads(n)
		w.reads(onNew, "3")
		n.end()
	})
}

// A leader that is left alone after the seal takes the gate away also where it takes longer than a session time to look at its records
// one after the other.
func TestCutoverWithManyRecords(t *testing.T) {
	inWorld(t, func(w *world) {
		var names []string
		for i := range 50 {
			name := fmt.Sprintf("record-%02d", i)
			names = append(names, name)
			w.writes(0, name, name)
			w.writes(0, name+".migrate-home", `{"record":"`+name+`","election":"`+election+`"}`)
		}
		w.writes(0, election+".migrate-records", `{"election":"`+election+`","records":["`+strings.Join(names, `","`)+`"]}`)
		term := w.sealsThen(func(old *memory.Backend) { old.Delay(ttl/60, ttl/60) })
		w.until("the gate has gone", 5*ttl, func() bool { return len(w.c[1].Members(election)) == 1 })
		for _, name := range names {
			if r := w.c[1].Record(name); string(r.Value) != name {
				t.Errorf("the new coordinator has %q in %s", r.Value, name)
			}
		}
		if err := term.Resign(w.ctx); err != nil {
			t.Error(err)
		}
	})
}
