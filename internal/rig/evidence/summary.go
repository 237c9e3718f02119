//go:build linux

package evidence

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/succession-dev/succession/internal/history"
)

// A Summary is what people read of a run: lines that begin with what they are about.
type Summary struct{ strings.Builder }

// Line adds a line.
func (s *Summary) Line(what, format string, args ...any) {
	fmt.Fprintf(s, "%-20s "+format+"\n", append([]any{what}, args...)...)
}

// Violations adds how many guarantees were broken, and where.
func (s *Summary) Violations(found []history.Violation) {
	s.Line("violations", "%d", len(found))
	for _, v := range found {
		fmt.Fprintf(s, "  %v\n", v)
	}
}

// Faults returns how many there were of each kind, in words.
func (e *Evidence) Faults() string {
	kinds := make(map[string]int)
	for _, f := range e.History.Faults {
		kinds[f.Kind]++
	}
	return fmt.Sprintf("%d: %s", len(e.History.Faults), Counts(kinds))
}

// Stored returns how many writes the stores have accepted and refused.
func (e *Evidence) Stored() (accepted, refused int) {
	for _, writes := range e.Stores {
		for _, w := range writes {
			if w.Refused > 0 {
				refused++
			} else {
				accepted++
			}
		}
	}
	return accepted, refused
}

// Broken returns how often each rule was broken.
func Broken(found []history.Violation) map[history.Rule]int {
	broken := make(map[history.Rule]int)
	for _, v := range found {
		broken[v.Rule]++
	}
	return broken
}

// Counts returns how often there was what, in words.
func Counts(of map[string]int) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%s %d", k, of[k]))
	}
	return strings.Join(all, ", ")
}
