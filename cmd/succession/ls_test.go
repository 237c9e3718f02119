//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
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

// What programs read is whole, however long an id is; a table has its beginning.
func TestListWithLongID(t *testing.T) {
	id := strings.Repeat("x", 600)
	url, _, _ := standing(t, id)
	if code, stdout, stderr := here("--url", url, "ls", "-o", "json"); code != 0 || !strings.Contains(stdout, `"leader":"`+id+`"`) {
		t.Errorf("exit code %d; %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := here("--url", url, "ls"); code != 0 || strings.Contains(stdout, id) || !strings.Contains(stdout, "600 bytes in all") {
		t.Errorf("exit code %d; %s%s", code, stdout, stderr)
	}
}

func TestListTakesNoArguments(t *testing.T) {
	if code, _, stderr := here("--url", localURL(t), "ls", "reports"); code != 125 || !strings.Contains(stderr, "takes no arguments") {
		t.Errorf("exit code %d; %s", code, stderr)
	}
}

// until takes what is written, and fails at the first word of these.
type until struct {
	words []string
	found string
}

func (u *until) Write(p []byte) (int, error) {
	for _, word := range u.words {
		if strings.Contains(string(p), word) {
			u.found = word
			return 0, errors.New("enough")
		}
	}
	return len(p), nil
}

// However many lines there are, ls --watch tells of all.
func TestListWatchesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, s, _ := standing(t, "web-1")
		for i := range 10_000 {
			if _, err := s.Put(t.Context(), fmt.Sprintf("many/%05d", i), backend.Header{Fence: 1}.Encode(), nil); err != nil {
				t.Fatal(err)
			}
		}
		out, ended := until{words: []string{"reports: ", "late: "}}, make(chan struct{})
		go func() {
			defer close(ended)
			execute([]string{"--url", url, "ls", "--watch"}, &out, io.Discard)
		}()
		time.Sleep(5 * time.Minute)
		if _, err := s.Join(t.Context(), "late", "web-1", ""); err != nil { // so that it ends in any case
			t.Fatal(err)
		}
		<-ended
		if out.found != "reports: " {
			t.Errorf("of the last of many lines nothing was told before %q", out.found)
		}
	})
}
