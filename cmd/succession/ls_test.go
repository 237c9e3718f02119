package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// ls prints all elections, one object a line with -o json, and says of none that it is in trouble that is not.
func TestList(t *testing.T) {
	url, leader := lineOf(t, "web-1", "web-2")
	checkOutput(t, []string{"--url", url, "lock", "nightly", "--id", "cron-1", "--", "true"}, 0, "")
	if err := leader.Acknowledge(t.Context()); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := here("--url", url, "ls", "-o", "json")
	type listed struct {
		Name, Kind, Leader, State string
		Token                     uint64
		Stand                     int
		Trouble                   bool
	}
	all := make(map[string]listed)
	for line := range strings.Lines(stdout) {
		var l listed
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all[l.Name] = l
	}
	if r := all["reports"]; code != 0 || r != (listed{"reports", "election", "web-1", "at work", 1, 2, false}) {
		t.Errorf("exit code %d; reports is %+v; standard error: %s", code, r, stderr)
	}
	if r := all["nightly"]; r.Trouble {
		t.Errorf("a lock that is free is in trouble: %+v", r)
	}
	if _, stdout, _ := here("--url", url, "ls"); !strings.HasPrefix(stdout, "NAME ") || !strings.Contains(stdout, "reports") {
		t.Errorf("the table is\n%s", stdout)
	}
}
