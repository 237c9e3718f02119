package simulation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/succession-dev/succession/internal/history"
)

// A Report is what a run has found.
type Report struct {
	Plan       Plan
	History    *history.History
	Violations []Violation // in order of time
	Terms      int
}

func (w *world) report() *Report {
	slices.SortStableFunc(w.broken, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	return &Report{Plan: w.plan, History: w.log.History(), Violations: w.broken, Terms: len(w.terms)}
}

// String lists the plan and what was found.
func (r *Report) String() string {
	var b strings.Builder
	b.WriteString(r.Plan.String())
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "BROKEN %s\n", v)
	}
	return b.String()
}

// Save writes the plan, the history and its picture into a new folder in the
// system's folder for temporary files, and returns its name.
func (r *Report) Save() (string, error) {
	dir, err := os.MkdirTemp("", "succession-simulation-")
	if err != nil {
		return "", err
	}
	plan, err := json.MarshalIndent(r.Plan, "", "\t")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "plan.json"), plan, 0o644); err != nil {
		return "", err
	}
	var lines, picture strings.Builder
	title := "nothing was found"
	if len(r.Violations) > 0 {
		title = r.Violations[0].String()
	}
	if err := r.History.Write(&lines); err != nil {
		return "", err
	}
	if err := r.History.SVG(&picture, title, r.marks()); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "history.jsonl"), []byte(lines.String()), 0o644); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "history.svg"), []byte(picture.String()), 0o644)
}

// marks are the violations as the picture takes them.
func (r *Report) marks() []history.Violation {
	var out []history.Violation
	for _, v := range r.Violations {
		out = append(out, history.Violation{
			Rule: history.Rule(v.Law), Election: v.Election, Candidates: v.Candidates, From: v.At, To: v.At, Text: v.Text,
		})
	}
	return out
}
