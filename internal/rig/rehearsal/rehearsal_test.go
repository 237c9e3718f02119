//go:build linux

package rehearsal_test

import (
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/arena/arenatest"
	"github.com/succession-dev/succession/internal/rig/evidence"
	"github.com/succession-dev/succession/internal/rig/evidence/evidencetest"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/internal/rig/rehearsal"
	"github.com/succession-dev/succession/internal/rig/store"
)

// TestRehearsal moves an election from ZooKeeper to etcd without faults, and back with
// them, at least. A failure keeps all that it has written.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.For = *arenatest.Length
	r := rehearse(t, o)
	t.Logf("\n%s", r)
	if len(r.Violations) > 0 {
		t.Errorf("guarantees were broken; see %s", o.Dir)
	}
	if n := len(r.Legs); n < 2 || r.Legs[0].Stormy || !r.Legs[1].Stormy || r.Legs[0].To != o.To || r.Legs[1].To != o.From {
		t.Errorf("the election was moved %d times, and is to be moved there without faults and back with them: %+v", n, r.Legs)
	}
	if missing := r.Missing(); len(missing) > 0 {
		t.Errorf("of the faults these did not occur in any migration: %v", missing)
	}
	for _, l := range r.Legs {
		for _, part := range [][2]time.Duration{{l.Began, l.Asked}, {l.Moved, l.Ended}} {
			if !slices.ContainsFunc(r.Evidence.Stores["reports"], func(w store.Write) bool { return w.Refused == 0 && part[0] <= w.At && w.At <= part[1] }) {
				t.Errorf("nothing was written from %v to %v, on the way from %s to %s", part[0], part[1], l.From, l.To)
			}
		}
	}
}

// An operator who removes the gate by hand, and starts a candidate with the new
// coordinator alone, has two leaders, and the checker finds them.
func TestUngated(t *testing.T) {
	lane.All(t)
	t.Parallel()
	o := options(t)
	o.Ungated = true
	r := rehearse(t, o)
	found := evidencetest.Rules(r.Violations)
	for _, want := range []history.Rule{history.Overlap, rehearsal.Wronged} {
		if !slices.Contains(found, want) {
			t.Errorf("%s was not found, but %v", want, found)
		}
	}
}

func options(t *testing.T) rehearsal.Options {
	t.Helper()
	command, err := rehearsal.BuildCommand(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return rehearsal.Options{
		Options: arenatest.Options(t, "rehearsal"),
		From:    "zookeeper", To: "etcd", Nodes: 1, Command: []string{command},
	}
}

func rehearse(t *testing.T, o rehearsal.Options) *rehearsal.Report {
	t.Helper()
	r, err := rehearsal.Rehearse(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const s = time.Second

// moved returns what a good migration leaves behind: c1 leads and resigns, c2 leads over
// the cutover, and is followed by c3, who has been first to stand on the new coordinator,
// where positions are smaller.
func moved() *rehearsal.Report {
	e := &evidence.Evidence{
		History: &history.History{Events: []history.Event{
			evidencetest.Event(0, history.Joined, "c1", 1001, 0),
			evidencetest.Event(0, history.Joined, "c2", 1002, 0),
			evidencetest.Event(0, history.Joined, "c4", 1003, 0),
			evidencetest.Event(0, history.Joined, "c3", 1004, 0),
			evidencetest.Event(1*s, history.Won, "c1", 1001, 1001),
			evidencetest.Event(12*s, history.Resigned, "c1", 1001, 1001),
			evidencetest.Event(12*s, history.Left, "c1", 1001, 0),
			evidencetest.Event(12*s+s/10, history.Won, "c2", 1002, 1002),
			evidencetest.Event(15*s+s/10, history.Left, "c3", 1004, 0),
			evidencetest.Event(15*s+s/5, history.Joined, "c3", 50, 0),
			evidencetest.Event(15*s+s/5, history.Left, "c4", 1003, 0),
			evidencetest.Event(15*s+s/4, history.Joined, "c4", 51, 0),
			evidencetest.Event(20*s, history.Resigned, "c2", 1002, 1002),
			evidencetest.Event(20*s, history.Left, "c2", 1002, 0),
			evidencetest.Event(20*s+s/10, history.Won, "c3", 50, 2050),
			evidencetest.Event(25*s, history.Resigned, "c3", 50, 2050),
			evidencetest.Event(25*s, history.Left, "c3", 50, 0),
			evidencetest.Event(25*s+s/10, history.Won, "c4", 51, 2051),
			evidencetest.Event(30*s, history.Resigned, "c4", 51, 2051),
			evidencetest.Event(30*s, history.Left, "c4", 51, 0),
		}},
		Stores:  map[string][]store.Write{},
		Records: map[string]string{},
		Rules:   history.Rules{Vacancy: 3 * s},
	}
	evidencetest.Round(e, 2*s, "c1", 1001, 1)
	evidencetest.Round(e, 11*s, "c1", 1001, 2)
	evidencetest.Round(e, 13*s, "c2", 1002, 1)
	evidencetest.Round(e, 19*s, "c2", 1002, 2)
	evidencetest.Round(e, 24*s, "c3", 2050, 1)
	evidencetest.Round(e, 29*s, "c4", 2051, 1)
	return &rehearsal.Report{
		Evidence: *e,
		Course: rehearsal.Course{
			Legs:     []rehearsal.Leg{{From: "zookeeper", To: "etcd", Began: 10 * s, Asked: 14 * s, Moved: 15 * s, Ended: 30 * s}},
			Ordinary: []rehearsal.Handover{{On: "zookeeper", From: 0, To: s / 10}, {On: "etcd", Crash: true, From: 0, To: 4 * s}},
		},
	}
}

// find returns the event of a kind of a candidate.
func find(r *rehearsal.Report, k history.Kind, candidate string) *history.Event {
	all := r.Evidence.History.Events
	return &all[slices.IndexFunc(all, func(e history.Event) bool { return e.Kind == k && e.Candidate == candidate })]
}

// Each way to spoil a good migration is found, by its rule and no other, and what is to
// be expected of one is no violation.
func TestSpoiledMigrations(t *testing.T) {
	late := func(r *rehearsal.Report) { find(r, history.Won, "c3").At = 23*s + s/2 }
	fault := func(r *rehearsal.Report, kind, target string, from, to time.Duration) {
		h := r.Evidence.History
		h.Faults = append(h.Faults, history.Fault{Kind: kind, Target: target, From: from, To: to})
	}
	refuse := func(r *rehearsal.Report, at time.Duration) {
		w := store.Write{At: at, Checked: 19 * s, Token: 1002, Seq: 2, Candidate: "c2", Refused: 2050}
		r.Evidence.Stores["alpha"][3] = w
		evidencetest.Op(&r.Evidence, 3, "file").Outcome = "refused"
	}
	tests := []struct {
		name  string
		spoil func(*rehearsal.Report)
		want  []history.Rule
	}{
		{"nothing", func(*rehearsal.Report) {}, nil},
		{"two lead, one by each coordinator", func(r *rehearsal.Report) {
			find(r, history.Resigned, "c2").At, find(r, history.Left, "c2").At = 21*s, 21*s
		}, []history.Rule{history.Overlap}},
		{"a token falls on the new coordinator", func(r *rehearsal.Report) {
			r.Evidence.Stores["alpha"] = nil
			r.Evidence.Ops = nil
			find(r, history.Won, "c3").Token = 50
			find(r, history.Resigned, "c3").Token = 50
		}, []history.Rule{history.Token}},
		{"the order of the new coordinator is not kept", func(r *rehearsal.Report) {
			find(r, history.Won, "c4").Position = 49
		}, []history.Rule{history.Order}},
		{"the order of the old coordinator is not kept", func(r *rehearsal.Report) {
			find(r, history.Won, "c1").Position = 1009
		}, []history.Rule{history.Order}},
		{"a planned handover is slow", func(r *rehearsal.Report) {
			find(r, history.Won, "c3").At = 22 * s
		}, []history.Rule{rehearsal.Slow}},
		{"nobody leads for longer than after a crash, where there are faults", func(r *rehearsal.Report) {
			r.Legs[0].Stormy = true
			late(r)
		}, []history.Rule{history.Vacancy}},
		{"the same, and a fault of somebody who has nothing to do with it", func(r *rehearsal.Report) {
			r.Legs[0].Stormy = true
			late(r)
			fault(r, "kill", "c4", 21*s, 22*s)
		}, []history.Rule{history.Vacancy}},
		{"the heir was cut off from one coordinator", func(r *rehearsal.Report) {
			r.Legs[0].Stormy = true
			late(r)
			fault(r, "half-cut", "c3", 19*s, 22*s)
		}, nil},
		{"the heir was killed", func(r *rehearsal.Report) {
			r.Legs[0].Stormy = true
			late(r)
			fault(r, "kill", "c3", 21*s, 22*s)
		}, nil},
		{"the store refuses a leader, who gives up", func(r *rehearsal.Report) { refuse(r, 20*s-s/50) }, []history.Rule{rehearsal.Wronged}},
		{"the store refuses a former leader", func(r *rehearsal.Report) {
			refuse(r, 20*s+s/5)
		}, nil},
		{"the store refuses a leader that has not noted its end yet", func(r *rehearsal.Report) {
			*find(r, history.Resigned, "c2") = evidencetest.Told(20*s, 19*s+s/10, 19*s+s/2, "c2", 1002)
			refuse(r, 20*s-s/50)
		}, nil},
		{"the same, and it is told afterwards that it still leads", func(r *rehearsal.Report) {
			*find(r, history.Resigned, "c2") = evidencetest.Told(20*s, 20*s-s/50+1, 0, "c2", 1002)
			refuse(r, 20*s-s/50)
		}, []history.Rule{rehearsal.Wronged}},
		{"the store accepts an old token", func(r *rehearsal.Report) {
			w := r.Evidence.Stores["alpha"]
			w[3].At = 24*s + s/2
			w[3], w[4] = w[4], w[3]
		}, []history.Rule{evidence.Regression}},
		{"the coordinator lets in a former leader", func(r *rehearsal.Report) {
			evidencetest.Op(&r.Evidence, 3, "last").From = 21 * s
		}, []history.Rule{evidence.Unfenced}},
	}
	for _, tt := range tests {
		r := moved()
		tt.spoil(r)
		found := r.Check()
		if got := evidencetest.Rules(found); !slices.Equal(got, tt.want) {
			t.Errorf("%s: found %v, want %v", tt.name, found, tt.want)
		}
		if r.String() == "" {
			t.Errorf("%s: no summary", tt.name)
		}
	}
}

// An election moves between two coordinators.
func TestRehearseRefuses(t *testing.T) {
	o := rehearsal.Options{From: "etcd", To: "etcd"}
	if _, err := rehearsal.Rehearse(t.Context(), o); err == nil {
		t.Error("it moved from etcd to etcd")
	}
}
