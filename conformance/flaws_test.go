package conformance_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/internal/broken"
)

// allFlaws returns the flaws of TestMatrix and of TestMatrixOfProcesses.
func allFlaws() []broken.Flaw { return slices.Concat(broken.Flaws, broken.ProcessFlaws) }

// shownBy returns the names of the flaws that a rule is to catch.
func shownBy(id string) (names []string) {
	for _, flaw := range allFlaws() {
		if slices.Contains(strings.Fields(flaw.Must), id) {
			names = append(names, flaw.Name)
		}
	}
	return names
}

// Every rule has a flaw that it must catch, and every flaw names only rules that exist.
func TestMatrixIsWhole(t *testing.T) {
	known := make(map[string]bool)
	for _, r := range conformance.Rules() {
		known[r.ID], known[r.Group()] = true, true
		if len(shownBy(r.ID)) == 0 {
			t.Errorf("no flaw shows that %s can fail", r.ID)
		}
	}
	names := make(map[string]bool)
	for _, flaw := range allFlaws() {
		if names[flaw.Name] || flaw.Name == "" || flaw.Breaks == "" || flaw.Must == "" {
			t.Errorf("flaw %q has no name, law or rule, or is there twice", flaw.Name)
		}
		names[flaw.Name] = true
		for _, id := range strings.Fields(flaw.Must + " " + flaw.May) {
			if !known[id] {
				t.Errorf("flaw %q names %s, which is no rule", flaw.Name, id)
			}
		}
		for _, id := range strings.Fields(flaw.Must) {
			if !strings.Contains(id, ".") {
				t.Errorf("flaw %q must be caught by the group %s; name the rules", flaw.Name, id)
			}
		}
	}
}
