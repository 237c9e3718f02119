package rig

import (
	"context"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

// CheckSurvey checks that a survey of b, of which nobody else writes meanwhile, says of each name what Line, Lines and Get say:
// of lines in which several stand, or nobody with and without a header, of pinned and shared members, and of names below others.
func CheckSurvey(t *testing.T, b backend.Backend) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.Session(ctx)
	must(err)
	join := func(line, value string) backend.Member {
		t.Helper()
		j, err := s.Join(ctx, line, value, "")
		must(err)
		return j.Member
	}
	names := []string{"a", "b/c/d", "empty", "gone", "mere/record", "pinned", "shared"}
	join("a", "first of a")
	join("a", "second of a")
	join("b/c/d", "alone")
	gone := join("gone", "was here")
	must(s.Leave(ctx, gone))
	h := header.Header{Acknowledged: 7}
	_, err = s.Put(ctx, "gone", h.Encode(), nil)
	must(err)
	_, err = s.Put(ctx, "mere/record", []byte("some text"), nil)
	must(err)
	must(s.Pin(ctx, join("pinned", "stays"), backend.Header{Fence: 3}, backend.Absent))
	join("pinned", "behind")
	_, err = s.JoinShared(ctx, "shared", "reads", "")
	must(err)

	all, err := s.Survey(ctx)
	must(err)
	lines, err := s.Lines(ctx)
	must(err)
	for _, name := range names {
		check(ctx, t, s, name, all[name])
	}
	for name, st := range all {
		if st.Stand != lines[name] {
			t.Errorf("in the line %s stand %d, says the survey, and %d, say the lines", name, st.Stand, lines[name])
		}
		if st.Stand == 0 && st.Record.Version == backend.Absent {
			t.Errorf("the survey has %s, at which nothing is", name)
		}
	}
	for name, n := range lines {
		if all[name].Stand != n {
			t.Errorf("%d stand in the line %s; the survey says %+v", n, name, all[name])
		}
	}
	if st, ok := all["empty"]; ok {
		t.Errorf("the survey has a name that was never used: %+v", st)
	}
}

func check(ctx context.Context, t *testing.T, s backend.Session, name string, st backend.Standing) {
	t.Helper()
	head, err := s.Head(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Get(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	if (st.Stand > 0) != (len(head.Members) > 0) || st.Stand > 0 && st.First != head.Members[0] {
		t.Errorf("first in the line %s is %+v; the survey says %+v", name, head.Members, st)
	}
	if now := st.Record.Version; now != r.Version && (now != 0 || r.Version != backend.Absent) || string(st.Record.Value) != string(r.Value) {
		t.Errorf("the record %s is %+v; the survey says %+v", name, r, st.Record)
	}
}
