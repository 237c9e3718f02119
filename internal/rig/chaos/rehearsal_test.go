//go:build linux

package chaos_test

import (
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/chaos"
	"github.com/succession-dev/succession/internal/rig/chaos/store"
)

// TestRehearsal moves an election from ZooKeeper to etcd without faults, and back with
// them, at least. A failure keeps all that it has written.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	o := rehearsalOptions(t)
	o.For = *length
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
	t.Parallel()
	o := rehearsalOptions(t)
	o.Ungated = true
	r := rehearse(t, o)
	found := rules(r.Violations)
	for _, want := range []history.Rule{history.Overlap, chaos.Wronged} {
		if !slices.Contains(found, want) {
			t.Errorf("%s was not found, but %v", want, found)
		}
	}
}

func rehearsalOptions(t *testing.T) chaos.RehearsalOptions {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command, err := succession()
	if err != nil {
		t.Fatal(err)
	}
	o := chaos.RehearsalOptions{
		From: "zookeeper", To: "etcd", Nodes: 1, Seed: *seed,
		Worker: []string{exe, "worker"}, Command: []string{command}, Env: env, Out: t.Output(),
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64N(1_000_000)
	}
	if o.Dir, err = os.MkdirTemp("", "rehearsal-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			if err := os.RemoveAll(o.Dir); err != nil {
				t.Error(err)
			}
		}
	})
	return o
}

func rehearse(t *testing.T, o chaos.RehearsalOptions) *chaos.Rehearsal {
	t.Helper()
	r, err := chaos.Rehearse(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// moved returns what a good migration leaves behind: c1 leads and resigns, c2 leads over
// the cutover, and is followed by c3, who has been first to stand on the new coordinator,
// where positions are smaller.
func moved() *chaos.Rehearsal {
	e := &chaos.Evidence{
		History: &history.History{Events: []history.Event{
			event(0, history.Joined, "c1", 1001, 0),
			event(0, history.Joined, "c2", 1002, 0),
			event(0, history.Joined, "c4", 1003, 0),
			event(0, history.Joined, "c3", 1004, 0),
			event(1*s, history.Won, "c1", 1001, 1001),
			event(12*s, history.Resigned, "c1", 1001, 1001),
			event(12*s, history.Left, "c1", 1001, 0),
			event(12*s+s/10, history.Won, "c2", 1002, 1002),
			event(15*s+s/10, history.Left, "c3", 1004, 0),
			event(15*s+s/5, history.Joined, "c3", 50, 0),
			event(15*s+s/5, history.Left, "c4", 1003, 0),
			event(15*s+s/4, history.Joined, "c4", 51, 0),
			event(20*s, history.Resigned, "c2", 1002, 1002),
			event(20*s, history.Left, "c2", 1002, 0),
			event(20*s+s/10, history.Won, "c3", 50, 2050),
			event(25*s, history.Resigned, "c3", 50, 2050),
			event(25*s, history.Left, "c3", 50, 0),
			event(25*s+s/10, history.Won, "c4", 51, 2051),
			event(30*s, history.Resigned, "c4", 51, 2051),
			event(30*s, history.Left, "c4", 51, 0),
		}},
		Stores:  map[string][]store.Write{},
		Records: map[string]string{},
		Rules:   history.Rules{Vacancy: 3 * s},
	}
	round(e, 2*s, "c1", 1001, 1)
	round(e, 11*s, "c1", 1001, 2)
	round(e, 13*s, "c2", 1002, 1)
	round(e, 19*s, "c2", 1002, 2)
	round(e, 24*s, "c3", 2050, 1)
	round(e, 29*s, "c4", 2051, 1)
	return &chaos.Rehearsal{
		Evidence: *e,
		Course: chaos.Course{
			Legs:     []chaos.Leg{{From: "zookeeper", To: "etcd", Began: 10 * s, Asked: 14 * s, Moved: 15 * s, Ended: 30 * s}},
			Ordinary: []chaos.Handover{{On: "zookeeper", From: 0, To: s / 10}, {On: "etcd", Crash: true, From: 0, To: 4 * s}},
		},
	}
}

// find returns the event of a kind of a candidate.
func find(r *chaos.Rehearsal, k history.Kind, candidate string) *history.Event {
	all := r.Evidence.History.Events
	return &all[slices.IndexFunc(all, func(e history.Event) bool { return e.Kind == k && e.Candidate == candidate })]
}

// Each way to spoil a good migration is found, by its rule and no other, and what is to
// be expected of one is no violation.
func TestSpoiledMigrations(t *testing.T) {
	late := func(r *chaos.Rehearsal) { find(r, history.Won, "c3").At = 23*s + s/2 }
	fault := func(r *chaos.Rehearsal, kind, target string, from, to time.Duration) {
		h := r.Evidence.History
		h.Faults = append(h.Faults, history.Fault{Kind: kind, Target: target, From: from, To: to})
	}
	refuse := func(r *chaos.Rehearsal, at time.Duration) {
		w := store.Write{At: at, Checked: 19 * s, Token: 1002, Seq: 2, Candidate: "c2", Refused: 2050}
		r.Evidence.Stores["alpha"][3] = w
		op(&r.Evidence, 3, "file").Outcome = "refused"
	}
	tests := []struct {
		name  string
		spoil func(*chaos.Rehearsal)
		want  []history.Rule
	}{
		{"nothing", func(*chaos.Rehearsal) {}, nil},
		{"two lead, one by each coordinator", func(r *chaos.Rehearsal) {
			find(r, history.Resigned, "c2").At, find(r, history.Left, "c2").At = 21*s, 21*s
		}, []history.Rule{history.Overlap}},
		{"a token falls on the new coordinator", func(r *chaos.Rehearsal) {
			r.Evidence.Stores["alpha"] = nil
			r.Evidence.Ops = nil
			find(r, history.Won, "c3").Token = 50
			find(r, history.Resigned, "c3").Token = 50
		}, []history.Rule{history.Token}},
		{"the order of the new coordinator is not kept", func(r *chaos.Rehearsal) {
			find(r, history.Won, "c4").Position = 49
		}, []history.Rule{history.Order}},
		{"the order of the old coordinator is not kept", func(r *chaos.Rehearsal) {
			find(r, history.Won, "c1").Position = 1009
		}, []history.Rule{history.Order}},
		{"a planned handover is slow", func(r *chaos.Rehearsal) {
			find(r, history.Won, "c3").At = 22 * s
		}, []history.Rule{chaos.Slow}},
		{"nobody leads for longer than after a crash, where there are faults", func(r *chaos.Rehearsal) {
			r.Legs[0].Stormy = true
			late(r)
		}, []history.Rule{history.Vacancy}},
		{"the same, and a fault of somebody who has nothing to do with it", func(r *chaos.Rehearsal) {
			r.Legs[0].Stormy = true
			late(r)
			fault(r, "kill", "c4", 21*s, 22*s)
		}, []history.Rule{history.Vacancy}},
		{"the heir was cut off from one coordinator", func(r *chaos.Rehearsal) {
			r.Legs[0].Stormy = true
			late(r)
			fault(r, "half-cut", "c3", 19*s, 22*s)
		}, nil},
		{"the heir was killed", func(r *chaos.Rehearsal) {
			r.Legs[0].Stormy = true
			late(r)
			fault(r, "kill", "c3", 21*s, 22*s)
		}, nil},
		{"the store refuses a leader, who gives up", func(r *chaos.Rehearsal) { refuse(r, 20*s-s/50) }, []history.Rule{chaos.Wronged}},
		{"the store refuses a former leader", func(r *chaos.Rehearsal) {
			refuse(r, 20*s+s/5)
		}, nil},
		{"the store refuses a leader that has not noted its end yet", func(r *chaos.Rehearsal) {
			*find(r, history.Resigned, "c2") = told(20*s, 19*s+s/10, 19*s+s/2, "c2", 1002)
			refuse(r, 20*s-s/50)
		}, nil},
		{"the same, and it is told afterwards that it still leads", func(r *chaos.Rehearsal) {
			*find(r, history.Resigned, "c2") = told(20*s, 20*s-s/50+1, 0, "c2", 1002)
			refuse(r, 20*s-s/50)
		}, []history.Rule{chaos.Wronged}},
		{"the store accepts an old token", func(r *chaos.Rehearsal) {
			w := r.Evidence.Stores["alpha"]
			w[3].At = 24*s + s/2
			w[3], w[4] = w[4], w[3]
		}, []history.Rule{chaos.Regression}},
		{"the coordinator lets in a former leader", func(r *chaos.Rehearsal) {
			op(&r.Evidence, 3, "last").From = 21 * s
		}, []history.Rule{chaos.Unfenced}},
	}
	for _, tt := range tests {
		r := moved()
		tt.spoil(r)
		found := r.Check()
		if got := rules(found); !slices.Equal(got, tt.want) {
			t.Errorf("%s: found %v, want %v", tt.name, found, tt.want)
		}
		if r.String() == "" {
			t.Errorf("%s: no summary", tt.name)
		}
	}
}

// An election moves between two coordinators.
func TestRehearseRefuses(t *testing.T) {
	o := chaos.RehearsalOptions{From: "etcd", To: "etcd", Dir: t.TempDir(), Out: io.Discard}
	if _, err := chaos.Rehearse(t.Context(), o); err == nil {
		t.Error("it moved from etcd to etcd")
	}
}
