//go:build linux

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/lock"
)

// ls prints all elections, one object a line with -o json, and says of none that it is in trouble that is not.
func TestList(t *testing.T) {
	url, leader := lineOf(t, "web-1", "web-2")
	b, err := succession.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	held, err := lock.NewMutex(b, "nightly", &elect.Options{ID: "cron-1", History: 20}).Lock(t.Context())
	if err == nil {
		err = held.Unlock(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
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
