//go:build linux

package chaos

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/chaos/store"
	"github.com/succession-dev/succession/internal/rig/chaos/worker"
)

// A Report is what came of a run.
type Report struct {
	Options    Options
	Evidence   Evidence
	Violations []history.Violation
	Missing    []string // the kinds of faults that could have occurred, and have not
}

// report reads what the run has left behind, judges it, and writes the history, its
// picture and the summary.
func (a *arena) report(records map[string]string) (*Report, error) {
	r := &Report{Options: a.o, Evidence: Evidence{
		Stores:  make(map[string][]store.Write),
		Records: records,
		Rules:   history.Rules{Vacancy: a.c.vacancy()},
	}}
	var err error
	if r.Evidence.History, err = readHistories(a.o.Dir, a.elections); err != nil {
		return nil, err
	}
	if r.Evidence.Ops, err = readOps(a.o.Dir); err != nil {
		return nil, err
	}
	for _, election := range a.elections {
		if r.Evidence.Stores[election], err = store.Read(filepath.Join(a.o.Dir, "store", election)); err != nil {
			return nil, err
		}
	}
	r.Missing = a.missing(r.Evidence.History)
	r.Violations = append(a.found, r.Evidence.Check()...)
	if err := r.write(); err != nil {
		return nil, err
	}
	return r, nil
}

// readHistories returns the notes of all workers and of the nemesis as one history.
func readHistories(dir string, elections []string) (*history.History, error) {
	const suffix = ".history.jsonl"
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	var all []*history.History
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		h, err := history.Read(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		acts, err := worker.ReadActs(strings.TrimSuffix(name, suffix)+".acts", elections)
		if err != nil {
			return nil, err
		}
		all = append(all, h, ends(h, acts))
	}
	return history.Merge(all...), nil
}

// ends returns the ends of the terms of which a process that was killed has noted none:
// its last acts.
func ends(h *history.History, acts map[string]worker.Act) *history.History {
	out := new(history.History)
	for _, e := range h.Events {
		act := acts[e.Election]
		if e.Kind != history.Won || e.Token != act.Token {
			continue
		}
		noted := slices.ContainsFunc(h.Events, func(o history.Event) bool {
			return (o.Kind == history.CheckFailed || o.Kind == history.Resigned) && o.Election == e.Election && o.Token == e.Token
		})
		if !noted {
			e.Kind, e.At, e.Led, e.Deadline, e.Why = history.Ended, act.At, act.At, act.Deadline, "its process was killed"
			out.Events = append(out.Events, e)
		}
	}
	return out
}

// readOps returns the writes of all workers.
func readOps(dir string) ([]worker.Op, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.ops.jsonl"))
	if err != nil {
		return nil, err
	}
	var all []worker.Op
	for _, name := range files {
		ops, err := worker.ReadOps(name)
		if err != nil {
			return nil, err
		}
		all = append(all, ops...)
	}
	return all, nil
}

// write writes history.jsonl, timeline.svg and summary.txt.
func (r *Report) write() error {
	h := r.Evidence.History
	jsonl, err := os.Create(filepath.Join(r.Options.Dir, "history.jsonl"))
	if err != nil {
		return err
	}
	defer jsonl.Close()
	if err := h.Write(jsonl); err != nil {
		return err
	}
	svg, err := os.Create(filepath.Join(r.Options.Dir, "timeline.svg"))
	if err != nil {
		return err
	}
	defer svg.Close()
	title := fmt.Sprintf("%s, %v of faults, seed %d", r.Options.On, r.Options.For, r.Options.Seed)
	if err := h.SVG(svg, title, r.Violations); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Options.Dir, "summary.txt"), []byte(r.String()), 0o644)
}

// String returns the summary.
func (r *Report) String() string {
	e := &r.Evidence
	h := e.History
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-20s "+format+"\n", append([]any{what}, args...)...)
	}
	line("run", "%s, %v of faults, seed %d", r.Options.On, r.Options.For, r.Options.Seed)
	terms := 0
	for _, election := range h.Elections() {
		terms += len(h.Terms(election))
	}
	line("terms", "%d in %d elections", terms, len(h.Elections()))

	faults := make(map[string]int)
	for _, f := range h.Faults {
		faults[f.Kind]++
	}
	line("faults", "%d: %s", len(h.Faults), counts(faults))
	if len(r.Missing) > 0 {
		line("", "not one of: %s", strings.Join(r.Missing, ", "))
	}
	longest, at := vacancy(h)
	line("longest vacancy", "%v at %v", longest.Round(time.Millisecond), at.Round(time.Millisecond))
	line("after the last fault", "%v, of %v", e.wait().Round(time.Millisecond), e.Rules.Vacancy)

	outcomes := make(map[worker.Outcome]int)
	for _, op := range e.Ops {
		if op.Target != worker.File {
			outcomes[op.Outcome]++
		}
	}
	line("guarded writes", "%d ok, %d refused, %d with another version, %d unknown",
		outcomes[worker.OK], outcomes[worker.Refused], outcomes[worker.Changed], outcomes[worker.Unknown])
	accepted, refused := 0, 0
	for _, s := range e.Stores {
		for _, w := range s {
			if w.Refused > 0 {
				refused++
			} else {
				accepted++
			}
		}
	}
	line("writes to the store", "%d accepted, %d refused", accepted, refused)

	broken := make(map[history.Rule]int)
	for _, v := range r.Violations {
		broken[v.Rule]++
	}
	line("overlaps", "%d", broken[history.Overlap])
	line("violations", "%d", len(r.Violations))
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "  %v\n", v)
	}
	return b.String()
}

// counts returns how often there was what.
func counts(of map[string]int) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%s %d", k, of[k]))
	}
	return strings.Join(all, ", ")
}

// vacancy returns the longest time in which nobody led an election, after it was won
// first and before it was left for good, and when it began.
func vacancy(h *history.History) (longest, at time.Duration) {
	for _, election := range h.Elections() {
		end := time.Duration(never)
		for _, t := range h.Terms(election) {
			if d := t.From - end; d > longest {
				longest, at = d, end
			}
			if end == never {
				end = t.LedUntil()
			}
			end = max(end, t.LedUntil())
		}
	}
	return longest, at
}

// wait returns the longest vacancy as it is counted: where a candidate stood in line that
// no fault touched, from the last fault that may have prolonged it.
func (e *Evidence) wait() (longest time.Duration) {
	for _, election := range e.History.Elections() {
		for _, v := range withOnsets(e.History, election, e.Rules.Vacancy).Check(history.Rules{Vacancy: 1}) {
			if v.Rule == history.Vacancy {
				longest = max(longest, v.To-v.From)
			}
		}
	}
	return longest
}
