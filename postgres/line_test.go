//go:build linux

package postgres_test

import (
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/postgres"
)

// A survey says what is read line by line, in one request.
func TestSurvey(t *testing.T) {
	t.Parallel()
	b := clientOf(t, sharedPostgres(t).Addrs()[0], "postgres", "surveyed")
	rig.CheckSurvey(t, b)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := postgres.Requests(b)
	if _, err := s.Survey(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := postgres.Requests(b) - before; n > 2 { // a heartbeat may be one of them
		t.Errorf("a survey is %d requests", n)
	}
}

// A row that somebody has written is told from a gate, a seal and an item, which have no session either, and can be removed.
func TestImported(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	s := newClient(t, addr, postgres.Options{}).live(t)
	line := coordtest.Name(t)
	gate := join(t, s, line, "a gate")
	if err := s.Pin(t.Context(), gate, backend.Header{}, backend.Absent); err != nil {
		t.Fatal(err)
	}
	join(t, s, line, "a candidate")
	if _, err := s.Append(t.Context(), line, "an item"); err != nil {
		t.Fatal(err)
	}
	run(t, addr, "INSERT INTO succession.member (line, pos, value, shared) VALUES ('"+line+"', 7, 'by hand', false)")
	found, err := s.Imported(t.Context(), line)
	if want := (backend.Member{Line: line, Key: "7", Position: 7, Value: "by hand", Pinned: true}); err != nil || len(found) != 1 || found[0] != want {
		t.Fatalf("imported are %+v, %v; want %+v", found, err, want)
	}
	if err := s.Leave(t.Context(), found[0]); err != nil {
		t.Fatal(err)
	}
	if found, err = s.Imported(t.Context(), line); err != nil || len(found) != 0 {
		t.Errorf("imported are %+v, %v after it was removed", found, err)
	}
}
