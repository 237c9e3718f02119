package memory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
)

// A line of three: tokens grow, each stands behind the one before, and whoever
// leaves from the middle changes nothing for those in front.
func TestSuccession(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, sa := client(t, c, "a")
		_, sb := client(t, c, "b")
		_, sc := client(t, c, "c")
		ma, mb, mc := join(t, sa, "a"), join(t, sb, "b"), join(t, sc, "c")

		pa := ahead(t, sa, ma)
		if !pa.First || pa.Token != ma.Position || pa.Token == 0 {
			t.Fatalf("a is at %+v, want first with token %d", pa, ma.Position)
		}
		if p := ahead(t, sb, mb); p.First || p.Ahead != ma {
			t.Fatalf("b is at %+v, want behind a", p)
		}
		ok(t, "b leaves the middle", sb.Leave(t.Context(), mb))
		if p := ahead(t, sc, mc); p.First || p.Ahead != ma {
			t.Fatalf("c is at %+v, want behind a", p)
		}
		ok(t, "a leaves", sa.Leave(t.Context(), ma))
		pc := ahead(t, sc, mc)
		if !pc.First || pc.Token <= pa.Token {
			t.Fatalf("c is at %+v, want first with a token above %d", pc, pa.Token)
		}
		_, err := sa.Ahead(t.Context(), ma)
		is(t, "Ahead of a member that left", err, backend.ErrNotMember)
	})
}

// L1: whatever is lost on the way, Join adds exactly one member.
func TestJoinAddsOne(t *testing.T) {
	for name, lose := range map[string]func(*memory.Backend){
		"answer":            func(b *memory.Backend) { b.LoseAnswer(memory.OpJoin) },
		"request":           func(b *memory.Backend) { b.LoseRequest(memory.OpJoin) },
		"request, answer":   func(b *memory.Backend) { b.LoseRequest(memory.OpJoin); b.LoseAnswer(memory.OpJoin) },
		"answer, twice":     func(b *memory.Backend) { b.LoseAnswer(memory.OpJoin); b.LoseAnswer(memory.OpJoin) },
		"answer of any":     func(b *memory.Backend) { b.LoseAnswer() },
		"answer, operators": func(b *memory.Backend) { b.LoseAnswer(memory.OpJoin, memory.OpPut) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				b, s := client(t, c, "a")
				lose(b)
				m := join(t, s, "a")
				wantLine(t, c, "a")
				if got := c.Members(election)[0]; got != m {
					t.Fatalf("Join returned %+v, in line stands %+v", m, got)
				}
				// The next call forgets what was remembered for the first, and adds another.
				if n := join(t, s, "again"); n.Position <= m.Position {
					t.Fatalf("second Join: position %d, first %d", n.Position, m.Position)
				}
				wantLine(t, c, "a", "again")
			})
		})
	}
}

// L1: what the coordinator remembers of one call is not forgotten for another.
func TestJoinsInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, s := client(t, c, "a")
		b.CutAnswers()
		var joins []*pending
		for _, v := range []string{"1", "2", "3"} {
			joins = append(joins, begin(func() error { return second(s.Join(t.Context(), election, v, "")) }))
			joins[0].blocks(t, "Join without an answer")
		}
		b.Disconnect()
		b.Heal()
		for _, p := range joins {
			ok(t, "Join", p.returned(t, "Join after Heal"))
		}
		wantLine(t, c, "1", "2", "3")
	})
}

// L1: a member whose caller gave up before the answer came leaves by itself.
func TestJoinGivenUp(t *testing.T) {
	for name, fault := range map[string]func(*memory.Backend){
		"cut":         (*memory.Backend).Cut,
		"answers cut": (*memory.Backend).CutAnswers,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				b, s := client(t, c, "a")
				fault(b)
				cause := errors.New("changed my mind")
				ctx, cancel := context.WithCancelCause(t.Context())
				p := begin(func() error { _, err := s.Join(ctx, election, "a", ""); return err })
				p.blocks(t, "Join while cut off")
				cancel(cause)
				is(t, "Join", p.returned(t, "Join after its context ended"), cause)
				before := c.Index()
				b.Heal()
				if len(c.Members(election)) > 0 {
					t.Fatalf("in line stand %v, want nobody", c.Members(election))
				}
				if name == "cut" && c.Index() != before+2 {
					t.Fatalf("the log went from %d to %d: want the member to have come and gone", before, c.Index())
				}
				if ended(s) {
					t.Fatal("the session has ended")
				}
			})
		})
	}
}

// L2: a watcher that was woken sees the departure, behind any delay.
func TestAheadAfterGone(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, sa := client(t, c, "a")
		b, sb := client(t, c, "b")
		ma, mb := join(t, sa, "a"), join(t, sb, "b")
		b.Delay(300*time.Millisecond, 200*time.Millisecond)
		p := begin(func() error { return sb.Gone(t.Context(), ma) })
		time.Sleep(time.Second)
		p.blocks(t, "Gone while a stands")

		left := time.Now()
		ok(t, "Leave", sa.Leave(t.Context(), ma))
		time.Sleep(200 * time.Millisecond)
		ok(t, "Gone", p.returned(t, "Gone a notification after a left"))
		if !ahead(t, sb, mb).First {
			t.Fatal("b is woken and not first")
		}
		if d := time.Since(left); d != 700*time.Millisecond {
			t.Fatalf("from departure to leadership: %v, want one notification and one read, 700ms", d)
		}
	})
}

// L3: one exit wakes the one behind, at the same cost however long the line.
func TestNoHerd(t *testing.T) {
	for _, n := range []int{3, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				ss := make([]backend.Session, n)
				ms := make([]backend.Member, n)
				for i := range ss {
					_, ss[i] = client(t, c, fmt.Sprint(i))
					ms[i] = join(t, ss[i], fmt.Sprint(i))
				}
				var waits []*pending
				for i := 1; i < n; i++ {
					waits = append(waits, begin(func() error { return ss[i].Gone(t.Context(), ms[i-1]) }))
				}
				woken, asked := c.Wakeups(), c.Requests()
				ok(t, "Leave", ss[0].Leave(t.Context(), ms[0]))
				ok(t, "Gone", waits[0].returned(t, "Gone of the heir"))
				for _, w := range waits[1:] {
					w.blocks(t, "Gone further down the line")
				}
				ahead(t, ss[1], ms[1])
				if w := c.Wakeups().Since(woken); w.Total() != 1 || w.Of("1", memory.OpGone) != 1 {
					t.Errorf("woken were %v, want client 1 once", w)
				}
				if r := c.Requests().Since(asked); r.Total() != 2 {
					t.Errorf("requests of the handover: %v, want one leave, one ahead", r)
				}
			})
		})
	}
}

// L3: asking again for the same member piles nothing up, and an idle wait costs
// heartbeats alone.
func TestGoneAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, sa := client(t, c, "a")
		_, sb := client(t, c, "b")
		ma := join(t, sa, "a")
		before := c.Requests()
		for range 100 {
			is(t, "Gone", sb.Gone(timeout(t, ttl), ma), context.DeadlineExceeded)
		}
		r := c.Requests().Since(before)
		if r.Of("b") != r.Of("b", memory.OpHeartbeat)+1 {
			t.Fatalf("requests of 100 waits: %v, want one beside the heartbeats", r)
		}
		if beats := r.Of("b", memory.OpHeartbeat); beats < 290 || beats > 301 {
			t.Fatalf("%d heartbeats in 100 session times, want three in each", beats)
		}
		ok(t, "Leave", sa.Leave(t.Context(), ma))
		ok(t, "Gone of one who has gone", sb.Gone(t.Context(), ma))
	})
}

// L3, G7: a leader learns that an operator removed its own member.
func TestGoneOfOwn(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, s := client(t, c, "a")
		m := join(t, s, "a")
		p := begin(func() error { return s.Gone(t.Context(), m) })
		p.blocks(t, "Gone")
		if !c.Remove(election, m.Key) || c.Remove(election, m.Key) {
			t.Fatal("Remove does not say whether there was a member")
		}
		ok(t, "Gone", p.returned(t, "Gone of a removed member"))
		_, err := s.Ahead(t.Context(), m)
		is(t, "Ahead", err, backend.ErrNotMember)
	})
}

// L4: Leave removes m alone, once or twice, with or without the answer.
func TestLeave(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, sa := client(t, c, "a")
		_, sb := client(t, c, "b")
		old := join(t, sa, "old")
		c.Drop(election)
		ma, mb := join(t, sa, "a"), join(t, sb, "b")
		if ma.Key != old.Key || ma.Position <= old.Position {
			t.Fatalf("after Drop stands %+v, want the key of %+v at a larger position", ma, old)
		}
		ok(t, "Leave of one whose key is taken", sa.Leave(t.Context(), old))
		wantLine(t, c, "a", "b")
		is(t, "Leave of another's member", sa.Leave(t.Context(), mb), backend.ErrDenied)
		b.LoseAnswer(memory.OpLeave)
		ok(t, "Leave", sa.Leave(t.Context(), ma))
		ok(t, "Leave again", sa.Leave(t.Context(), ma))
		wantLine(t, c, "b")
	})
}

// L5: when a session ends every call fails with ErrSessionEnded, those in flight
// and those to come, and nothing that was queued under it happens.
func TestSessionEnds(t *testing.T) {
	for name, end := range map[string]func(*memory.Coordinator, *memory.Backend, backend.Session){
		"closed":  func(_ *memory.Coordinator, b *memory.Backend, s backend.Session) { go s.Close(context.Background()) },
		"silence": func(*memory.Coordinator, *memory.Backend, backend.Session) { time.Sleep(ttl) },
		"killed":  func(_ *memory.Coordinator, b *memory.Backend, _ backend.Session) { b.Kill() },
		"expired": func(_ *memory.Coordinator, b *memory.Backend, _ backend.Session) { b.Expire(); b.Heal() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				b, s := client(t, c, "a")
				m := join(t, s, "a")
				b.Cut()
				ctx := t.Context()
				calls := map[string]func() error{
					"Join":      func() error { _, err := s.Join(ctx, election, "ghost", ""); return err },
					"Ahead":     func() error { _, err := s.Ahead(ctx, m); return err },
					"Gone":      func() error { return s.Gone(ctx, m) },
					"Leave":     func() error { return s.Leave(ctx, m) },
					"Pin":       func() error { return s.Pin(ctx, m, backend.Header{}, backend.Absent) },
					"Line":      func() error { _, err := s.Line(ctx, election); return err },
					"WatchLine": func() error { return second(s.WatchLine(ctx, "other", backend.Line{})) },
					"Append":    func() error { return second(s.Append(ctx, election, "late")) },
					"Remove":    func() error { return s.Remove(ctx, m, m) },
					"Get":       func() error { _, err := s.Get(ctx, "r"); return err },
					"Put":       func() error { _, err := s.Put(ctx, "r", nil, nil); return err },
					"Delete":    func() error { return s.Delete(ctx, "r", nil) },
					"List":      func() error { _, err := s.List(ctx, "r"); return err },
					"Watch":     func() error { _, err := s.Watch(ctx, "r", backend.Absent); return err },
				}
				flying := map[string]*pending{}
				for name, f := range calls {
					flying[name] = begin(f)
					flying[name].blocks(t, name+" while cut off")
				}
				end(c, b, s)
				synctest.Wait()
				if !ended(s) {
					t.Fatal("the session has not ended")
				}
				is(t, "Err", s.Err(), backend.ErrSessionEnded)
				for name, f := range calls {
					is(t, name+" in flight", flying[name].returned(t, name), backend.ErrSessionEnded)
					is(t, name+" afterwards", f(), backend.ErrSessionEnded)
				}
				b.Heal()
				time.Sleep(ttl + 1)
				wantLine(t, c)
				if v := c.Record("r").Version; v != backend.Absent {
					t.Fatalf("a Put that failed has happened: version %d", v)
				}
			})
		})
	}
}

// L6: the deadline counts from sending, and is never later than the coordinator's
// end of the session.
func TestDeadline(t *testing.T) {
	for _, slack := range []time.Duration{0, 4 * time.Second} {
		for _, d := range []struct{ request, answer time.Duration }{
			{0, 0}, {time.Second, 0}, {0, time.Second}, {2 * time.Second, 2 * time.Second},
		} {
			t.Run(fmt.Sprint(slack, d), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := memory.New(&memory.Options{TTL: ttl, Slack: slack})
					b := c.Client("a")
					defer b.Close()
					b.Delay(d.request, d.answer)
					s := session(t, b)
					join(t, s, "a")
					for range 100 { // heartbeats keep it ahead
						time.Sleep(time.Second)
						if !s.Deadline().After(time.Now()) {
							t.Fatal("the deadline of a healthy session has passed")
						}
						if e := c.Sessions()[0].Expires; s.Deadline().After(e) {
							t.Fatalf("the deadline %v is after the coordinator's end %v", s.Deadline(), e)
						}
					}
					b.Cut()
					deadline, end := s.Deadline(), c.Sessions()[0].Expires
					<-s.Done()
					if !time.Now().Equal(deadline) {
						t.Fatalf("the session ended %v after its deadline", time.Since(deadline))
					}
					if slack > 0 && len(c.Sessions()) != 1 {
						t.Fatal("the coordinator has ended the session before its time")
					}
					time.Sleep(time.Until(end) + 1)
					if n := len(c.Sessions()); n != 0 {
						t.Fatalf("the coordinator keeps %d sessions after the end", n)
					}
				})
			})
		}
	}
}

// L6: an answer that comes at the deadline, or after it, revives nothing.
func TestLateAnswer(t *testing.T) {
	for name, delay := range map[string]time.Duration{
		"at the deadline":  ttl - ttl/3, // the first heartbeat is sent after a third
		"a second later":   ttl - ttl/3 + time.Second,
		"a long time late": 2 * ttl,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				b, s := client(t, c, "a")
				b.Delay(0, delay)
				deadline := s.Deadline()
				<-s.Done()
				if !time.Now().Equal(deadline) {
					t.Fatalf("the session ended %v after its deadline", time.Since(deadline))
				}
				time.Sleep(3 * ttl)
				if s.Err() == nil || s.Deadline().After(deadline) {
					t.Fatal("a late answer has revived the session")
				}
			})
		})
	}
}

// L8, and the names of elections.
func TestChecksArguments(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, s := client(t, c, "a")
		ctx := t.Context()
		for what, err := range map[string]error{
			"Join name":  second(s.Join(ctx, "/x", "", "")),
			"Join value": second(s.Join(ctx, "x", strings.Repeat("x", backend.MaxValue+1), "")),
			"Join text":  second(s.Join(ctx, "x", "\xff", "")),
			"Line":       second(s.Line(ctx, "")),
			"WatchLine":  second(s.WatchLine(ctx, "..", backend.Line{})),
			"Get":        second(s.Get(ctx, "a//b")),
			"Put name":   second(s.Put(ctx, "a b", nil, nil)),
			"Put value":  second(s.Put(ctx, "x", make([]byte, backend.MaxRecord+1), nil)),
			"Delete":     s.Delete(ctx, "", nil),
			"List":       second(s.List(ctx, "")),
			"Watch":      second(s.Watch(ctx, "", 0)),
		} {
			is(t, what, err, backend.ErrInvalid)
		}
		if c.Requests().Total() != c.Requests().Total(memory.OpOpen) {
			t.Fatalf("invalid calls were sent: %v", c.Requests())
		}
	})
}

func second[T any](_ T, err error) error { return err }
