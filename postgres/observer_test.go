package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend/kit/clock"
)

const idA, idB = "aaaaaaaa-0000-0000-0000-000000000000", "bbbbbbbb-0000-0000-0000-000000000000"

// An observation counts from the answer that first had the number, within one life. The clock that counts suspension
// stands in for time that passes.
func TestObserver(t *testing.T) {
	const ttl = 10 * time.Second
	var o observer
	due := func(want ...string) {
		t.Helper()
		ids, _, _ := o.due(clock.Now(), ttl)
		if slices.Sort(ids); !slices.Equal(ids, want) {
			t.Errorf("the time of %v has come, want %v", ids, want)
		}
	}
	see := func(life string, a, b int) {
		o.see(clock.Now(), ttl, life, fmt.Sprintf("%s %d 10000,%s %d 10000", idA, a, idB, b))
	}
	see("1", 1, 1)
	clock.Suspend(ttl)
	due() // not before a twentieth more
	see("1", 2, 1)
	clock.Suspend(ttl / 20)
	due(idB)
	due() // the server has been asked
	clock.Suspend(ttl / 4)
	due(idB) // and has not done it
	see("2", 2, 1)
	clock.Suspend(ttl)
	due() // in another life all begins anew
	clock.Suspend(ttl / 20)
	due(idA, idB)
	if o.over(clock.Now(), 0) || o.over(clock.Now(), 2*ttl) || !o.over(clock.Now(), ttl) {
		t.Error("an era is over when its life has been observed for the longest session time, and a twentieth more")
	}
}

// A session that leaves the window and comes back is observed since its number was first seen, unless it has another one, or that was
// long ago.
func TestObserverWhereOthersComeAndGo(t *testing.T) {
	const ttl = 10 * time.Second
	for _, tt := range []struct {
		beat int // of who comes back
		away time.Duration
		due  bool
	}{
		{1, ttl, true},
		{2, ttl, false},
		{1, lately*ttl + time.Second, false},
	} {
		o := new(observer)
		see := func(id string, beat int) { o.see(clock.Now(), ttl, "1", fmt.Sprintf("%s %d 10000", id, beat)) }
		see(idA, 1)
		clock.Suspend(ttl / 20)
		see(idB, 1)
		clock.Suspend(tt.away)
		see(idB, 2)
		if ids, _, _ := o.due(clock.Now(), ttl); ids != nil {
			t.Errorf("%+v: the time of %v has come, which are not there, or live", tt, ids)
		}
		see(idA, tt.beat)
		if ids, _, _ := o.due(clock.Now(), ttl); (ids != nil) != tt.due {
			t.Errorf("%+v: the time of %v has come", tt, ids)
		}
	}
}

// If those that it observes are ended before its own next heartbeat, as their session time is shorter, it looks at more of them too.
func TestObserverOfShorterSessions(t *testing.T) {
	const ttl = 10 * time.Second
	var o observer
	answer := func(first, beat int) {
		var others []string
		for i := range narrow {
			others = append(others, fmt.Sprintf("%08d%s %d %d", first+i, idA[8:], beat, ttl.Milliseconds()))
		}
		o.see(clock.Now(), 4*ttl, "1", strings.Join(others, ","))
	}
	answer(0, 1)
	clock.Suspend(ttl * 21 / 20)
	if ids, _, _ := o.due(clock.Now(), ttl); len(ids) != narrow {
		t.Fatalf("the time of %d has come, want %d", len(ids), narrow)
	}
	answer(narrow, 1)
	if o.window() <= narrow {
		t.Errorf("it looks at %d, and all that it looked at before were silent", o.window())
	}
	answer(narrow, 2)
	if o.window() != narrow {
		t.Errorf("it looks at %d, and all of them live", o.window())
	}
}

func FuzzParseOther(f *testing.F) {
	for _, text := range []string{idA + " 1 1000", idA + " -1 1000", idA + " 1 -1", idA + " 1 9999999999", "", ",", idA, idA + " 1 0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, beat, ttl, ok := parseOther(text)
		if ok && (len(id) != 36 || ttl <= 0 || !slices.Equal(strings.Fields(text)[:1], []string{id})) {
			t.Errorf("%q is taken for %q, %d, %v", text, id, beat, ttl)
		}
	})
}
