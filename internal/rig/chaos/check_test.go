//go:build linux

package chaos_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/chaos"
	"github.com/succession-dev/succession/internal/rig/chaos/store"
	"github.com/succession-dev/succession/internal/rig/chaos/worker"
)

const s = time.Second

// sound returns what a good run leaves behind: c1 leads with token 10, resigns after ten
// seconds, and c2 leads with token 20. Each makes two rounds of writes.
func sound() *chaos.Evidence {
	e := &chaos.Evidence{
		History: &history.History{Events: []history.Event{
			event(0, history.Joined, "c1", 10, 0),
			event(0, history.Joined, "c2", 20, 0),
			event(1*s, history.Won, "c1", 10, 10),
			event(10*s, history.Resigned, "c1", 10, 10),
			event(10*s, history.Left, "c1", 10, 0),
			event(11*s, history.Won, "c2", 20, 20),
			event(20*s, history.Resigned, "c2", 20, 20),
			event(20*s, history.Left, "c2", 20, 0),
		}},
		Stores:  map[string][]store.Write{},
		Records: map[string]string{},
		Rules:   history.Rules{Vacancy: 5 * s},
	}
	round(e, 2*s, "c1", 10, 1)
	round(e, 8*s, "c1", 10, 2)
	round(e, 12*s, "c2", 20, 1)
	round(e, 18*s, "c2", 20, 2)
	return e
}

// told returns the note of a leader that finds its term over: it last acted at led.
func told(at, led, deadline time.Duration, candidate string, token uint64) history.Event {
	e := event(at, history.CheckFailed, candidate, token, token)
	e.Led, e.Deadline = led, deadline
	return e
}

func event(at time.Duration, k history.Kind, candidate string, position, token uint64) history.Event {
	return history.Event{At: at, Kind: k, Election: "alpha", Candidate: candidate, Position: position, Token: token}
}

// round adds one round of writes, all of which succeed.
func round(e *chaos.Evidence, at time.Duration, candidate string, token, seq uint64) {
	e.Stores["alpha"] = append(e.Stores["alpha"], store.Write{At: at, Checked: at, Token: token, Seq: seq, Candidate: candidate})
	for i, target := range []string{worker.File, worker.Counter, worker.Last} {
		op := worker.Op{
			From: at + time.Duration(i)*s/10, Election: "alpha", Candidate: candidate,
			Target: target, Token: token, Seq: seq,
		}
		op.Value = fmt.Sprintf("%d %d", token, seq)
		op.To, op.Outcome = op.From+s/20, worker.OK
		if target == worker.Counter {
			op.Value = fmt.Sprintf("%d %s", len(e.Ops)/3+1, op.Value)
			op.Prev = e.Records[worker.Record(target, "alpha")]
		}
		if target != worker.File {
			op.Version = int64(len(e.Ops) + 1)
			e.Records[worker.Record(target, "alpha")] = op.Value
		}
		e.Ops = append(e.Ops, op)
	}
}

// op returns the op of a target in a round, from 0.
func op(e *chaos.Evidence, round int, target string) *worker.Op {
	return &e.Ops[3*round+slices.Index([]string{worker.File, worker.Counter, worker.Last}, target)]
}

func TestSound(t *testing.T) {
	if found := sound().Check(); len(found) > 0 {
		t.Error(found)
	}
}

// Each way to spoil a good run is found, by its rule and no other.
func TestPlanted(t *testing.T) {
	counter, last := worker.Record(worker.Counter, "alpha"), worker.Record(worker.Last, "alpha")
	tests := []struct {
		name  string
		spoil func(*chaos.Evidence)
		want  []history.Rule
	}{
		{"two terms at once", func(e *chaos.Evidence) {
			e.History.Events[3].At, e.History.Events[4].At = 11*s+s/2, 11*s+s/2
		}, []history.Rule{history.Overlap}},
		{"two terms at once, for some milliseconds", func(e *chaos.Evidence) {
			e.History.Events[3] = told(11*s+s/2, 11*s+3*time.Millisecond, 0, "c1", 10)
			e.History.Events[4].At = 11*s + s/2
		}, []history.Rule{history.Overlap}},
		{"a token that falls", func(e *chaos.Evidence) {
			for i := range e.History.Events {
				if ev := &e.History.Events[i]; ev.Token == 10 {
					ev.Token = 30
				}
			}
			for i := range e.Stores["alpha"] {
				e.Stores["alpha"][i].Token = 40
				e.Stores["alpha"][i].Seq = uint64(i)
			}
			e.Ops, e.Records = nil, nil
			for _, w := range e.Stores["alpha"] {
				e.Ops = append(e.Ops, worker.Op{Target: worker.File, Election: "alpha", Token: w.Token, Seq: w.Seq})
			}
		}, []history.Rule{history.Token}},
		{"nobody leads", func(e *chaos.Evidence) {
			e.History.Events[5].At = 16 * s
			e.Stores["alpha"][2].Checked = 17 * s
		}, []history.Rule{history.Vacancy}},
		{"a leader that was deposed leads on", func(e *chaos.Evidence) {
			e.History.Events = append(e.History.Events, event(3*s, history.Deposed, "c1", 10, 10))
			e.History.Faults = []history.Fault{{Kind: "remove", Target: "c1", From: 3 * s, To: 4 * s}}
		}, []history.Rule{chaos.Told}},
		{"the store lost a write", func(e *chaos.Evidence) {
			e.Stores["alpha"] = slices.Delete(e.Stores["alpha"], 1, 2)
		}, []history.Rule{chaos.Lost}},
		{"the store has refused what it acknowledged", func(e *chaos.Evidence) {
			e.Stores["alpha"][1].Refused = 20
		}, []history.Rule{chaos.Lost}},
		{"the store has what it refused", func(e *chaos.Evidence) {
			op(e, 1, worker.File).Outcome = worker.Refused
		}, []history.Rule{chaos.Invented}},
		{"the store has what nobody wrote", func(e *chaos.Evidence) {
			e.Stores["alpha"] = append(e.Stores["alpha"], store.Write{At: 19 * s, Checked: 19 * s, Token: 20, Seq: 9})
		}, []history.Rule{chaos.Invented}},
		{"the store accepts an old token", func(e *chaos.Evidence) {
			w := e.Stores["alpha"]
			w[1].At = 12*s + s/2 // its leader was paused after its check
			w[1], w[2] = w[2], w[1]
		}, []history.Rule{chaos.Regression}},
		{"a write of a leader that did not ask", func(e *chaos.Evidence) {
			w := e.Stores["alpha"]
			w[1].At, w[1].Checked, w[1].Refused = 13*s, 12*s, 20
			w[1], w[2] = w[2], w[1]
			op(e, 1, worker.File).Outcome = worker.Refused
		}, []history.Rule{chaos.Unfenced}},
		{"the counter lost a write", func(e *chaos.Evidence) {
			op(e, 2, worker.Counter).Prev = op(e, 0, worker.Counter).Value
		}, []history.Rule{chaos.Linearizable, chaos.Lost}},
		{"the counter lost its last write", func(e *chaos.Evidence) {
			e.Records[counter] = op(e, 2, worker.Counter).Value
		}, []history.Rule{chaos.Linearizable, chaos.Lost}},
		{"the counter has what nobody wrote", func(e *chaos.Evidence) {
			e.Records[counter] = "99 nobody"
		}, []history.Rule{chaos.Invented, chaos.Linearizable, chaos.Lost}},
		{"the counter has what was refused", func(e *chaos.Evidence) {
			op(e, 1, worker.Counter).Outcome = worker.Refused
		}, []history.Rule{chaos.Invented, chaos.Linearizable}},
		{"the other record lost its last write", func(e *chaos.Evidence) {
			e.Records[last] = op(e, 2, worker.Last).Value
		}, []history.Rule{chaos.Linearizable}},
		{"a guarded write of a leader that was succeeded", func(e *chaos.Evidence) {
			o := op(e, 1, worker.Last)
			o.From, o.To = 11*s+s/2, 11*s+s/2+1
		}, []history.Rule{chaos.Unfenced}},
		{"a guarded write lands after its leader was succeeded", func(e *chaos.Evidence) {
			o := op(e, 1, worker.Last)
			o.From, o.To = 12*s+s/2, 12*s+s/2+1
		}, []history.Rule{chaos.Linearizable, chaos.Unfenced}},
		{"a version comes twice", func(e *chaos.Evidence) {
			op(e, 3, worker.Last).Version = op(e, 0, worker.Last).Version
		}, []history.Rule{chaos.Linearizable}},
		{"a write is refused for a version that the record has", func(e *chaos.Evidence) {
			o := *op(e, 3, worker.Counter)
			o.From, o.To, o.Prev, o.Value, o.Outcome = 19*s, 19*s+1, o.Value, "5 20 3", worker.Changed
			e.Ops = append(e.Ops, o)
		}, []history.Rule{chaos.Linearizable}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := sound()
			tt.spoil(e)
			e.History = history.Merge(e.History)
			if found := e.Check(); !slices.Equal(rules(found), tt.want) {
				t.Errorf("it breaks %q, and is found to break %q", tt.want, found)
			}
		})
	}
}

// What is not held against anybody.
func TestForgiven(t *testing.T) {
	tests := []struct {
		name string
		make func(*chaos.Evidence)
	}{
		{"a write that nobody was told of, and that did not happen", func(e *chaos.Evidence) {
			o := *op(e, 1, worker.Counter)
			o.From, o.To, o.Prev, o.Value, o.Outcome = 9*s, 0, o.Value, "3 10 3", worker.Unknown
			e.Ops = append(e.Ops, o)
		}},
		{"a write that nobody was told of, and that did happen", func(e *chaos.Evidence) {
			o := op(e, 1, worker.Counter)
			o.To, o.Outcome = 0, worker.Unknown
			o = op(e, 3, worker.Last)
			o.To, o.Outcome = 0, worker.Unknown
		}},
		{"a late write that the store refused", func(e *chaos.Evidence) {
			w := e.Stores["alpha"]
			w[1].At, w[1].Refused = 13*s, 20
			w[1], w[2] = w[2], w[1]
			op(e, 1, worker.File).Outcome = worker.Refused
		}},
		{"a leader that notes its end late", func(e *chaos.Evidence) {
			e.History.Events[3] = told(12*s+s/2, 10*s, 10*s, "c1", 10)
			e.History.Events[4].At = 12*s + s/2
		}},
		{"a leader that is paused, and deposed after its last act", func(e *chaos.Evidence) {
			e.History.Events[3] = told(13*s, 9*s, 9*s+s/2, "c1", 10)
			e.History.Events[4].At = 13 * s
			e.History.Events = append(e.History.Events, event(10*s, history.Deposed, "c1", 10, 10))
			e.History.Faults = []history.Fault{
				{Kind: "pause", Target: "c1", From: 9 * s, To: 13 * s}, {Kind: "remove", Target: "c1", From: 10 * s, To: 10 * s},
			}
		}},
		{"a leader that is paused as it wins", func(e *chaos.Evidence) {
			e.History.Events = append(e.History.Events,
				event(0, history.Joined, "c3", 5, 0), event(s/2, history.Won, "c3", 5, 5),
				told(14*s, s/2, 3*s, "c3", 5), event(14*s, history.Left, "c3", 5, 0))
			e.History.Faults = []history.Fault{{Kind: "pause", Target: "c3", From: s / 2, To: 14 * s}}
		}},
		{"a leader that was deposed and is cut off", func(e *chaos.Evidence) {
			e.History.Events = append(e.History.Events, event(3*s, history.Deposed, "c1", 10, 10))
			e.History.Faults = []history.Fault{
				{Kind: "cut", Target: "c1", From: 2 * s, To: 9 * s}, {Kind: "remove", Target: "c1", From: 3 * s, To: 4 * s},
			}
		}},
		{"a leader that was deposed when the operator had waited for long", func(e *chaos.Evidence) {
			e.History.Events = append(e.History.Events, event(3*s, history.Deposed, "c1", 10, 10))
			e.History.Faults = []history.Fault{{Kind: "remove", Target: "c1", From: 3 * s, To: 6 * s}}
		}},
		{"a vacancy that a second fault prolongs", func(e *chaos.Evidence) {
			e.History.Events = append(e.History.Events, event(0, history.Joined, "c3", 30, 0), event(20*s, history.Left, "c3", 30, 0))
			e.History.Events[5].At = 17 * s
			e.Stores["alpha"][2].Checked = 17 * s
			e.History.Faults = []history.Fault{{Kind: "kill", Target: "c2", From: 13 * s, To: 14 * s}}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := sound()
			tt.make(e)
			e.History = history.Merge(e.History)
			if found := e.Check(); len(found) > 0 {
				t.Error(found)
			}
		})
	}
}

// A fault of somebody at the end of the line excuses no vacancy, and an act after the
// deadline is late, also by a millisecond and of a leader that was paused.
func TestNotForgiven(t *testing.T) {
	e := sound()
	e.History.Events = append(e.History.Events, event(0, history.Joined, "c3", 30, 0))
	e.History.Events[5].At = 16 * s
	e.Stores["alpha"][2].Checked = 17 * s
	e.History.Faults = []history.Fault{{Kind: "kill", Target: "c3", From: 13 * s, To: 13 * s}}
	e.History = history.Merge(e.History)
	if found := e.Check(); !slices.Equal(rules(found), []history.Rule{history.Vacancy}) {
		t.Errorf("a vacancy with a fault behind the heir: %v", found)
	}

	e = sound()
	e.History.Events[3] = told(10*s, 9*s+time.Millisecond, 9*s, "c1", 10)
	e.History.Faults = []history.Fault{{Kind: "pause", Target: "c1", From: 8 * s, To: 9 * s}}
	if found := e.Check(); !slices.Equal(rules(found), []history.Rule{history.Late}) {
		t.Errorf("a late end: %v", found)
	}
}
