package kit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

func TestPlaceOf(t *testing.T) {
	m, seal := backend.Member{Key: "m", Position: 7}, backend.Member{Key: "seal", Position: 3, Pinned: true}
	sealed := backend.Header{Sealed: "etcd://elsewhere"}
	for _, tt := range []struct {
		name  string
		m     backend.Member
		ahead *backend.Member
		h     backend.Header
		want  backend.Place
		err   error
	}{
		{name: "first", m: m, h: backend.Header{Fence: 10}, want: backend.Place{First: true, Token: 17, Header: backend.Header{Fence: 10}}},
		{name: "behind", m: m, ahead: &seal, h: backend.Header{Fence: 10}, want: backend.Place{Ahead: seal, Header: backend.Header{Fence: 10}}},
		{name: "behind a seal", m: m, ahead: &seal, h: sealed, err: backend.ErrSealed},
		{name: "where the seal was removed", m: m, h: sealed, err: backend.ErrSealed},
		{name: "the seal", m: seal, h: sealed, want: backend.Place{First: true, Token: 3, Header: sealed}},
		{name: "a pinned one behind the seal", m: backend.Member{Position: 9, Pinned: true}, ahead: &seal, h: sealed, err: backend.ErrSealed},
		{name: "first without a token", m: m, h: backend.Header{Fence: backend.MaxFence + 1}, err: backend.ErrHeader},
		{name: "behind without a token", m: m, ahead: &seal, h: backend.Header{Fence: backend.MaxFence + 1}, want: backend.Place{Ahead: seal, Header: backend.Header{Fence: backend.MaxFence + 1}}},
	} {
		got, err := kit.PlaceOf(tt.m, tt.ahead, tt.h)
		if got != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: %+v, %v; want %+v, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
}

// The watch of a member that is first begins after a moment, unless it has ended by then. One that waits is watched at once.
func TestBeforeWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		cancel(why)
		for _, tt := range []struct {
			ctx   context.Context
			first bool
			want  error
			waits bool
		}{{t.Context(), true, nil, true}, {t.Context(), false, nil, false}, {ended, true, why, false}} {
			began := time.Now()
			err := kit.BeforeWatch(tt.ctx, &backend.Place{First: tt.first})
			if waited := time.Since(began); err != tt.want || (waited > 0) != tt.waits || waited > 100*time.Millisecond {
				t.Errorf("first: %t; it returned %v after %v", tt.first, err, waited)
			}
		}
	})
}

// Shared members pass each other; nobody passes one that is not shared.
func TestAwaited(t *testing.T) {
	for line, want := range map[string]int{ // the last one asks; s is shared
		"x": -1, "s": -1, "xx": 0, "xs": 0, "sx": 0, "ss": -1, "xss": 0, "ssx": 1, "sxs": 1, "sss": -1, "sxsss": 1, "xxsx": 2,
	} {
		if got := kit.Awaited(len(line)-1, func(i int) bool { return line[i] == 's' }); got != want {
			t.Errorf("in %s the last one waits for %d, want %d", line, got, want)
		}
	}
}

func item(n int) backend.Member {
	return backend.Member{Line: "jobs-items", Key: fmt.Sprint("i", n), Position: uint64(n), Pinned: true}
}

func claim(of backend.Member, position int) backend.Member {
	return backend.Member{Line: "jobs-claims", Position: uint64(position), Shared: true, Value: "web-1\n" + kit.Subject(of)}
}

func TestFirstFree(t *testing.T) {
	notAnItem, notAClaim := item(3), claim(item(1), 8)
	notAnItem.Pinned, notAClaim.Shared = false, false
	for _, tt := range []struct {
		name          string
		items, claims []backend.Member
		want          int // 0 for none
		foreign       bool
	}{
		{name: "none"},
		{name: "one", items: []backend.Member{item(1), item(2)}, want: 1},
		{name: "the second", items: []backend.Member{item(1), item(2)}, claims: []backend.Member{claim(item(1), 5)}, want: 2},
		{name: "all are taken", items: []backend.Member{item(1), item(2)}, claims: []backend.Member{claim(item(2), 5), claim(item(1), 6)}},
		{name: "behind what is no item", items: []backend.Member{notAnItem, item(4)}, foreign: true},
		{name: "in front of what is no item", items: []backend.Member{item(1), notAnItem}, want: 1},
		{name: "beside what is no claim", items: []backend.Member{item(1), item(2)}, claims: []backend.Member{notAClaim}, foreign: true},
		{name: "beside a claim without an item", items: []backend.Member{item(1)}, claims: []backend.Member{{Shared: true, Value: "web-1"}}, foreign: true},
	} {
		got, free, err := kit.FirstFree(tt.items, tt.claims)
		if free != (tt.want != 0) || free && got != item(tt.want) || (err != nil) != tt.foreign || tt.foreign && !errors.Is(err, backend.ErrForeign) {
			t.Errorf("%s: %+v, %t, %v", tt.name, got, free, err)
		}
	}
}

// Of several claims for an item the first one holds.
func TestClaimedBefore(t *testing.T) {
	unshared := claim(item(1), 2)
	unshared.Shared = false
	claims := []backend.Member{unshared, claim(item(1), 5), claim(item(2), 6), claim(item(1), 7)}
	for at, want := range map[int]bool{4: false, 5: false, 6: true, 7: true} {
		if got := kit.ClaimedBefore(claim(item(1), at), claims); got != want {
			t.Errorf("before %d: %t, want %t", at, got, want)
		}
	}
	if kit.ClaimedBefore(claim(item(3), 9), claims) {
		t.Error("an item that nobody claims")
	}
}

func TestCheckClaim(t *testing.T) {
	of := item(1)
	bad := of
	bad.Line = "jobs//items"
	for _, tt := range []struct {
		name, value string
		item        backend.Member
		ok          bool
	}{
		{"a claim", "web-1\n" + kit.Subject(of), of, true},
		{"of another", "web-1\n" + kit.Subject(item(2)), of, false},
		{"without a newline", "web-1 " + kit.Subject(of), of, false},
		{"of what can be no item", "web-1\n" + kit.Subject(bad), bad, false},
		{"that is too long", strings.Repeat("x", backend.MaxValue) + "\n" + kit.Subject(of), of, false},
	} {
		err := kit.CheckClaim(tt.value, tt.item)
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// Who asks to be told of the end is told once: at once if the session has ended, and not if it has stopped asking.
func TestEnder(t *testing.T) {
	var e kit.Ender
	var told []string
	tell := func(name string) func(error) {
		return func(why error) { told = append(told, fmt.Sprint(name, ": ", why)) }
	}
	e.OnEnd(tell("a"))
	e.OnEnd(tell("stopped"))()
	e.TellEnd(errRan)
	e.TellEnd(errors.New("again"))
	stop := e.OnEnd(tell("late"))
	stop()
	if got, want := strings.Join(told, ", "), "a: it ran, late: it ran"; got != want {
		t.Errorf("told: %s; want %s", got, want)
	}
}

// Joins wait as long as a session still has to remove thirty-two members, and no fewer.
func TestBacklog(t *testing.T) {
	for abandoned, want := range map[int]time.Duration{31: 0, 32: time.Second - time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := newCoordinator(0, 0)
			defer c.sessions.Close()
			s := open(t, c).Session.(*session)
			joins := kit.Joins[int]{Go: s.Go, Ended: s.Ended, Backlog: new(kit.Backlog), Undo: func(int) error { return nil }}
			abandon(t, &joins, abandoned)
			began := time.Now()
			if _, err := joins.Do(t.Context(), func() (int, func(), error) { return 0, nil, nil }); err != nil {
				t.Error(err)
			}
			if d := time.Since(began); d != want {
				t.Errorf("behind %d others a join waits for %v, want %v", abandoned, d, want)
			}
		})
	}
}

// Members are the same if both key and position are.
func TestSameMembers(t *testing.T) {
	line := func(key string, position uint64) backend.Line {
		return backend.Line{Members: []backend.Member{{Key: key, Position: position}}}
	}
	for _, o := range []backend.Line{line("b", 1), line("a", 2), {}} {
		if kit.SameMembers(line("a", 1), o) {
			t.Errorf("a at 1 is taken for %+v", o.Members)
		}
	}
	if !kit.SameMembers(line("a", 1), line("a", 1)) {
		t.Error("a at 1 is not the same as itself")
	}
}
