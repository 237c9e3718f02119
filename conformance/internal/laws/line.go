package laws

import (
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// A lineWatch is a call of WatchLine in the background, which leaves the line that it returns in
// now.
type lineWatch struct {
	*engine.Call
	c          *engine.Client
	after, now backend.Line
}

func watchLine(t *engine.Trial, c *engine.Client, after backend.Line) *lineWatch {
	w := &lineWatch{c: c, after: after}
	s := c.Live()
	w.Call = t.Go(c.Name+": WatchLine after "+engine.ShowLine(after.Members), func() (err error) {
		w.now, err = s.WatchLine(t.Ctx, c.Election, after)
		return err
	})
	return w
}

// shows waits until the call has returned, soon, and checks that it shows these members.
func (w *lineWatch) shows(t *engine.Trial, want ...backend.Member) backend.Line {
	return w.within(t.Soon(), t, want...)
}

// within is shows with another bound. A line may show a state in between, as it does where a member
// takes its place on two coordinators: then the calls after that one show the members.
func (w *lineWatch) within(d time.Duration, t *engine.Trial, want ...backend.Member) backend.Line {
	for end := time.Now().Add(d); ; w = watchLine(t, w.c, w.now) {
		w.Returns(max(time.Until(end), t.Soon()/10))
		if engine.SameLine(w.now.Members, want) {
			return w.now
		}
		if kit.SameMembers(w.now, w.after) || time.Now().After(end) {
			t.Fatalf("WatchLine has returned %s; want %s", engine.ShowLine(w.now.Members), engine.ShowLine(want))
		}
	}
}

var lineRules = []engine.Rule{{
	ID: "L3.line", Title: "WatchLine wakes for each change of the line",
	Text: "WatchLine of an empty line returns soon after the first has joined. After that it returns soon after each join and each exit, from either end of the line, with the members that then stand. It does not return for a tenth of a TTL after others have joined and left another line.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		aside := a.In(t.Name + "-aside")
		still := func(w *lineWatch) {
			aside.Leave(aside.Join("aside"))
			t.Always(t.TTL/10, "WatchLine has returned although nobody has joined or left", func() bool { return !w.Returned() })
		}
		w := watchLine(t, b, backend.Line{})
		still(w)
		first := a.Join("first")
		l := w.shows(t, first)
		w = watchLine(t, b, l)
		still(w)
		second := a.Join("second")
		w = watchLine(t, b, w.shows(t, first, second))
		third := a.Join("third")
		w = watchLine(t, b, w.shows(t, first, second, third))
		a.Leave(second)
		w = watchLine(t, b, w.shows(t, first, third))
		a.Leave(third)
		w = watchLine(t, b, w.shows(t, first))
		a.Leave(first)
		w.shows(t)
	},
}, {
	ID: "L3.line-past", Title: "WatchLine tells what has changed before",
	Text: "WatchLine after a state of the line that is over returns at once: where one has joined since, where one has left, where one has left and another has joined, and where the line is empty by now.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		past := b.Line()
		one := a.Join("one")
		past = watchLine(t, b, past).shows(t, one)
		two := a.Join("two")
		three := a.Join("three")
		a.Leave(two)
		b.Shows(t.Soon(), one, three)
		past = watchLine(t, b, past).shows(t, one, three)
		a.Leave(three)
		four := a.Join("four")
		b.Shows(t.Soon(), one, four)
		past = watchLine(t, b, past).shows(t, one, four)
		a.Leave(one)
		a.Leave(four)
		b.Shows(t.Soon())
		watchLine(t, b, past).shows(t)
	},
}, {
	ID: "L3.line-crash", Title: "WatchLine wakes after a crash",
	Text:  "Of two in line the first crashes. WatchLine after that line returns after a crash, and shows the second alone.",
	Needs: []engine.Fault{engine.Kill}, Check: func(t *engine.Trial) {
		a, b, c := t.Client(), t.Client(), t.Client()
		a.Join("crashes")
		second := b.Join("second")
		w := watchLine(t, c, c.Line())
		a.Inject(engine.Kill)
		w.within(t.Crash(), t, second)
	},
}}
