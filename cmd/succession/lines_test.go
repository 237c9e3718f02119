//go:build linux

package main

import (
	"errors"
	"maps"
	"testing"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// listsLines checks that the coordinator says which lines there are: on whatever level, also of
// items and of shared members, and neither of records nor of what has gone.
func listsLines(t *testing.T, url string) {
	name := coordtest.Name(t)
	b, err := succession.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines := func() map[string]int {
		t.Helper()
		all, err := s.Lines(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(all, func(line string, _ int) bool { return len(line) < len(name) || line[:len(name)] != name })
		return all
	}
	if got := lines(); len(got) > 0 {
		t.Errorf("before anybody joined there are %v", got)
	}
	left, err := s.Join(t.Context(), name+"/left", "a", "")
	_, err2 := s.Join(t.Context(), name+"-top", "a", "")
	_, err3 := s.Join(t.Context(), name+"/deep/er", "b", "")
	_, err4 := s.Join(t.Context(), name+"/deep/er", "c", "")
	_, err5 := s.JoinShared(t.Context(), name+"/shared", "d", "")
	_, err6 := s.Append(t.Context(), name+"/items", "e")
	_, err7 := s.Put(t.Context(), name+"-top", backend.Header{Fence: 7}.Encode(), nil)
	_, err8 := s.Put(t.Context(), name+"/record", []byte("x"), nil)
	if err := errors.Join(err, err2, err3, err4, err5, err6, err7, err8, s.Leave(t.Context(), left.Member)); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{name + "-top": 1, name + "/deep/er": 2, name + "/shared": 1, name + "/items": 1}
	if got := lines(); !maps.Equal(got, want) {
		t.Errorf("the lines are %v; want %v", got, want)
	}
}

func TestLinesOfThisMachine(t *testing.T) {
	t.Parallel()
	listsLines(t, localURL(t))
}
