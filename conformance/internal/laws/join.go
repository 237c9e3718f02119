package laws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// lateJoin returns the check of a rule: each request of a call that joins, in turn, is held back
// until end has had its member go and another client is first. ctx is that of the call, and cancel
// ends it.
func lateJoin(end func(t *engine.Trial, a *engine.Client, call *engine.Call, cancel context.CancelCauseFunc)) func(*engine.Trial) {
	return func(t *engine.Trial) {
		kinds := []func(line, client string, item backend.Member) engine.Op{
			func(line, client string, _ backend.Member) engine.Op { return engine.Join(line, client) },
		}
		if t.Can(engine.Shares) {
			kinds = append(kinds, func(line, client string, _ backend.Member) engine.Op { return engine.JoinShared(line, client) })
			if t.Can(engine.Items) {
				kinds = append(kinds, engine.Claim)
			}
		}
		var calls []*engine.Call
		for i, kind := range kinds {
			calls = append(calls, t.Go("the requests of a call that joins", func() error {
				for skip := 0; ; skip++ {
					line := fmt.Sprintf("%s-%d-%d", t.Name, i, skip)
					a, b := t.Client().In(line), t.Client().In(line)
					var item backend.Member
					if t.Can(engine.Items) {
						item = b.In(line + "-items").Append("item")
					}
					ctx, cancel := context.WithCancelCause(t.Ctx)
					defer cancel(nil)
					call, arrives, held := a.HoldsBack(ctx, kind(line, a.Name, item), skip)
					if !held {
						return nil
					}
					end(t, a, call, cancel)
					b.Shows(t.Crash())
					next := b.Do(kind(line, b.Name, item)).(backend.Joined).Member
					b.First(next, engine.Now)
					arrives()
					b.Settles(next)
				}
			}))
		}
		for _, call := range calls {
			call.Returns(t.Limit())
		}
	}
}

// lateMember is the end of a lateJoin whose call is waited for: gone has the member that it has returned go.
func lateMember(gone func(t *engine.Trial, a *engine.Client, m backend.Member)) func(*engine.Trial) {
	return lateJoin(func(t *engine.Trial, a *engine.Client, call *engine.Call, _ context.CancelCauseFunc) {
		if call.Returns(t.Crash(), nil, backend.ErrUnavailable) != nil {
			t.Pass(t.Crash(), "in which what else is on its way may come and go")
			return
		}
		gone(t, a, call.Value().(backend.Joined).Member)
	})
}

var joinRules = []engine.Rule{{
	ID: "L1.end", Title: "a member joins at the end",
	Text: "Each Join adds one member behind all others, with a key, a larger position, its line and its value, and every client sees it there.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		var want []backend.Member
		for i, c := range []*engine.Client{a, b, a, b} {
			m := c.Join(fmt.Sprintf("value-%d", i))
			switch {
			case m.Line != t.Name || m.Key == "" || m.Value != fmt.Sprintf("value-%d", i) || m.Pinned:
				t.Never("Join returned %+v", m)
			case i > 0 && m.Position <= want[i-1].Position:
				t.Never("%s joined after %s and has no larger position", engine.Show(m), engine.Show(want[i-1]))
			}
			want = append(want, m)
			c.Shows(engine.Now, want...)
		}
		a.Shows(t.Soon(), want...)
		b.Shows(t.Soon(), want...)
	},
}, {
	ID: "L1.concurrent", Title: "concurrent joins are unique",
	Text: "Five clients join five times each at once: all keys and positions differ, the line shows exactly these members in the order of positions, and each client's own positions grow.",
	Check: func(t *engine.Trial) {
		var mu sync.Mutex
		var all []backend.Member
		var joins []*engine.Call
		for _, c := range t.Clients(5) {
			joins = append(joins, t.Go("joining five times", func() error {
				var last backend.Member
				for i := range 5 {
					m := c.Join(fmt.Sprint(c.Name, i))
					if m.Position <= last.Position {
						t.Never("%s joined after %s and has no larger position", engine.Show(m), engine.Show(last))
					}
					last = m
					mu.Lock()
					all = append(all, m)
					mu.Unlock()
				}
				return nil
			}))
		}
		for _, call := range joins {
			call.Returns(t.Limit())
		}
		slices.SortFunc(all, func(a, b backend.Member) int { return int(int64(a.Position - b.Position)) })
		keys := make(map[string]bool)
		for i, m := range all {
			if keys[m.Key] || i > 0 && all[i-1].Position == m.Position {
				t.Never("two members share the key or the position of %s", engine.Show(m))
			}
			keys[m.Key] = true
		}
		t.Client().Shows(t.Soon(), all...)
	},
}, {
	ID: "L1.twice", Title: "one session may join twice",
	Text: "A session that joins a line twice has two members there, the second behind the first; each leaves by itself.",
	Check: func(t *engine.Trial) {
		a := t.Client()
		first, second := a.Join("same"), a.Join("same")
		if engine.Same(first, second) {
			t.Never("the second Join returned the first member, %s", engine.Show(first))
		}
		a.First(first, engine.Now)
		a.Behind(second, first)
		a.Leave(first)
		a.Shows(t.Soon(), second)
	},
}, {
	ID: "L1.apart", Title: "lines do not mix",
	Text: "Lines whose names begin alike have nothing in common: who joins one is not seen in the others, and is first there. All are joined before the first is looked at, and the one with the shortest name is joined last.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		var joined []backend.Member
		for _, name := range []string{t.Name + "2", t.Name + "-x", t.Name + "_", t.Name[:len(t.Name)-len(engine.Short(t.Name))] + "n_" + engine.Short(t.Name), t.Name} {
			joined = append(joined, a.In(name).Join("x"))
		}
		for _, m := range joined {
			a.First(m, engine.Now)
			b.Refresh()
			b.In(m.Line).Shows(engine.Now, m)
		}
	},
}, {
	ID: "L1.lost-answer", Title: "a lost answer leaves exactly one member",
	Text:  "Where the answer of Join is lost after it took effect, Join returns that member and there is no other of its own, also among members with the same value. Where it returns an error instead, its member is gone after a crash at the latest, while the session lives on. After five times and a crash, exactly the returned members stand.",
	Needs: []engine.Fault{engine.LoseAnswer}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		other := b.Join("same")
		mine := a.Join("same")
		want := []backend.Member{other, mine}
		for range 5 {
			joined, err := a.Loses(engine.Join(t.Name, "same"), nil, backend.ErrUnavailable)
			if err == nil {
				m := joined.(backend.Joined).Member
				if slices.ContainsFunc(want, func(o backend.Member) bool { return engine.Same(o, m) }) {
					t.Never("Join with a lost answer returned %s, which an earlier Join had returned", engine.Show(m))
				}
				want = append(want, m)
			}
			b.Shows(t.Crash(), want...)
		}
		b.Settles(want...)
	},
}, {
	ID: "L1.cancelled", Title: "a cancelled join leaves nobody",
	Text: "Sixty joins are cancelled at moments from before the call until after an answer could be there. Each returns a member or the cause of its context soon; when the session has had the time of a crash, and lives on, exactly the returned members stand.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		s := a.Live()
		var want []backend.Member
		round := a.RoundTrip()
		for i := range 60 {
			ctx, cancel := context.WithCancelCause(t.Ctx)
			timer := time.AfterFunc(time.Duration(i)*round/40, func() { cancel(engine.ErrCancelled) })
			if i == 0 {
				cancel(engine.ErrCancelled)
			}
			began := time.Now()
			m, err := s.Join(ctx, t.Name, "x", "")
			timer.Stop()
			cancel(nil)
			switch {
			case time.Since(began) > t.Soon():
				t.Fatalf("Join returned %v after it was cancelled", time.Since(began))
			case err == nil:
				want = append(want, m.Member)
			case !errors.Is(err, engine.ErrCancelled):
				t.Fatalf("cancelled Join failed with %v; want the cause of its context", err)
			}
		}
		b.Settles(want...)
		if a.Live() != s {
			t.Fatalf("the session did not live on")
		}
	},
}, {
	ID: "L1.cancelled-lost", Title: "a join cancelled after its answer was lost leaves nobody",
	Text:  "The answer of Join is lost, and its context ends at a moment from two thirds of a round trip to two round trips after the call. A member that Join returned stands soon, and leaves. Five times; when a crash has passed nobody stands in line, while the client lives on.",
	Needs: []engine.Fault{engine.LoseAnswer}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		round := a.RoundTrip()
		for i := range 5 {
			s := a.Live()
			a.Inject(engine.LoseAnswer)
			ctx, cancel := context.WithTimeoutCause(t.Ctx, time.Duration(i+2)*round/3, engine.ErrCancelled)
			m, err := s.Join(ctx, t.Name, "x", "")
			cancel()
			if err == nil {
				t.Eventually(t.Soon(), engine.Show(m.Member)+" should stand in line", func() bool { return b.Stands(m.Member) })
				a.Leave(m.Member)
			}
		}
		b.Settles()
	},
}, {
	ID: "L1.cancelled-cut", Title: "a join cancelled while cut off leaves nobody",
	Text:  "A client is cut off, joins, and cancels; Join returns the cause of its context soon. When the client is healed, within a third of TTL or after a crash, and a crash has passed since, nobody stands in line, and nobody does for one TTL more.",
	Needs: []engine.Fault{engine.Cut}, Check: func(t *engine.Trial) {
		cancelled := func(line string, long bool) {
			a, b := t.Client().In(line), t.Client().In(line)
			s := a.Live()
			heal := a.Inject(engine.Cut)
			ctx, cancel := context.WithTimeoutCause(t.Ctx, t.TTL/10, engine.ErrCancelled)
			began := time.Now()
			_, err := s.Join(ctx, line, "x", "")
			cancel()
			switch {
			case err == nil:
				t.Fatalf("Join succeeded while cut off")
			case time.Since(began) > t.TTL/10+t.Soon():
				t.Fatalf("Join returned %v after it was cancelled", time.Since(began))
			case !engine.Is(err, engine.ErrCancelled, backend.ErrUnavailable, backend.ErrSessionEnded):
				t.Fatalf("cancelled Join failed with %v; want the cause of its context", err)
			}
			if long {
				t.Pass(t.Crash(), "until the session must have ended")
			} else {
				t.Pass(t.TTL/5, "less than the session's time")
			}
			heal()
			b.Settles()
			t.Always(t.TTL, "somebody stands in line whom nobody owns", func() bool { return len(b.Members()) == 0 })
		}
		short := t.Go("the shorter of the two cuts", func() error { cancelled(t.Name+"-short", false); return nil })
		cancelled(t.Name+"-long", true)
		short.Returns(t.Limit())
	},
}, {
	ID: "L1.session-lost", Title: "no member survives a session that ended while it joined",
	Text:  "A session joins ten times in a row, and the coordinator ends it when five of them have returned. What stands in line when a crash has passed is what joined under sessions that live: nobody.",
	Needs: []engine.Fault{engine.Expire}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		s := a.Live()
		half := make(chan struct{})
		joined := t.Go("Join under the ended session", func() error {
			for i := range 10 {
				if _, err := s.Join(t.Ctx, t.Name, "x", ""); err != nil {
					return err
				}
				if i == 4 {
					close(half)
				}
			}
			return nil
		})
		engine.Await(t, half, t.Soon(), "five joins have not returned")
		a.Inject(engine.Expire)
		joined.Returns(t.Crash(), nil, backend.ErrSessionEnded, backend.ErrUnavailable)
		b.Settles()
	},
}, {
	ID: "L1.held", Title: "a request to join that comes late adds nobody, after its member has left",
	Text:  "A request of Join is held back on its way. Where Join returns a member all the same, that leaves. When another client is first, the request arrives: when a crash has passed, the other one stands alone, while the client lives on. So it is with each request that Join sends, and with JoinShared and Claim where the backend has them.",
	Needs: []engine.Fault{engine.HoldBack}, Check: lateMember(func(_ *engine.Trial, a *engine.Client, m backend.Member) { a.Leave(m) }),
}, {
	ID: "L1.held-removed", Title: "a request to join that comes late adds nobody, after a removal",
	Text:  "As L1.held, when an operator removes the member before it leaves.",
	Needs: []engine.Fault{engine.HoldBack, engine.Remove}, Check: lateMember(func(t *engine.Trial, a *engine.Client, m backend.Member) {
		t.Remove(m)
		a.Leave(m)
	}),
}, {
	ID: "L1.held-closed", Title: "a request to join that comes late adds nobody, after the end of the session",
	Text:  "As L1.held, when the session is closed and the client has opened another.",
	Needs: []engine.Fault{engine.HoldBack}, Check: lateMember(func(_ *engine.Trial, a *engine.Client, _ backend.Member) {
		a.CloseSession()
		a.Live()
	}),
}, {
	ID: "L1.held-cancelled", Title: "a request to join that comes late adds nobody, after Join was cancelled",
	Text:  "As L1.held, when Join is cancelled while its request is held back: it returns a member, which leaves, or the cause of its context, soon. In the second case another client joins when a crash has passed.",
	Needs: []engine.Fault{engine.HoldBack}, Check: lateJoin(func(t *engine.Trial, a *engine.Client, call *engine.Call, cancel context.CancelCauseFunc) {
		cancel(engine.ErrCancelled)
		if call.Returns(t.Soon(), nil, engine.ErrCancelled, backend.ErrUnavailable) != nil {
			t.Pass(t.Crash(), "in which what else is on its way may come and go")
			return
		}
		a.Leave(call.Value().(backend.Joined).Member)
	}),
}}
