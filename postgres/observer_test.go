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

// Where sessions come and go, some are always new: it looks at more only until half of them are known to live.
func TestObserverWhereOthersComeAndGo(t *testing.T) {
	const ttl = 10 * time.Second
	var o observer
	came := 0
	answer := func(beat, fresh int) { // of those that stay, and of some that were never there
		var others []string
		for i := range narrow {
			others = append(others, fmt.Sprintf("%08d%s %d %d", i, idA[8:], beat, ttl.Milliseconds()))
		}
		for range fresh {
			came++
			others = append(others, fmt.Sprintf("%08d%s 1 %d", came, idB[8:], ttl.Milliseconds()))
		}
		o.see(clock.Now(), ttl, "1", strings.Join(others, ","))
	}
	answer(1, 0)
	clock.Suspend(ttl * 4 / 5)
	answer(1, 0)
	answer(2, narrow+1)
	if o.window() <= narrow {
		t.Errorf("it looks at %d, and most of them are new", o.window())
	}
	answer(3, narrow)
	if o.window() != narrow {
		t.Errorf("it looks at %d, and half of them live", o.window())
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
