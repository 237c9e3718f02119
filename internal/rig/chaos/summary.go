//go:build linux

package chaos

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/arena"
	"github.com/succession-dev/succession/internal/rig/evidence"
	"github.com/succession-dev/succession/internal/rig/worker"
)

// A Report is what came of a run.
type Report struct {
	Options    Options
	Evidence   evidence.Evidence
	Violations []history.Violation
	NotJudged  []history.Violation // see [arena.Arena.Judged]
	Missing    []string            // the kinds of faults that could have occurred, and have not
}

// report reads what the run has left behind, judges it, and writes the history, its
// picture and the summary.
func (r *run) report(records map[string]string) (*Report, error) {
	r.Say("checking")
	e, err := evidence.Read(r.Dir, r.Elections)
	if err != nil {
		return nil, err
	}
	e.Records, e.Rules = records, history.Rules{Vacancy: r.c.Vacancy()}
	out := &Report{
		Options: r.o, Evidence: e, Missing: r.missing(e.History),
	}
	out.Violations, out.NotJudged = r.Judged(append(r.Found(), e.Check()...), map[history.Rule]time.Duration{
		history.Vacancy: evidence.Recovery, arena.Stuck: evidence.Recovery, evidence.Told: evidence.Recovery, history.Late: 0, arena.Unclosed: arena.CloseLimit,
	})
	title := fmt.Sprintf("%s, %v of faults, seed %d", r.o.On, r.o.For, r.o.Seed)
	err = evidence.Create(r.Dir, "timeline.svg", func(w io.Writer) error { return e.History.SVG(w, title, out.Violations) })
	if err != nil {
		return nil, err
	}
	return out, e.Write(r.Dir, out.String())
}

// String returns the summary.
func (r *Report) String() string {
	e := &r.Evidence
	h := e.History
	var s evidence.Summary
	s.Line("run", "%s, %v of faults, seed %d", r.Options.On, r.Options.For, r.Options.Seed)
	terms := 0
	for _, election := range h.Elections() {
		terms += len(h.Terms(election))
	}
	s.Line("terms", "%d in %d elections", terms, len(h.Elections()))
	s.Line("faults", "%s", e.Faults())
	if len(r.Missing) > 0 {
		s.Line("", "not one of: %s", strings.Join(r.Missing, ", "))
	}
	longest, at := vacancy(h)
	s.Line("longest vacancy", "%v at %v", longest.Round(time.Millisecond), at.Round(time.Millisecond))
	s.Line("after the last fault", "%v, of %v", wait(e).Round(time.Millisecond), e.Rules.Vacancy)

	outcomes := make(map[worker.Outcome]int)
	for _, op := range e.Ops {
		if op.Target != worker.File {
			outcomes[op.Outcome]++
		}
	}
	s.Line("guarded writes", "%d ok, %d refused, %d with another version, %d unknown",
		outcomes[worker.OK], outcomes[worker.Refused], outcomes[worker.Changed], outcomes[worker.Unknown])
	accepted, refused := e.Stored()
	s.Line("writes to the store", "%d accepted, %d refused", accepted, refused)
	s.Line("overlaps", "%d", evidence.Broken(r.Violations)[history.Overlap])
	s.Line("not judged", "%d", len(r.NotJudged))
	s.Violations(r.Violations)
	return s.String()
}

// vacancy returns the longest time in which nobody led an election, after it was won
// first and before it was left for good, and when it began.
func vacancy(h *history.History) (longest, at time.Duration) {
	for _, election := range h.Elections() {
		end := time.Duration(evidence.Never)
		for _, t := range h.Terms(election) {
			if d := t.From - end; d > longest {
				longest, at = d, end
			}
			if end == evidence.Never {
				end = t.LedUntil()
			}
			end = max(end, t.LedUntil())
		}
	}
	return longest, at
}

// wait returns the longest vacancy as it is counted: where a candidate stood in line that
// no fault touched, from the last fault that may have prolonged it.
func wait(e *evidence.Evidence) (longest time.Duration) {
	for _, election := range e.History.Elections() {
		for _, v := range evidence.WithOnsets(e.History, election, e.Rules.Vacancy).Check(history.Rules{Vacancy: 1}) {
			if v.Rule == history.Vacancy {
				longest = max(longest, v.To-v.From)
			}
		}
	}
	return longest
}
