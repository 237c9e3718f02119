//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/group"
	"github.com/succession-dev/succession/recipes/queue"
)

// One candidate may fill a line with texts of any length. Tables show the beginning, and say how many more there are; JSON
// has all.
func TestTablesAreBounded(t *testing.T) {
	url, c := inMemory(t)
	b := c.Client("members")
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const all = 1200
	long := strings.Repeat("\x01", 3000)
	if _, err := queue.New(b, "items", nil).Put(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if _, err := group.New(b, "present", &elect.Options{ID: "web-1", Value: long}).Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	var terms []string
	for i := range all {
		if _, err := s.Join(t.Context(), "reports", long, ""); err != nil {
			t.Fatal(err)
		}
		terms = append(terms, fmt.Sprintf(`{"id":"web-%d","token":%d,"began":"2026-01-01T00:00:00Z"}`, i, i+1))
	}
	if _, err := s.Put(t.Context(), "reports.history", []byte(`{"history":1,"terms":[`+strings.Join(terms, ",")+`]}`), nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args, says string
		longest    int // bytes
	}{
		{"line reports", "and 200 more: -o json prints all", 5 << 20},
		{"history reports", "and 200 more: they were earlier", 1 << 20},
		{"queue list items", "... (3000 bytes in all)", 5 << 10},
		{"group list present", "... (3000 bytes in all)", 5 << 10},
	} {
		args := append([]string{"--url", url}, strings.Fields(tt.args)...)
		code, out, stderr := here(args...)
		if code != 0 || len(out) > tt.longest || !strings.Contains(out, tt.says) {
			t.Errorf("%s: exit code %d, %d bytes that end with %q; %s", tt.args, code, len(out), out[max(0, len(out)-100):], stderr)
		}
		if tt.args == "history reports" && (strings.Contains(out, "web-199 ") || !strings.Contains(out, "web-1199 ")) {
			t.Error("the history does not end with the newest term")
		}
		code, out, stderr = here(append(args, "-o", "json")...)
		if code != 0 || strings.Contains(out, "bytes in all") || tt.args == "line reports" && strings.Count(out, `"token"`) != all {
			t.Errorf("%s as JSON: exit code %d, %d bytes; %s", tt.args, code, len(out), stderr)
		}
	}
}
