package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

var joinRules = []Rule{{
	ID:    "L1.end",
	Title: "a member joins at the end",
	Text:  "Each Join adds one member behind all others, with a key, a larger position, its line and its value, and every client sees it there.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		var want []backend.Member
		for i, c := range []*client{a, b, a, b} {
			m := c.join(fmt.Sprintf("value-%d", i))
			switch {
			case m.Line != t.line || m.Key == "" || m.Value != fmt.Sprintf("value-%d", i) || m.Pinned:
				t.fatalf("Join returned %+v", m)
			case i > 0 && m.Position <= want[i-1].Position:
				t.fatalf("%s joined after %s and has no larger position", show(m), show(want[i-1]))
			}
			want = append(want, m)
			c.showsNow(want...)
		}
		a.shows(want...)
		b.shows(want...)
	},
}, {
	ID:    "L1.concurrent",
	Title: "concurrent joins are unique",
	Text:  "Five clients join five times each at once: all keys and positions differ, the line shows exactly these members in the order of positions, and each client's own positions grow.",
	check: func(t *trial) {
		var mu sync.Mutex
		var all []backend.Member
		var wg sync.WaitGroup
		for _, c := range t.opened(5) {
			wg.Go(func() {
				t.guarded(func() {
					var last backend.Member
					for i := range 5 {
						m := c.join(fmt.Sprint(c.name, i))
						if m.Position <= last.Position {
							t.fatalf("%s joined after %s and has no larger position", show(m), show(last))
						}
						last = m
						mu.Lock()
						all = append(all, m)
						mu.Unlock()
					}
				})
			})
		}
		wg.Wait()
		slices.SortFunc(all, func(a, b backend.Member) int { return int(int64(a.Position - b.Position)) })
		keys := make(map[string]bool)
		for i, m := range all {
			if keys[m.Key] || i > 0 && all[i-1].Position == m.Position {
				t.fatalf("two members share the key or the position of %s", show(m))
			}
			keys[m.Key] = true
		}
		t.client().shows(all...)
	},
}, {
	ID:    "L1.twice",
	Title: "one session may join twice",
	Text:  "A session that joins a line twice has two members there, the second behind the first; each leaves by itself.",
	check: func(t *trial) {
		a := t.client()
		first, second := a.join("same"), a.join("same")
		if same(first, second) {
			t.fatalf("the second Join returned the first member, %s", show(first))
		}
		a.leads(first)
		a.behind(second, first)
		a.leave(first)
		a.shows(second)
	},
}, {
	ID:    "L1.apart",
	Title: "lines do not mix",
	Text:  "Lines whose names begin alike have nothing in common: who joins one is not seen in the others, and is first there. All are joined before the first is looked at, and the one with the shortest name is joined last.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		var joined []backend.Member
		for _, name := range []string{t.line + "2", t.line + "-x", t.line + "_", t.line[:len(t.line)-len(short(t.line))] + "n_" + short(t.line), t.line} {
			joined = append(joined, a.joinLine(name, "x"))
		}
		for _, m := range joined {
			a.leads(m)
			b.do("Line", func(ctx context.Context, s backend.Session) error {
				l, err := s.Line(ctx, m.Line)
				if err == nil && !sameLine(l.Members, []backend.Member{m}) {
					t.fatalf("line %s should be %s, and is %s", m.Line, show(m), showLine(l.Members))
				}
				return err
			})
		}
	},
}, {
	ID:    "L1.lost-answer",
	Title: "a lost answer leaves exactly one member",
	Text:  "Where the answer of Join is lost after it took effect, Join returns that member and there is no other of its own, also among members with the same value. Where it returns an error instead, its member is gone after a crash at the latest, while the session lives on. After five times and a crash, exactly the returned members stand.",
	Needs: []Fault{LoseAnswer},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		other := b.join("same")
		mine := a.join("same")
		want := []backend.Member{other, mine}
		for range 5 {
			a.loseAnswer()
			ctx, cancel := t.within(t.h.crash())
			m, err := a.live().Join(ctx, t.line, "same")
			cancel()
			if err != nil && !is(err, backend.ErrUnavailable) {
				t.fatalf("Join with a lost answer failed with %v; it may fail only with ErrUnavailable", err)
			}
			if err == nil {
				if slices.ContainsFunc(want, func(o backend.Member) bool { return same(o, m) }) {
					t.fatalf("Join with a lost answer returned %s, which an earlier Join had returned", show(m))
				}
				want = append(want, m)
			}
			b.showsWithin(t.h.crash(), want...)
		}
		b.settles(want...)
	},
}, {
	ID:    "L1.cancelled",
	Title: "a cancelled join leaves nobody",
	Text:  "Sixty joins are cancelled at moments from before the call until after an answer could be there. Each returns a member or the cause of its context soon; when the session has had the time of a crash, and lives on, exactly the returned members stand.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		s := a.live()
		var want []backend.Member
		round := t.roundTrip(a)
		for i := range 60 {
			ctx, cancel := context.WithCancelCause(t.ctx)
			timer := time.AfterFunc(time.Duration(i)*round/40, func() { cancel(errCancelled) })
			if i == 0 {
				cancel(errCancelled)
			}
			began := time.Now()
			m, err := s.Join(ctx, t.line, "x")
			timer.Stop()
			cancel(nil)
			switch {
			case time.Since(began) > t.h.soon():
				t.fatalf("Join returned %v after it was cancelled", time.Since(began))
			case err == nil:
				want = append(want, m)
			case !errors.Is(err, errCancelled):
				t.fatalf("cancelled Join failed with %v; want the cause of its context", err)
			}
		}
		b.settles(want...)
		if a.live() != s {
			t.fatalf("the session did not live on")
		}
	},
}, {
	ID:    "L1.cancelled-lost",
	Title: "a join cancelled after its answer was lost leaves nobody",
	Text:  "The answer of Join is lost, and its context ends at a moment from two thirds of a round trip to two round trips after the call. A member that Join returned stands soon, and leaves. Five times; when a crash has passed nobody stands in line, while the client lives on.",
	Needs: []Fault{LoseAnswer},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		round := t.roundTrip(a)
		for i := range 5 {
			s := a.live()
			a.loseAnswer()
			ctx, cancel := context.WithTimeoutCause(t.ctx, time.Duration(i+2)*round/3, errCancelled)
			m, err := s.Join(ctx, t.line, "x")
			cancel()
			if err == nil {
				t.poll(t.h.soon(), show(m)+" should stand in line", func() bool { return b.stands(m) })
				a.leave(m)
			}
		}
		b.settles()
	},
}, {
	ID:    "L1.cancelled-cut",
	Title: "a join cancelled while cut off leaves nobody",
	Text:  "A client is cut off, joins, and cancels; Join returns the cause of its context soon. When the client is healed, within a third of TTL or after a crash, and a crash has passed since, nobody stands in line, and nobody does for one TTL more.",
	Needs: []Fault{Cut},
	check: func(t *trial) {
		cancelled := func(line string, long bool) {
			a, b := t.client().in(line), t.client().in(line)
			s := a.live()
			heal := a.cut()
			ctx, cancel := context.WithTimeoutCause(t.ctx, t.h.TTL/10, errCancelled)
			began := time.Now()
			_, err := s.Join(ctx, line, "x")
			cancel()
			switch {
			case err == nil:
				t.fatalf("Join succeeded while cut off")
			case time.Since(began) > t.h.TTL/10+t.h.soon():
				t.fatalf("Join returned %v after it was cancelled", time.Since(began))
			case !is(err, errCancelled, backend.ErrUnavailable, backend.ErrSessionEnded):
				t.fatalf("cancelled Join failed with %v; want the cause of its context", err)
			}
			if long {
				t.pass(t.h.crash(), "until the session must have ended")
			} else {
				t.pass(t.h.TTL/5, "less than the session's time")
			}
			heal()
			b.settles()
			t.steady(t.h.TTL, "somebody stands in line whom nobody owns", func() bool { return len(b.members()) == 0 })
		}
		short := t.async(func() error { cancelled(t.line+"-short", false); return nil })
		cancelled(t.line+"-long", true)
		await(t, short, t.h.limit(), "the shorter of the two cuts has not been judged")
	},
}, {
	ID:    "L1.session-lost",
	Title: "no member survives a session that ended while it joined",
	Text:  "A session joins ten times in a row, and the coordinator ends it when five of them have returned. What stands in line when a crash has passed is what joined under sessions that live: nobody.",
	Needs: []Fault{Expire},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		s := a.live()
		half := make(chan struct{})
		joined := t.async(func() error {
			for i := range 10 {
				if _, err := s.Join(t.ctx, t.line, "x"); err != nil {
					return err
				}
				if i == 4 {
					close(half)
				}
			}
			return nil
		})
		await(t, half, t.h.soon(), "five joins have not returned")
		a.expire()
		if err := await(t, joined, t.h.crash(), "Join under the ended session has not returned"); err != nil && !is(err, backend.ErrSessionEnded, backend.ErrUnavailable) {
			t.fatalf("Join under an ended session failed with %v; want ErrSessionEnded", err)
		}
		b.settles()
	},
}}

// errCancelled is the cause that rules cancel with: the drivers must return it.
var errCancelled = errors.New("cancelled by the rule")

// roundTrip measures a round trip of the client.
func (t *trial) roundTrip(c *client) time.Duration {
	c.lineNow()
	began := time.Now()
	c.lineNow()
	return max(time.Since(began), 100*time.Microsecond)
}

// settles lets a crash pass, in which all that was on its way has come and what nobody
// keeps has gone, and then checks that the line is exactly want. A line that is as it
// should be proves nothing before: somebody may still arrive.
func (c *client) settles(want ...backend.Member) {
	c.t.pass(c.t.h.crash(), "in which what is on its way may come and go")
	c.showsNow(want...)
}

// pass lets time pass, which is what the rule is about.
func (t *trial) pass(d time.Duration, why string) {
	t.log.add("suite", "waits %v: %s", d.Round(time.Millisecond), why)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.ctx.Done():
		t.fatalf("waiting %v, %s: %v", d, why, context.Cause(t.ctx))
	}
}
