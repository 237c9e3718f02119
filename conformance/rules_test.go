package conformance_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/succession-dev/succession/conformance"
)

var update = flag.Bool("update", false, "write RULES.md")

// TestRulesFile says that RULES.md shows the rules as they are.
func TestRulesFile(t *testing.T) {
	want := rulesFile()
	if *update {
		if err := os.WriteFile("RULES.md", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("RULES.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("RULES.md is not current; run: go generate ./conformance")
	}
}

// rulesFile is all rules for people, as Markdown.
func rulesFile() []byte {
	b := new(bytes.Buffer)
	b.WriteString(rulesHead)
	for _, g := range conformance.Groups() {
		fmt.Fprintf(b, "\n## %s %s\n\n| ID | Title | Rule | Needs | Shown to fail by |\n|---|---|---|---|---|\n", g.Name, g.Title)
		for _, r := range conformance.Rules() {
			if r.Group() != g.Name {
				continue
			}
			var needs []string
			for _, f := range r.Needs {
				needs = append(needs, string(f))
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", r.ID, r.Title, r.Text, strings.Join(needs, ", "), strings.Join(shownBy(r.ID), ", "))
		}
	}
	return b.Bytes()
}

const rulesHead = `# Rules

What package conformance checks, generated from its data (` + "`go generate ./conformance`" + `). IDs are stable.

TTL, Slack and Latency are fields of the harness. *Soon* is within Latency; *after a crash* is within
TTL + Slack + Latency; *after recovery* is within 3 TTL + Slack + 3 Latency; *after its slow re-check* is within
1.25 TTL + Latency, and 1.25 s + Latency where sessions have no time.

*Shown to fail by* names the flaws on which the rule is seen to fail: backends, and elections, that each break
one law on purpose (conformance/internal/broken). A rule that nothing can break would be no rule.
`

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
