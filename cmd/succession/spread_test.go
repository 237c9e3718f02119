//go:build linux

package main

import (
	"strings"
	"syscall"
	"testing"
)

// Elections on two clusters, at the shell: where they live, a move of one that is led, and what is
// refused.
func TestSpread(t *testing.T) {
	t.Parallel()
	east := localURL(t)
	west := localURL(t)
	url := "spread:?to=east=" + east + "&to=west=" + west
	do := func(want int, said string, args ...string) {
		t.Helper()
		code, stdout, stderr := here(append([]string{"--url", url}, args...)...)
		if code != want || !strings.Contains(stdout+stderr, said) {
			t.Errorf("%v: exit code %d, want %d; it said %q and %q, want %q", args, code, want, stdout, stderr, said)
		}
	}
	do(0, "nowhere yet; it falls to west", "spread", "where", "reports")
	do(0, "", "spread", "put", "reports", "east")
	do(0, "east\n", "spread", "where", "reports")
	do(1, "it lives on east", "spread", "put", "reports", "west")

	web1 := start(t, "--url", url, "run", "--restart", "--id", "web-1", "reports", "--", "sleep", "1000")
	first := web1.event("elected").Token
	web2 := start(t, "--url", url, "run", "--restart", "--id", "web-2", "reports", "--", "sleep", "1000")
	web2.event("waiting")
	do(0, "web-1", "leader", "reports")
	do(0, "", "set", "reports-position", "7", "--url", east)
	do(1, "reports-position", "spread", "move", "reports", "west")
	do(0, "", "spread", "move", "reports", "west", "--carry", "reports-position")
	do(0, "east, and is being moved to west", "spread", "where", "reports")
	do(0, `{"at":"east","to":"west","falls_to":"west"}`, "spread", "where", "reports", "-o", "json")
	do(0, "web-2", "leader", "reports")
	do(1, "too late", "spread", "abort", "reports")
	do(0, "", "spread", "finish", "reports")
	do(0, "west\n", "spread", "where", "reports")
	do(0, "web-2", "leader", "reports")
	web2.signal(syscall.SIGTERM)
	if again := web1.event("elected"); again.Token <= first {
		t.Errorf("web-1 leads with token %d, after %d", again.Token, first)
	}

	do(0, "", "delete", ".spread", "--url", west) // as if it had lost all
	do(125, "lost the record", "spread", "where", "reports")
	do(1, "the founders are [east west]", "spread", "replace", "north")
	do(0, "", "spread", "replace", "west")
	do(0, "west\n", "spread", "where", "reports")

	do(125, "several clusters have elections alone", "get", "reports-position")
	do(125, "name several clusters", "--url", localURL(t), "spread", "where", "reports")
	do(125, "want move NAME CLUSTER", "spread", "move", "reports")
	do(125, `"north" is not there`, "spread", "move", "reports", "north")
	do(125, "say what", "spread")
}
