//go:build linux

package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/chaos/store"
	"github.com/succession-dev/succession/internal/rig/chaos/worker"
)

// A Rehearsal is what came of one.
type Rehearsal struct {
	Options RehearsalOptions
	Course
	Evidence   Evidence // without what the guarded records hold
	Violations []history.Violation

	marks []history.Fault // the steps, as the pictures show them
}

// report reads what the run has left behind, judges it, and writes the history, its
// pictures and the summary.
func (r *rehearsal) report() (*Rehearsal, error) {
	out := &Rehearsal{Options: r.move, Course: r.course, marks: r.marks.History().Faults}
	e := &out.Evidence
	for _, g := range r.grounds {
		e.Rules.Vacancy = max(e.Rules.Vacancy, g.c.crash+aftermath)
	}
	var err error
	if e.History, err = readHistories(r.move.Dir, r.elections); err != nil {
		return nil, err
	}
	if e.Ops, err = readOps(r.move.Dir); err != nil {
		return nil, err
	}
	e.Stores = make(map[string][]store.Write)
	for _, election := range r.elections {
		if e.Stores[election], err = store.Read(filepath.Join(r.move.Dir, "store", election)); err != nil {
			return nil, err
		}
	}
	out.Violations = append(r.found, out.Check()...)
	return out, out.write()
}

// write writes history.jsonl, a picture of the whole and of each leg, and summary.txt.
func (r *Rehearsal) write() error {
	h := r.Evidence.History
	f, err := os.Create(filepath.Join(r.Options.Dir, "history.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := h.Write(f); err != nil {
		return err
	}
	shown := history.Merge(h, &history.History{Faults: r.marks})
	title := fmt.Sprintf("%s and %s, seed %d", r.Options.From, r.Options.To, r.Options.Seed)
	if err := r.draw("timeline.svg", title, shown, r.Violations); err != nil {
		return err
	}
	for i, l := range r.Legs {
		title := fmt.Sprintf("leg %d, from %s to %s, seed %d", i+1, l.From, l.To, r.Options.Seed)
		var found []history.Violation
		for _, v := range r.Violations {
			if l.Began <= v.From && v.From <= l.Ended {
				found = append(found, v)
			}
		}
		if err := r.draw(fmt.Sprintf("leg%d.svg", i+1), title, clip(shown, l.Began, l.Ended), found); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(r.Options.Dir, "summary.txt"), []byte(r.String()), 0o644)
}

// draw writes a picture, with a row for the operator above all others.
func (r *Rehearsal) draw(name, title string, h *history.History, found []history.Violation) error {
	from, _ := h.Span()
	for _, election := range h.Elections() {
		row := history.Event{At: from, Kind: history.Left, Election: election, Candidate: operator}
		h = history.Merge(&history.History{Events: []history.Event{row}}, h)
	}
	f, err := os.Create(filepath.Join(r.Options.Dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	return h.SVG(f, title, found)
}

// clip returns what lies between two instants. Who stood in line then, or led, begins to
// do so with it.
func clip(h *history.History, from, to time.Duration) *history.History {
	out := new(history.History)
	type row struct{ candidate, election string }
	stands, leads := make(map[row]history.Event), make(map[row]history.Event)
	for _, e := range h.Events {
		r := row{e.Candidate, e.Election}
		switch {
		case e.At > to:
		case e.At >= from:
			out.Events = append(out.Events, e)
		case e.Kind == history.Joined:
			stands[r] = e
		case e.Kind == history.Won:
			leads[r] = e
		default:
			delete(leads, r)
			if e.Kind == history.Left || e.Kind == history.Deposed {
				delete(stands, r)
			}
		}
	}
	for _, f := range h.Faults {
		if f.To >= from && f.From <= to {
			f.From, f.To = max(f.From, from), min(f.To, to)
			out.Faults = append(out.Faults, f)
		}
	}
	var begun []history.Event
	for _, election := range h.Elections() {
		for _, c := range h.Candidates(election) { // the rows keep their order
			for _, was := range []map[row]history.Event{stands, leads} {
				if e, ok := was[row{c, election}]; ok {
					e.At = from
					begun = append(begun, e)
				}
			}
		}
	}
	out.Events = append(begun, out.Events...)
	return history.Merge(out)
}

// String returns the summary.
func (r *Rehearsal) String() string {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-20s "+format+"\n", append([]any{what}, args...)...)
	}
	e := &r.Evidence
	h := r.judged()
	stormy := 0
	for _, l := range r.Legs {
		if l.Stormy {
			stormy++
		}
	}
	line("rehearsal", "%s and %s, %d candidates, %d servers each, seed %d", r.Options.From, r.Options.To, fleet, r.Options.Nodes, r.Options.Seed)
	line("migrations", "%d, of which %d with faults", len(r.Legs), stormy)
	kinds := make(map[string]int)
	for _, f := range e.History.Faults {
		kinds[f.Kind]++
	}
	line("faults", "%d: %s; the operator's command killed %d times", len(e.History.Faults), counts(kinds), r.Killed)
	if missing := r.Missing(); stormy > 0 && len(missing) > 0 {
		line("", "not one of: %s", strings.Join(missing, ", "))
	}

	for _, on := range []string{r.Options.From, r.Options.To} {
		line("on "+on, "a resignation costs %s, a crash %s", r.cost(on, false), r.cost(on, true))
	}
	for _, election := range e.elections() {
		terms := h.Terms(election)
		line("terms", "%d", len(terms))
		var calm, storm, anew []stretch
		waits := r.waits(h, election)
		for _, l := range r.Legs {
			gaps := within(vacant(terms), l.Began, l.Ended)
			if l.Stormy {
				storm = append(storm, gaps...)
				anew = append(anew, within(waits, l.Began, l.Ended)...)
			} else {
				calm = append(calm, gaps...)
			}
		}
		line("no leader, at most", "%s in the planned steps of migrations without faults (bound %v: the slowest resignation, and %v)",
			most(calm), r.planned().Round(time.Millisecond), busy)
		line("", "%s in migrations with faults, since the last one that may prolong it (bound %v: a crash on the slower coordinator, and %v)",
			most(anew), e.Rules.Vacancy, aftermath)
		line("", "%s in these, since the first one; %s in all of the run", most(storm), most(vacant(terms)))
	}
	told := make(map[string]int)
	for _, op := range e.Ops {
		if op.Target != worker.File {
			told[string(op.Outcome)]++
		}
	}
	line("guarded writes", "%s", counts(told))
	accepted, refused := 0, 0
	for _, writes := range e.Stores {
		for _, w := range writes {
			if w.Refused > 0 {
				refused++
			} else {
				accepted++
			}
		}
	}
	broken := make(map[history.Rule]int)
	for _, v := range r.Violations {
		broken[v.Rule]++
	}
	line("writes to the store", "%d accepted, %d with a falling token; %d refused, %d of them in the writer's term", accepted, broken[Regression], refused, broken[Wronged])
	line("overlaps", "%d", broken[history.Overlap])
	line("tokens that fell", "%d", broken[history.Token])
	line("violations", "%d", len(r.Violations))
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "  %v\n", v)
	}
	return b.String()
}

// Missing returns the kinds of faults that occurred in no migration.
func (r *Rehearsal) Missing() (out []string) {
	for _, k := range storms {
		occurred := slices.ContainsFunc(r.Evidence.History.Faults, func(f history.Fault) bool {
			kind, _, _ := strings.Cut(f.Kind, of)
			return kind == k.kind && slices.ContainsFunc(r.Legs, func(l Leg) bool { return l.Stormy && l.Began <= f.From && f.From <= l.Ended })
		})
		if !occurred {
			out = append(out, k.kind)
		}
	}
	return out
}

// cost returns what the ordinary handovers of one kind took.
func (r *Rehearsal) cost(on string, crash bool) string {
	var all []time.Duration
	for _, h := range r.Ordinary {
		if h.On == on && h.Crash == crash {
			all = append(all, h.To-h.From)
		}
	}
	if len(all) == 0 {
		return "nothing that was measured"
	}
	slices.Sort(all)
	return fmt.Sprintf("%v to %v (%d)", all[0].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond), len(all))
}

func most(all []stretch) string {
	var max stretch
	for _, s := range all {
		if s.length() > max.length() {
			max = s
		}
	}
	return fmt.Sprintf("%v at %v", max.length().Round(time.Millisecond), max.from.Round(time.Millisecond))
}
