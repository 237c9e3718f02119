package conformance_test

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/succession-dev/succession/conformance"
)

var update = flag.Bool("update", false, "write RULES.md")

// TestRulesFile says that RULES.md shows the rules as they are.
func TestRulesFile(t *testing.T) {
	var want bytes.Buffer
	if err := conformance.WriteRules(&want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("RULES.md", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("RULES.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("RULES.md is not current; run: go generate ./conformance")
	}
}

func TestRulesAreWellFormed(t *testing.T) {
	id := regexp.MustCompile(`^(L[1-8]|G([1-9]|10)|Pin|Records|Run|Fault)\.[a-z]+(-[a-z]+)*$`)
	seen := make(map[string]bool)
	groups := make(map[string]bool)
	for _, r := range conformance.Rules() {
		if !id.MatchString(r.ID) || seen[r.ID] {
			t.Errorf("ID %q is malformed, or there twice", r.ID)
		}
		seen[r.ID] = true
		groups[r.Group()] = true
		if r.Title == "" || len(r.Text) < 40 || bytes.ContainsAny([]byte(r.Title+r.Text), "|\n") {
			t.Errorf("%s: title and text cannot stand in a table: %q, %q", r.ID, r.Title, r.Text)
		}
	}
	for _, g := range []string{"L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8", "G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10"} {
		if !groups[g] {
			t.Errorf("no rule is about %s", g)
		}
	}
}
