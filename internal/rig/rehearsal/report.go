//go:build linux

package rehearsal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/arena"
	"github.com/succession-dev/succession/internal/rig/evidence"
	"github.com/succession-dev/succession/internal/rig/worker"
)

// A Report is what came of one.
type Report struct {
	Options Options
	Course
	Evidence   evidence.Evidence // without what the guarded records hold
	Violations []history.Violation
	NotJudged  []history.Violation // see [arena.Arena.Judged]

	marks []history.Fault // the steps, as the pictures show them
}

// report reads what the run has left behind, judges it, and writes the history, its
// pictures and the summary.
func (r *rehearsal) report() (*Report, error) {
	r.Say("checking")
	e, err := evidence.Read(r.Dir, r.Elections)
	if err != nil {
		return nil, err
	}
	for _, g := range r.grounds {
		e.Rules.Vacancy = max(e.Rules.Vacancy, g.Crash+aftermath)
	}
	out := &Report{Options: r.o, Course: r.course, Evidence: e, marks: r.marks.History().Faults}
	out.Violations, out.NotJudged = r.Judged(append(r.Found(), out.Check()...), map[history.Rule]time.Duration{
		history.Vacancy: aftermath, Slow: busy, history.Late: 0, "step": busy, "cutover": busy, arena.Unclosed: arena.CloseLimit,
	})
	if err := out.drawAll(); err != nil {
		return nil, err
	}
	return out, e.Write(r.Dir, out.String())
}

// drawAll writes a picture of the whole and of each leg.
func (r *Report) drawAll() error {
	shown := history.Merge(r.Evidence.History, &history.History{Faults: r.marks})
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
	return nil
}

// draw writes a picture, with a row for the operator above all others.
func (r *Report) draw(name, title string, h *history.History, found []history.Violation) error {
	from, _ := h.Span()
	for _, election := range h.Elections() {
		row := history.Event{At: from, Kind: history.Left, Election: election, Candidate: operator}
		h = history.Merge(&history.History{Events: []history.Event{row}}, h)
	}
	return evidence.Create(r.Options.Dir, name, func(w io.Writer) error { return h.SVG(w, title, found) })
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
func (r *Report) String() string {
	var s evidence.Summary
	e := &r.Evidence
	h := r.judged()
	stormy := 0
	for _, l := range r.Legs {
		if l.Stormy {
			stormy++
		}
	}
	s.Line("rehearsal", "%s and %s, %d candidates, %d servers each, seed %d", r.Options.From, r.Options.To, fleet, r.Options.Nodes, r.Options.Seed)
	s.Line("migrations", "%d, of which %d with faults", len(r.Legs), stormy)
	s.Line("faults", "%s; the operator's command killed %d times", e.Faults(), r.Killed)
	if missing := r.Missing(); stormy > 0 && len(missing) > 0 {
		s.Line("", "not one of: %s", strings.Join(missing, ", "))
	}

	for _, on := range []string{r.Options.From, r.Options.To} {
		s.Line("on "+on, "a resignation costs %s, a crash %s", r.cost(on, false), r.cost(on, true))
	}
	for _, election := range e.Elections() {
		terms := h.Terms(election)
		s.Line("terms", "%d", len(terms))
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
		s.Line("no leader, at most", "%s in the planned steps of migrations without faults (bound %v: the slowest resignation, and %v)",
			most(calm), r.planned().Round(time.Millisecond), busy)
		s.Line("", "%s in migrations with faults, since the last one that may prolong it (bound %v: a crash on the slower coordinator, and %v)",
			most(anew), e.Rules.Vacancy, aftermath)
		s.Line("", "%s in these, since the first one; %s in all of the run", most(storm), most(vacant(terms)))
	}
	told := make(map[string]int)
	for _, op := range e.Ops {
		if op.Target != worker.File {
			told[string(op.Outcome)]++
		}
	}
	s.Line("guarded writes", "%s", evidence.Counts(told))
	accepted, refused := e.Stored()
	broken := evidence.Broken(r.Violations)
	s.Line("writes to the store", "%d accepted, %d with a falling token; %d refused, %d of them in the writer's term", accepted, broken[evidence.Regression], refused, broken[Wronged])
	s.Line("overlaps", "%d", broken[history.Overlap])
	s.Line("tokens that fell", "%d", broken[history.Token])
	s.Line("not judged", "%d", len(r.NotJudged))
	s.Violations(r.Violations)
	return s.String()
}

// Missing returns the kinds of faults that occurred in no migration.
func (r *Report) Missing() (out []string) {
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
func (r *Report) cost(on string, crash bool) string {
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
