package elect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/unready"
	"github.com/succession-dev/succession/memory"
)

// A candidates' line for one test, in which all run until it ends.
type field struct {
	t        *testing.T
	c        *memory.Coordinator
	operator *operator
	running  map[string]*running
	clients  map[string]*memory.Backend
	told     map[string]*told
	ctx      context.Context
	delay    time.Duration // of the messages of who joins
}

// An operator also looks at the election.
type operator struct {
	*elect.Election
	*operate.Operator
}

func newOperator(t *testing.T, c *memory.Coordinator) *operator {
	b := client(t, c, "operator")
	return &operator{elect.New(b, "reports", nil), operate.New(b, "reports", "operator")}
}

func newField(t *testing.T, c *memory.Coordinator) *field {
	f := &field{t: t, c: c, running: map[string]*running{}, clients: map[string]*memory.Backend{}, told: map[string]*told{}}
	ctx, cancel := context.WithCancel(t.Context())
	f.ctx = ctx
	t.Cleanup(func() {
		cancel()
		for _, r := range f.running {
			<-r.end
		}
	})
	f.operator = newOperator(t, c)
	return f
}

// join adds candidates, each behind the ones before.
func (f *field) join(o elect.Options) {
	f.t.Helper()
	l := &told{}
	o.Trace = l.trace
	f.told[o.ID] = l
	b := client(f.t, f.c, o.ID)
	b.Delay(f.delay, f.delay)
	f.clients[o.ID] = b
	f.running[o.ID] = run(f.ctx, elect.New(b, "reports", &o))
	synctest.Wait()
}

// foreign adds a member of a client that knows nothing of priorities, and returns how it goes.
func (f *field) foreign(id string) (leave func()) {
	f.t.Helper()
	s, err := client(f.t, f.c, id).Session(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	m, err := s.Join(f.t.Context(), "reports", id, "")
	if err != nil {
		f.t.Fatal(err)
	}
	return func() {
		if err := s.Leave(f.t.Context(), m.Member); err != nil {
			f.t.Error(err)
		}
		synctest.Wait()
	}
}

// line returns who stands in line, after a while in which all is done that is to be done.
func (f *field) line() string {
	f.t.Helper()
	time.Sleep(2 * time.Second)
	synctest.Wait()
	_, line, err := f.operator.Line(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	ids := make([]string, len(line))
	for i, l := range line {
		ids[i] = l.ID
		if l.NotReady != "" {
			ids[i] += "!"
		}
	}
	return strings.Join(ids, " ")
}

func (f *field) wantLine(want ...string) {
	f.t.Helper()
	if got := f.line(); !slices.Contains(want, got) {
		f.t.Errorf("the line is %q, want %q", got, want)
	}
}

// leader returns the term of the candidate, which must have become the leader.
func (f *field) leader(id string) *elect.Term {
	f.t.Helper()
	select {
	case term := <-f.running[id].terms:
		return term
	case <-time.After(5 * time.Minute):
		f.t.Fatalf("%s does not lead; the line is %q", id, f.line())
		return nil
	}
}

// next returns the term of whichever of two becomes the leader.
func (f *field) next(a, b string) *elect.Term {
	f.t.Helper()
	select {
	case term := <-f.running[a].terms:
		return term
	case term := <-f.running[b].terms:
		return term
	case <-time.After(5 * time.Minute):
		f.t.Fatalf("neither %s nor %s leads; the line is %q", a, b, f.line())
		return nil
	}
}

// neverLed reports a candidate that has led.
func (f *field) neverLed(ids ...string) {
	f.t.Helper()
	for _, id := range ids {
		if n := len(f.told[id].all(trace.Elected)); n > 0 {
			f.t.Errorf("%s has led", id)
		}
	}
}

// resign asks the leader to resign, when all who have led or given way before stand in line again.
func (f *field) resign(o *operate.ResignOptions) {
	f.t.Helper()
	f.line()
	if _, err := f.operator.AskToResign(f.t.Context(), o); err != nil {
		f.t.Fatal(err)
	}
}

// A switch is a Ready that a test turns on and off.
type readySwitch struct{ why atomic.Pointer[error] }

func (s *readySwitch) set(err error) { s.why.Store(&err) }

func (s *readySwitch) ready(context.Context) error {
	if err := s.why.Load(); err != nil {
		return *err
	}
	return nil
}

func unreadySwitch() *readySwitch {
	var s readySwitch
	s.set(errNoDisk)
	return &s
}

var errNoDisk = errors.New("no disk")

func inField(t *testing.T, f func(t *testing.T, f *field)) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) { f(t, newField(t, c)) })
}

func TestResignToANamedCandidate(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		for _, id := range []string{"a", "b", "c", "d"} {
			f.join(elect.Options{ID: id})
		}
		f.leader("a")
		f.resign(&operate.ResignOptions{To: "c"})
		f.leader("c")
		f.wantLine("c d a b", "c d b a") // a and b join again at the same moment
		f.neverLed("b", "d")
		if ev := f.told["b"].all(trace.Yielded); len(ev) != 1 || !strings.Contains(ev[0].Err.Error(), "c (") {
			t.Errorf("b told %+v; want once that it has yielded to c", ev)
		}
		f.resign(nil) // the wish has lapsed
		f.leader("d")
		f.wantLine("d a b c", "d b a c")
	})
}

func TestAWishLapses(t *testing.T) {
	for name, lapse := range map[string]func(f *field, leave func()){
		"with its candidate": func(f *field, leave func()) { leave() },
		"with time":          func(f *field, _ func()) { time.Sleep(20 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			inField(t, func(t *testing.T, f *field) {
				first := f.foreign("x") // it does not hear that it is to resign
				f.join(elect.Options{ID: "a"})
				leave := f.foreign("y")
				f.join(elect.Options{ID: "b"})
				f.resign(&operate.ResignOptions{To: "y", Within: 10 * time.Second})
				lapse(f, leave)
				first()
				f.leader("a")
				if n := len(f.told["a"].all(trace.Yielded)); n != 0 {
					t.Errorf("a yielded %d times", n)
				}
			})
		})
	}
}

func TestResignToWhomIsRefused(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		f.join(elect.Options{ID: "a"})
		f.join(elect.Options{ID: "twin"})
		f.join(elect.Options{ID: "twin2", Ready: unreadySwitch().ready})
		f.foreign("twin")
		term := f.leader("a")
		f.wantLine("a twin twin2! twin")
		for to, want := range map[string]error{"a": backend.ErrInvalid, "z": backend.ErrInvalid, "twin": backend.ErrInvalid, "twin2": elect.ErrNotReady} {
			_, err := f.operator.AskToResign(t.Context(), &operate.ResignOptions{To: to})
			if !errors.Is(err, want) {
				t.Errorf("to %s: %v, want %v", to, err, want)
			}
			if to == "twin2" && !strings.Contains(fmt.Sprint(err), "no disk") {
				t.Errorf("to %s: %v does not say why", to, err)
			}
		}
		synctest.Wait()
		if term.Check() != nil {
			t.Errorf("the leader was asked: %v", term.Check())
		}
	})
}

func TestOneThatIsNotReadyYields(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		b := unreadySwitch()
		f.join(elect.Options{ID: "a"})
		f.delay = 20 * time.Millisecond // so that a stands again before b has given way
		f.join(elect.Options{ID: "b", Ready: b.ready})
		f.wantLine("a b!")
		f.delay = 0
		f.join(elect.Options{ID: "c"})
		f.leader("a")
		f.wantLine("a b! c")
		_, line, err := f.operator.Line(t.Context())
		if err != nil || line[1].NotReady != "no disk" {
			t.Errorf("the reason of b is %q, %v", line[1].NotReady, err)
		}
		f.resign(nil)
		f.leader("c")
		f.wantLine("c a b!")
		f.neverLed("b")
		b.set(nil)
		f.wantLine("c a b")
		f.resign(nil)
		f.leader("a")
		f.resign(nil)
		f.leader("b")
	})
}

// Without anybody to give way to it stays, and hears at once of whoever may lead.
func TestAllThatAreNotReadyWait(t *testing.T) {
	for name, tt := range map[string]struct {
		then func(f *field, a, b *readySwitch)
		who  string
	}{
		"the first becomes ready":  {func(f *field, a, _ *readySwitch) { a.set(nil) }, "a"},
		"the second becomes ready": {func(f *field, _, b *readySwitch) { b.set(nil) }, "b"},
		"the second becomes ready, and the request that tells it is lost": {func(f *field, _, b *readySwitch) {
			f.clients["b"].LoseRequest(memory.OpPut)
			b.set(nil)
		}, "b"},
		"another joins": {func(f *field, _, _ *readySwitch) { f.join(elect.Options{ID: "c"}) }, "c"},
	} {
		t.Run(name, func(t *testing.T) {
			inField(t, func(t *testing.T, f *field) {
				a, b := unreadySwitch(), unreadySwitch()
				f.join(elect.Options{ID: "a", Ready: a.ready})
				f.delay = 20 * time.Millisecond // so that it stands before it can say that it is not ready
				f.join(elect.Options{ID: "b", Ready: b.ready})
				time.Sleep(time.Minute)
				if got := f.line(); got != "a! b!" && got != "b! a!" {
					t.Errorf("the line is %q; want both, not ready", got)
				}
				requests := f.c.Requests().Total()
				time.Sleep(10 * time.Minute)
				// Heartbeats, and a look about once in a session time.
				if n := f.c.Requests().Total() - requests; n > 1200 {
					t.Errorf("two that wait sent %d requests in ten minutes", n)
				}
				f.neverLed("a", "b")
				for id, l := range f.told {
					if n := len(l.all(trace.Yielded)); n > 0 {
						t.Errorf("%s has given way %d times to one that is not ready", id, n)
					}
				}
				began := time.Now()
				tt.then(f, a, b)
				f.leader(tt.who)
				if d := time.Since(began); d > 3*time.Second {
					t.Errorf("it took %v", d)
				}
			})
		})
	}
}

// A candidate that is ready again before it has heard that it is recorded as not ready is not passed over.
func TestReadyAgainBeforeTheAnswer(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		f.join(elect.Options{ID: "first"})
		term := f.leader("first")
		a, b := unreadySwitch(), new(readySwitch)
		f.join(elect.Options{ID: "a", Ready: a.ready})
		f.join(elect.Options{ID: "b", Ready: b.ready})
		time.Sleep(time.Minute)
		client := f.clients["b"]
		client.LoseAnswer(memory.OpPut)
		b.set(errNoDisk)
		name := unready.Record("reports", f.c.Members("reports")[2].Position)
		for f.c.Record(name).Version == backend.Absent {
			time.Sleep(time.Millisecond)
		}
		client.Hide()
		time.Sleep(2 * time.Second)
		b.set(nil)
		time.Sleep(time.Second)
		client.Heal()
		time.Sleep(time.Minute)
		term.Resign(t.Context())
		f.leader("b")
	})
}

func TestALeaderThatIsNotReadyAnyMoreHandsOver(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		var a readySwitch
		b := unreadySwitch()
		f.join(elect.Options{ID: "a", Ready: a.ready})
		f.join(elect.Options{ID: "b", Ready: b.ready})
		term := f.leader("a")
		time.Sleep(time.Minute)
		a.set(errNoDisk)
		time.Sleep(time.Minute)
		if term.Check() != nil { // there is nobody better
			t.Fatalf("the term ended with %v", term.Check())
		}
		if n := len(f.told["a"].all(trace.Retrying)); n != 1 {
			t.Errorf("it said %d times that it leads on", n)
		}
		f.delay = 20 * time.Millisecond // so that it stands before it can say that it is not ready
		f.join(elect.Options{ID: "c", Ready: unreadySwitch().ready})
		time.Sleep(time.Minute)
		if term.Check() != nil { // whoever joins says that it is not ready, if it is not
			t.Fatalf("the term ended with %v when another joined that is not ready", term.Check())
		}
		if _, err := f.operator.AskToResign(t.Context(), nil); !errors.Is(err, elect.ErrNotReady) {
			t.Errorf("AskToResign, where nobody is ready: %v", err)
		}
		b.set(nil)
		f.leader("b")
		if err := term.Check(); !errors.Is(err, elect.ErrNotReady) || !errors.Is(err, errNoDisk) {
			t.Errorf("the term ended with %v", err)
		}
		f.wantLine("b c! a!")
	})
}

// What a crashed candidate has left behind is nobody's.
func TestRecordsOfTheUnreadyAreSwept(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		s, err := client(t, f.c, "observer").Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.join(elect.Options{ID: "a", Ready: unreadySwitch().ready})
		f.join(elect.Options{ID: "b", Ready: unreadySwitch().ready})
		f.line()
		if names, err := s.List(t.Context(), "reports.unready"); err != nil || len(names) != 2 {
			t.Fatalf("records %q, %v; want two", names, err)
		}
		if _, err := s.Put(t.Context(), "reports.unready/1234567", nil, nil); err != nil {
			t.Fatal(err)
		}
		f.join(elect.Options{ID: "c"})
		f.leader("c")
		if got := f.line(); got != "c a! b!" && got != "c b! a!" {
			t.Errorf("the line is %q", got)
		}
		names, err := s.List(t.Context(), "reports.unready")
		if err != nil || len(names) != 2 || slices.Contains(names, "reports.unready/1234567") {
			t.Errorf("records %q, %v; want those of a and b", names, err)
		}
	})
}

func TestPriority(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		f.join(elect.Options{ID: "a"})
		term := f.leader("a")
		leave := f.foreign("x")
		f.join(elect.Options{ID: "b", Priority: 1})
		f.join(elect.Options{ID: "c"})
		f.join(elect.Options{ID: "d", Priority: 2})
		f.join(elect.Options{ID: "e", Priority: 3, Ready: unreadySwitch().ready})
		if term.Check() != nil {
			t.Errorf("a leader was disturbed: %v", term.Check())
		}
		f.resign(nil)
		f.wantLine("x b c d e! a") // a foreign client does not yield
		leave()
		f.leader("d")
		f.neverLed("b", "c", "e")
		f.resign(&operate.ResignOptions{To: "c"}) // a wish comes before priority
		f.leader("c")
		f.neverLed("b", "e")
		f.resign(nil)
		f.leader("d")
	})
}

func TestSite(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		f.join(elect.Options{ID: "a", Site: "east"})
		f.leader("a")
		f.join(elect.Options{ID: "b", Site: "west"})
		f.join(elect.Options{ID: "c", Site: "east"})
		f.wantLine("a b c")
		f.resign(nil)
		f.leader("c")
		f.neverLed("b")
		f.resign(&operate.ResignOptions{To: "b"})
		f.leader("b")
		f.wantLine("b c a", "b a c") // a yields while c, which led, joins again
		f.join(elect.Options{ID: "d", Site: "west"})
		f.resign(nil)
		f.leader("d") // where b was
	})
}

// The trailer is for candidates: others see what they saw before.
func TestTheRankIsHidden(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		f.join(elect.Options{ID: "a", Value: "10.0.0.1\nmore", Priority: -3, Site: "east"})
		f.leader("a")
		l, err := f.operator.Leader(t.Context())
		if err != nil || l.ID != "a" || l.Value != "10.0.0.1\nmore" || l.Priority != -3 || l.Site != "east" {
			t.Errorf("the leader is %+v, %v", l, err)
		}
		for _, o := range []elect.Options{{ID: "a\x1e"}, {Value: "\x1e"}, {Site: "a\nb"}, {Site: strings.Repeat("x", 256)}} {
			if _, err := elect.New(client(t, f.c, "b"), "reports", &o).TryCampaign(t.Context()); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("%+v: %v, want ErrInvalid", o, err)
			}
		}
	})
}

// Who uses none of it sends what it always sent.
func TestWithoutAChoiceNothingIsPaid(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		term, err := elect.New(client(t, c, "a"), "reports", nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for op := range c.Requests() {
			if op.Op == memory.OpLine || op.Op == memory.OpList {
				t.Errorf("it sent %v", op)
			}
		}
		term.Resign(t.Context())
	})
}

func TestTryCampaignOfOneThatIsNotReady(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		e := elect.New(client(t, f.c, "a"), "reports", &elect.Options{Ready: unreadySwitch().ready})
		if _, err := e.TryCampaign(t.Context()); !errors.Is(err, elect.ErrNotReady) {
			t.Errorf("TryCampaign returned %v", err)
		}
		f.wantLine("")
	})
}
