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

// TestRulesFile checks that RULES.md shows the rules as they are.
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

// rulesFile returns all rules as Markdown, for people.
func rulesFile() []byte {
	b := new(bytes.Buffer)
	b.WriteString(rulesHead)
	of := make(map[conformance.Suite]int)
	for _, r := range conformance.Rules() {
		of[r.Suite()]++
	}
	fmt.Fprintf(b, "\nThere are %d rules of the suite `driver`, which a driver keeps and elections make of it, and %d of the suite `recipes`.\n",
		of[conformance.Driver], of[conformance.Recipes])
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

What package conformance checks on a coordinator and on the backend that talks to it. The tables
are generated from the rules themselves (` + "`" + `go generate ./conformance` + "`" + `). IDs are stable.

## Words

TTL, Slack and Latency are fields of the harness: the session time, how much later than that the
coordinator ends a session, and what a healthy call takes at the very most.

| word | it means |
|---|---|
| soon | within Latency |
| at once | in five tries, spread over a TTL: each soon, and three of them within a quarter of TTL |
| after a crash | within TTL + Slack + Latency: the coordinator has ended the session of a client that is silent |
| after recovery | within 3 TTL + Slack + 3 Latency of the end of a fault: clients have found the coordinator again |
| after its slow re-check | within 1.25 TTL + Latency, and 1.25 s + Latency where sessions have no time: a candidate whose watch has died looks again |
| impossible | the coordinator cannot have a fault that the rule needs (the harness says why, in Lacks), or the backend lacks an ability, or a run cannot show there whether the rule is kept (Unfit says why); the rule was not exercised |
| not wired | the harness does not provide a fault that the rule needs; the rule was not exercised, and nothing is known |
| not judged | the machine, or the coordinator, was too busy in each of three trials, whether the rule passed in them or failed: timers of the suite's process fired late, by more than a sixteenth of the smaller of TTL and Latency, or a server beside the coordinator, or the coordinator itself, answered a plain request late (Reference), by more than an eighth of that, or ten in a row by more than a thirty-second of it each. What must never happen, such as two leaders or a token that falls, fails the rule all the same, at once |
| waived | the rule fails, and the harness says why it may; a waiver that is not needed fails the run |
| flaw | a backend, or an election, that breaks one law on purpose (conformance/internal/broken): *Shown to fail by* names those on which the rule is seen to fail |

*Needs* names faults, which a harness provides, and abilities, which a backend has: Deadlines (its
sessions end by time), Shares, Records, Pins, Items and Places (who joins an empty line is told that it is first). The suite
finds out by itself which of these it lacks. A rule that was not exercised never counts as passed.

## How to run it

    go test -run 'TestConformance$' ./etcd           every rule that can be had there, each as a subtest
    go test -run 'TestConformance$/L3' ./etcd        a group of them, or one: /L3.leave
    succession conformance --url URL                 a cluster that is in use: what needs no fault
    succession conformance --url URL --faults all    more, on the suite's own clients and elections alone

A backend of your own takes a test of ten lines; see the documentation of the package.

## What a failure means

A failure shows what went wrong, the rule, and what each client did, in order.

On a cluster, a rule that fails in L, Pin, Records, G1 to G3 or G7 means that elections there are not
safe with these settings, or that the harness says what is not true of it: two may lead, tokens fall,
or a leader does not learn of its loss. Do not rely on a leader there before the cause is known. In
the other groups it means that leadership is handed on late or to the wrong one, or that something is
left behind; Fault can mean both, and its symptom says which. Look at times first: where a rule fails
by little, Latency or Slack may be smaller than the cluster's own.

In a backend, a rule in L1 to L10, Pin or Records names the law that the driver breaks, and the groups
G, Run, Fault and those of the recipes show what that does: begin with the first that fails. A rule that fails
one time in many is a race in the driver, or in the coordinator; it is no less broken.

That all rules pass shows that none was seen to be broken, not that none can be.
`

func TestRulesAreWellFormed(t *testing.T) {
	id := regexp.MustCompile(`^(L([1-9]|10)|G([1-9]|10)|Pin|Records|Run|Choice|Lock|Queue|Barrier|Group|Value|Task|Fault)\.[a-z]+(-[a-z]+)*$`)
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
	for _, g := range []string{"L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8", "L9", "L10", "G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10"} {
		if !groups[g] {
			t.Errorf("no rule is about %s", g)
		}
	}
}
