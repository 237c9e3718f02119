package history_test

import (
	"bytes"
	"errors"
	"flag"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/evidence/notes"
)

var update = flag.Bool("update", false, "write the golden files anew")

const sec = time.Second

// ev returns an event in the election of all these tests.
func ev(at time.Duration, kind history.Kind, candidate string, position, token uint64) history.Event {
	return history.Event{At: at, Kind: kind, Election: "reports", Candidate: candidate, Position: position, Token: token}
}

// reign returns a candidate's events from joining to leaving; it led from won to ended.
func reign(candidate string, token uint64, joined, won, ended time.Duration) []history.Event {
	return []history.Event{
		ev(joined, history.Joined, candidate, token, 0),
		ev(won, history.Won, candidate, token, token),
		ev(ended, history.Ended, candidate, token, token),
		ev(ended, history.Left, candidate, token, 0),
	}
}

func merge(faults []history.Fault, events ...[]history.Event) *history.History {
	hs := []*history.History{{Faults: faults}}
	for _, e := range events {
		hs = append(hs, &history.History{Events: e})
	}
	return history.Merge(hs...)
}

func TestCheck(t *testing.T) {
	lateEnd := func(deadline time.Duration) []history.Event {
		e := reign("web-1", 1, 0, 0, 10*sec)
		e[2].Deadline = deadline
		return e
	}
	deposed := func(at time.Duration) []history.Event {
		return append(reign("web-1", 1, 0, 0, 20*sec), ev(at, history.Deposed, "web-1", 1, 0))
	}
	// stopped led until led. Then it was stopped, and noted the end of its term only at 20 s.
	stopped := func(led, deadline time.Duration) []history.Event {
		e := reign("web-1", 1, 0, 0, 20*sec)
		e[2].Led, e[2].Deadline = led, deadline
		return e
	}
	waits := []history.Event{ev(0, history.Joined, "web-2", 2, 0), ev(60*sec, history.Left, "web-2", 2, 0)}
	tests := []struct {
		name  string
		h     *history.History
		rules history.Rules
		want  []history.Rule
	}{
		{"nothing happened", merge(nil), history.Rules{Vacancy: sec}, nil},
		{"succession at one instant",
			merge(nil, reign("web-1", 1, 0, 0, 10*sec), reign("web-2", 2, sec, 10*sec, 20*sec)), history.Rules{Vacancy: sec}, nil},

		{"two leaders", merge(nil, reign("web-1", 1, 0, 0, 10*sec), reign("web-2", 2, 0, 9*sec, 20*sec)),
			history.Rules{}, []history.Rule{history.Overlap}},
		{"two leaders, not neighbours in time",
			merge(nil, reign("web-1", 1, 0, 0, 30*sec), reign("web-2", 2, 0, 5*sec, 5*sec), reign("web-3", 3, 0, 20*sec, 25*sec)),
			history.Rules{}, []history.Rule{history.Overlap}},
		{"noted late", merge(nil, reign("web-1", 1, 0, 0, 10*sec), reign("web-2", 2, 0, 9*sec, 20*sec)),
			history.Rules{Notice: sec}, nil},
		{"a leader that an operator removed knows it late",
			merge(nil, deposed(10*sec), reign("web-2", 2, 0, 10*sec, 30*sec)), history.Rules{}, nil},
		{"a leader that an operator removes after another has won",
			merge(nil, deposed(12*sec), reign("web-2", 2, 0, 10*sec, 30*sec)), history.Rules{}, []history.Rule{history.Overlap}},
		{"a leader that was stopped notes its end late",
			merge(nil, stopped(8*sec, 9*sec), reign("web-2", 2, 0, 10*sec, 30*sec)), history.Rules{}, nil},
		{"a leader that was stopped and led on",
			merge(nil, stopped(19*sec, 9*sec), reign("web-2", 2, 0, 10*sec, 30*sec)), history.Rules{}, []history.Rule{history.Late, history.Overlap}},
		{"nobody leads for a leader that was stopped",
			merge(nil, stopped(8*sec, 9*sec), waits), history.Rules{Vacancy: 11 * sec}, []history.Rule{history.Vacancy, history.Vacancy}},
		{"a term without an end", merge(nil, reign("web-1", 1, 0, 0, 10*sec)[:2], reign("web-2", 2, 0, 10*sec, 20*sec)),
			history.Rules{}, []history.Rule{history.Overlap}},

		{"the token stays", merge(nil, reign("web-1", 7, 0, 0, sec), reign("web-2", 7, 0, sec, 2*sec)),
			history.Rules{}, []history.Rule{history.Token}},
		{"the token and the order fall once", merge(nil, reign("web-1", 7, 0, 0, sec), reign("web-2", 3, 0, sec, 2*sec), reign("web-3", 8, 0, 2*sec, 3*sec)),
			history.Rules{}, []history.Rule{history.Token, history.Order}},
		{"another election has tokens of its own", merge(nil, reign("web-1", 7, 0, 0, sec), []history.Event{
			{At: sec, Kind: history.Won, Election: "mail", Candidate: "web-1", Token: 3}, {At: 2 * sec, Kind: history.Ended, Election: "mail", Candidate: "web-1", Token: 3},
		}), history.Rules{}, nil},

		{"the end noted after the same candidate has won again", merge(nil, []history.Event{
			ev(0, history.Joined, "web-1", 1, 0), ev(0, history.Won, "web-1", 1, 1), ev(sec, history.Left, "web-1", 1, 0),
			ev(sec, history.Joined, "web-1", 2, 0), ev(sec, history.Won, "web-1", 2, 2), ev(sec, history.Ended, "web-1", 1, 1),
			ev(60*sec, history.Ended, "web-1", 2, 2), ev(60*sec, history.Left, "web-1", 2, 0),
		}), history.Rules{Vacancy: 20 * sec}, nil},

		{"over before the deadline", merge(nil, lateEnd(10*sec)), history.Rules{}, nil},
		{"over after the deadline", merge(nil, lateEnd(9*sec)), history.Rules{}, []history.Rule{history.Late}},
		{"noted after the deadline", merge(nil, lateEnd(9*sec)), history.Rules{Notice: sec}, nil},

		{"nobody leads", merge(nil, reign("web-1", 1, 0, 0, 10*sec), waits), history.Rules{Vacancy: 20 * sec}, []history.Rule{history.Vacancy}},
		{"nobody leads for a short time", merge(nil, reign("web-1", 1, 0, 0, 10*sec), waits), history.Rules{Vacancy: 50 * sec}, nil},
		{"nobody could lead", merge([]history.Fault{{Kind: "cut", Target: "web-2", From: 9 * sec, To: 55 * sec}}, reign("web-1", 1, 0, 0, 10*sec), waits),
			history.Rules{Vacancy: 20 * sec}, nil},
		{"a fault of all", merge([]history.Fault{{Kind: "pause", From: 20 * sec, To: 55 * sec}}, reign("web-1", 1, 0, 0, 10*sec), waits),
			history.Rules{Vacancy: 20 * sec}, nil},
		{"a fault of another", merge([]history.Fault{{Kind: "cut", Target: "web", From: 9 * sec, To: 55 * sec}}, reign("web-1", 1, 0, 0, 10*sec), waits),
			history.Rules{Vacancy: 20 * sec}, []history.Rule{history.Vacancy}},
		{"a fault of this election", merge([]history.Fault{{Kind: "gate", Election: "reports", From: 9 * sec, To: 55 * sec}}, reign("web-1", 1, 0, 0, 10*sec), waits),
			history.Rules{Vacancy: 20 * sec}, nil},
		{"a fault of another election", merge([]history.Fault{{Kind: "gate", Election: "mail", From: 9 * sec, To: 55 * sec}}, reign("web-1", 1, 0, 0, 10*sec), waits),
			history.Rules{Vacancy: 20 * sec}, []history.Rule{history.Vacancy}},
		{"nobody stands in line", merge(nil, reign("web-1", 1, 0, 0, 10*sec), reign("web-2", 2, 50*sec, 50*sec, 60*sec)),
			history.Rules{Vacancy: 20 * sec}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []history.Rule
			for _, v := range tt.h.Check(tt.rules) {
				got = append(got, v.Rule)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("found %v, want %v", tt.h.Check(tt.rules), tt.want)
			}
		})
	}
}

// What a recorder writes, what its History returns, and what notes.Read returns agree.
func TestRecorderAndLines(t *testing.T) {
	var now time.Duration
	var streamed, written bytes.Buffer
	r := history.NewRecorder(func() time.Duration { return now }, &streamed)
	r.Note(ev(0, history.Joined, "web-1", 4, 0))
	end := r.Begin("cut", "web-1")
	now = 2 * sec
	r.Note(history.Event{Kind: history.CheckFailed, Election: "reports", Candidate: "web-1", Token: 4, Deadline: 3 * sec, Why: "no\nheartbeat <&>"})
	if f := r.History().Faults; len(f) != 1 || f[0].To != now {
		t.Errorf("the fault that has not ended is %+v, want it to last until now", f)
	}
	end()
	now = 5 * sec
	end()
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	h := r.History()
	if err := h.Write(&written); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]*bytes.Buffer{"streamed": &streamed, "written": &written} {
		got, err := notes.Read(text)
		if err != nil || !reflect.DeepEqual(got, h) {
			t.Errorf("%s and read: %+v, %v\nwant %+v", name, got, err, h)
		}
	}
	if h.Events[1].At != 2*sec || h.Faults[0].To != 2*sec {
		t.Errorf("the clock was not asked: %+v", h)
	}
}

func TestRecorderKeepsTheFirstError(t *testing.T) {
	r := history.NewRecorder(func() time.Duration { return 0 }, full{})
	r.Note(ev(0, history.Joined, "web-1", 1, 0))
	if err := r.Err(); !errors.Is(err, errFull) {
		t.Errorf("Err is %v, want %v", err, errFull)
	}
	if len(r.History().Events) != 1 {
		t.Error("what could not be written is not kept either")
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// A history that can be read can be checked, drawn, written, and read again unchanged.
func FuzzRead(f *testing.F) {
	const joined = `{"at":1,"event":"joined","election":"e","candidate":"c"}` + "\n"
	f.Add([]byte(joined))
	f.Add([]byte(joined + `{"at":2,"event":"won","election":"e","candidate":"c","token":7,"position":7}` + "\n" +
		`{"at":9,"event":"ended","election":"e","candidate":"c","token":7,"deadline":8,"why":"<&>\u0000"}` + "\n" +
		`{"fault":"cut","target":"c","from":1,"to":5}` + "\n"))
	f.Add([]byte("{}\n[]\nnull"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := notes.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		var written bytes.Buffer
		if err := h.Write(&written); err != nil {
			t.Fatal(err)
		}
		again, err := notes.Read(&written)
		if err != nil || !reflect.DeepEqual(again, h) {
			t.Errorf("read again: %+v, %v\nwant %+v", again, err, h)
		}
		if len(h.Events)+len(h.Faults) > 50 {
			return // the time of the check grows with the square of the terms
		}
		var svg bytes.Buffer
		if err := h.SVG(&svg, "", h.Check(history.Rules{Vacancy: 1})); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, svg.Bytes())
	})
}

// Copy notes what another process writes as it comes, with the times of this process's clock.
func TestCopy(t *testing.T) {
	var sent bytes.Buffer
	there := history.NewRecorder(func() time.Duration { return 100 * sec }, &sent)
	won := ev(0, history.Won, "web-2", 2, 2)
	there.Note(won)
	ended := ev(0, history.Ended, "web-2", 2, 2)
	ended.Deadline, ended.Led = 90*sec, 80*sec
	there.Note(ended)
	sent.WriteString(`{"at":1,"event":"jo`)

	here := history.NewRecorder(func() time.Duration { return 0 }, nil)
	seen := 0
	if err := here.Copy(&sent, 70*sec, func(history.Event) { seen++ }); err != nil || seen != 2 {
		t.Fatalf("%d events, %v", seen, err)
	}
	won.At, ended.At, ended.Deadline, ended.Led = 30*sec, 30*sec, 20*sec, 10*sec
	if got := here.History().Events; !reflect.DeepEqual(got, []history.Event{won, ended}) {
		t.Errorf("got %+v", got)
	}
	for _, line := range []string{"{}\n", "nonsense\n", `{"at":1,"event":"won","election":"x","candidate":"y"}` + "\n"} {
		if err := here.Copy(strings.NewReader(line), 70*sec, nil); err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}
