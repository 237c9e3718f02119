//go:build linux

package evidence_test

import (
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/evidence"
	"github.com/succession-dev/succession/internal/rig/evidence/evidencetest"
	"github.com/succession-dev/succession/internal/rig/store"
	"github.com/succession-dev/succession/internal/rig/worker"
)

const s = time.Second

// sound returns what a good run leaves behind: c1 leads with token 10, resigns after ten
// seconds, and c2 leads with token 20. Each makes two rounds of writes.
func sound() *evidence.Evidence {
	e := &evidence.Evidence{
		History: &history.History{Events: []history.Event{
			evidencetest.Event(0, history.Joined, "c1", 10, 0),
			evidencetest.Event(0, history.Joined, "c2", 20, 0),
			evidencetest.Event(1*s, history.Won, "c1", 10, 10),
			evidencetest.Event(10*s, history.Resigned, "c1", 10, 10),
			evidencetest.Event(10*s, history.Left, "c1", 10, 0),
			evidencetest.Event(11*s, history.Won, "c2", 20, 20),
			evidencetest.Event(20*s, history.Resigned, "c2", 20, 20),
			evidencetest.Event(20*s, history.Left, "c2", 20, 0),
		}},
		Stores:  map[string][]store.Write{},
		Records: map[string]string{},
		Rules:   history.Rules{Vacancy: 5 * s},
	}
	evidencetest.Round(e, 2*s, "c1", 10, 1)
	evidencetest.Round(e, 8*s, "c1", 10, 2)
	evidencetest.Round(e, 12*s, "c2", 20, 1)
	evidencetest.Round(e, 18*s, "c2", 20, 2)
	return e
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
		spoil func(*evidence.Evidence)
		want  []history.Rule
	}{
		{"two terms at once", func(e *evidence.Evidence) {
			e.History.Events[3].At, e.History.Events[4].At = 11*s+s/2, 11*s+s/2
		}, []history.Rule{history.Overlap}},
		{"two terms at once, for some milliseconds", func(e *evidence.Evidence) {
			e.History.Events[3] = evidencetest.Told(11*s+s/2, 11*s+3*time.Millisecond, 0, "c1", 10)
			e.History.Events[4].At = 11*s + s/2
		}, []history.Rule{history.Overlap}},
		{"a token that falls", func(e *evidence.Evidence) {
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
		{"nobody leads", func(e *evidence.Evidence) {
			e.History.Events[5].At = 16 * s
			e.Stores["alpha"][2].Checked = 17 * s
		}, []history.Rule{history.Vacancy}},
		{"a leader that was deposed leads on", func(e *evidence.Evidence) {
			e.History.Events = append(e.History.Events, evidencetest.Event(3*s, history.Deposed, "c1", 10, 10))
			e.History.Faults = []history.Fault{{Kind: "remove", Target: "c1", From: 3 * s, To: 4 * s}}
		}, []history.Rule{evidence.Told}},
		{"the store lost a write", func(e *evidence.Evidence) {
			e.Stores["alpha"] = slices.Delete(e.Stores["alpha"], 1, 2)
		}, []history.Rule{evidence.Lost}},
		{"the store has refused what it acknowledged", func(e *evidence.Evidence) {
			e.Stores["alpha"][1].Refused = 20
		}, []history.Rule{evidence.Lost}},
		{"the store has what it refused", func(e *evidence.Evidence) {
			evidencetest.Op(e, 1, worker.File).Outcome = worker.Refused
		}, []history.Rule{evidence.Invented}},
		{"the store has what nobody wrote", func(e *evidence.Evidence) {
			e.Stores["alpha"] = append(e.Stores["alpha"], store.Write{At: 19 * s, Checked: 19 * s, Token: 20, Seq: 9})
		}, []history.Rule{evidence.Invented}},
		{"the store accepts an old token", func(e *evidence.Evidence) {
			w := e.Stores["alpha"]
			w[1].At = 12*s + s/2 // its leader was paused after its check
			w[1], w[2] = w[2], w[1]
		}, []history.Rule{evidence.Regression}},
		{"a write of a leader that did not ask", func(e *evidence.Evidence) {
			w := e.Stores["alpha"]
			w[1].At, w[1].Checked, w[1].Refused = 13*s, 12*s, 20
			w[1], w[2] = w[2], w[1]
			evidencetest.Op(e, 1, worker.File).Outcome = worker.Refused
		}, []history.Rule{evidence.Believed}},
		{"the counter lost a write", func(e *evidence.Evidence) {
			evidencetest.Op(e, 2, worker.Counter).Prev = evidencetest.Op(e, 0, worker.Counter).Value
		}, []history.Rule{evidence.Linearizable, evidence.Lost}},
		{"the counter lost its last write", func(e *evidence.Evidence) {
			e.Records[counter] = evidencetest.Op(e, 2, worker.Counter).Value
		}, []history.Rule{evidence.Linearizable, evidence.Lost}},
		{"the counter has what nobody wrote", func(e *evidence.Evidence) {
			e.Records[counter] = "99 nobody"
		}, []history.Rule{evidence.Invented, evidence.Linearizable, evidence.Lost}},
		{"the counter has what was refused", func(e *evidence.Evidence) {
			evidencetest.Op(e, 1, worker.Counter).Outcome = worker.Refused
		}, []history.Rule{evidence.Invented, evidence.Linearizable}},
		{"the other record lost its last write", func(e *evidence.Evidence) {
			e.Records[last] = evidencetest.Op(e, 2, worker.Last).Value
		}, []history.Rule{evidence.Linearizable}},
		{"a guarded write of a leader that was succeeded", func(e *evidence.Evidence) {
			o := evidencetest.Op(e, 1, worker.Last)
			o.From, o.To = 11*s+s/2, 11*s+s/2+1
		}, []history.Rule{evidence.Unfenced}},
		{"a guarded write lands after its leader was succeeded", func(e *evidence.Evidence) {
			o := evidencetest.Op(e, 1, worker.Last)
			o.From, o.To = 12*s+s/2, 12*s+s/2+1
		}, []history.Rule{evidence.Linearizable, evidence.Unfenced}},
		{"a version comes twice", func(e *evidence.Evidence) {
			evidencetest.Op(e, 3, worker.Last).Version = evidencetest.Op(e, 0, worker.Last).Version
		}, []history.Rule{evidence.Linearizable}},
		{"a write is refused for a version that the record has", func(e *evidence.Evidence) {
			o := *evidencetest.Op(e, 3, worker.Counter)
			o.From, o.To, o.Prev, o.Value, o.Outcome = 19*s, 19*s+1, o.Value, "5 20 3", worker.Changed
			e.Ops = append(e.Ops, o)
		}, []history.Rule{evidence.Linearizable}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := sound()
			tt.spoil(e)
			e.History = history.Merge(e.History)
			if found := e.Check(); !slices.Equal(evidencetest.Rules(found), tt.want) {
				t.Errorf("it breaks %q, and is found to break %q", tt.want, found)
			}
		})
	}
}

// What is not held against anybody.
func TestForgiven(t *testing.T) {
	tests := []struct {
		name string
		make func(*evidence.Evidence)
	}{
		{"a write that nobody was told of, and that did not happen", func(e *evidence.Evidence) {
			o := *evidencetest.Op(e, 1, worker.Counter)
			o.From, o.To, o.Prev, o.Value, o.Outcome = 9*s, 0, o.Value, "3 10 3", worker.Unknown
			e.Ops = append(e.Ops, o)
		}},
		{"a write that nobody was told of, and that did happen", func(e *evidence.Evidence) {
			o := evidencetest.Op(e, 1, worker.Counter)
			o.To, o.Outcome = 0, worker.Unknown
			o = evidencetest.Op(e, 3, worker.Last)
			o.To, o.Outcome = 0, worker.Unknown
		}},
		{"a late write that the store refused", func(e *evidence.Evidence) {
			w := e.Stores["alpha"]
			w[1].At, w[1].Refused = 13*s, 20
			w[1], w[2] = w[2], w[1]
			evidencetest.Op(e, 1, worker.File).Outcome = worker.Refused
		}},
		{"a leader that notes its end late", func(e *evidence.Evidence) {
			e.History.Events[3] = evidencetest.Told(12*s+s/2, 10*s, 10*s, "c1", 10)
			e.History.Events[4].At = 12*s + s/2
		}},
		{"a leader that is paused, and deposed after its last act", func(e *evidence.Evidence) {
			e.History.Events[3] = evidencetest.Told(13*s, 9*s, 9*s+s/2, "c1", 10)
			e.History.Events[4].At = 13 * s
			e.History.Events = append(e.History.Events, evidencetest.Event(10*s, history.Deposed, "c1", 10, 10))
			e.History.Faults = []history.Fault{
				{Kind: "pause", Target: "c1", From: 9 * s, To: 13 * s}, {Kind: "remove", Target: "c1", From: 10 * s, To: 10 * s},
			}
		}},
		{"a leader that is paused as it wins", func(e *evidence.Evidence) {
			e.History.Events = append(e.History.Events,
				evidencetest.Event(0, history.Joined, "c3", 5, 0), evidencetest.Event(s/2, history.Won, "c3", 5, 5),
				evidencetest.Told(14*s, s/2, 3*s, "c3", 5), evidencetest.Event(14*s, history.Left, "c3", 5, 0))
			e.History.Faults = []history.Fault{{Kind: "pause", Target: "c3", From: s / 2, To: 14 * s}}
		}},
		{"a leader that was deposed and is cut off", func(e *evidence.Evidence) {
			e.History.Events = append(e.History.Events, evidencetest.Event(3*s, history.Deposed, "c1", 10, 10))
			e.History.Faults = []history.Fault{
				{Kind: "cut", Target: "c1", From: 2 * s, To: 9 * s}, {Kind: "remove", Target: "c1", From: 3 * s, To: 4 * s},
			}
		}},
		{"a leader that was deposed when the operator had waited for long", func(e *evidence.Evidence) {
			e.History.Events = append(e.History.Events, evidencetest.Event(3*s, history.Deposed, "c1", 10, 10))
			e.History.Faults = []history.Fault{{Kind: "remove", Target: "c1", From: 3 * s, To: 6 * s}}
		}},
		{"a vacancy that a second fault prolongs", func(e *evidence.Evidence) {
			e.History.Events = append(e.History.Events, evidencetest.Event(0, history.Joined, "c3", 30, 0), evidencetest.Event(20*s, history.Left, "c3", 30, 0))
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
	e.History.Events = append(e.History.Events, evidencetest.Event(0, history.Joined, "c3", 30, 0))
	e.History.Events[5].At = 16 * s
	e.Stores["alpha"][2].Checked = 17 * s
	e.History.Faults = []history.Fault{{Kind: "kill", Target: "c3", From: 13 * s, To: 13 * s}}
	e.History = history.Merge(e.History)
	if found := e.Check(); !slices.Equal(evidencetest.Rules(found), []history.Rule{history.Vacancy}) {
		t.Errorf("a vacancy with a fault behind the heir: %v", found)
	}

	e = sound()
	e.History.Events[3] = evidencetest.Told(10*s, 9*s+time.Millisecond, 9*s, "c1", 10)
	e.History.Faults = []history.Fault{{Kind: "pause", Target: "c1", From: 8 * s, To: 9 * s}}
	if found := e.Check(); !slices.Equal(evidencetest.Rules(found), []history.Rule{history.Late}) {
		t.Errorf("a late end: %v", found)
	}
}
