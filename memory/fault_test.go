package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
)

// A partition shorter than the session's time delays, and changes nothing else.
func TestCutAndHeal(t *testing.T) {
	for name, cut := range map[string]func(*memory.Backend){
		"both ways": (*memory.Backend).Cut,
		"requests":  (*memory.Backend).CutRequests,
		"answers":   (*memory.Backend).CutAnswers,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				_, sa := client(t, c, "a")
				b, sb := client(t, c, "b")
				ma, mb := join(t, sa, "a"), join(t, sb, "b")
				gone := begin(func() error { return sb.Gone(t.Context(), ma) })
				cut(b)
				put := begin(func() error { _, err := sb.Put(t.Context(), "r", []byte("1"), nil); return err })
				put.blocks(t, "Put")
				if reached := c.Record("r").Version != backend.Absent; reached != (name == "answers") {
					t.Fatalf("the coordinator has written the record: %v", reached)
				}
				ok(t, "Leave", sa.Leave(t.Context(), ma))
				if name == "requests" {
					ok(t, "Gone", gone.returned(t, "Gone, as notifications pass"))
				} else {
					gone.blocks(t, "Gone")
				}
				time.Sleep(ttl/2 + 1)
				b.Heal()
				ok(t, "Put", put.returned(t, "Put after Heal"))
				ok(t, "Gone", gone.returned(t, "Gone after Heal"))
				if !ahead(t, sb, mb).First {
					t.Fatal("b is not first")
				}
				time.Sleep(5 * ttl)
				if ended(sb) {
					t.Fatalf("the session has ended: %v", sb.Err())
				}
			})
		})
	}
}

// A partition that lasts ends the session on both sides, the client's first, and
// the next session begins behind.
func TestCutForLong(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, s := client(t, c, "a")
		_, sh := client(t, c, "heir")
		m := join(t, s, "a")
		heir := join(t, sh, "heir")
		gone := begin(func() error { return sh.Gone(t.Context(), m) })

		b.Cut()
		<-s.Done()
		at := time.Now()
		again := begin(func() error { _, err := b.Session(t.Context()); return err })
		again.blocks(t, "Session while cut off")
		<-gone.done
		if gone.at.Before(at) || !ahead(t, sh, heir).First {
			t.Fatal("the heir leads before the leader's session has ended")
		}
		time.Sleep(ttl)
		is(t, "Session", again.returned(t, "Session after its bound"), backend.ErrUnavailable)
		b.Heal()
		time.Sleep(time.Second)
		n := session(t, b)
		if n == s || ended(n) {
			t.Fatal("Session continues one that has ended")
		}
		join(t, n, "a again")
		wantLine(t, c, "heir", "a again")
		if got := len(c.Sessions()); got != 2 {
			t.Fatalf("%d sessions, want 2: what the client gave up has been taken back", got)
		}
	})
}

func TestDelay(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, s := client(t, c, "a")
		b.Delay(2*time.Second, time.Second)
		began := time.Now()
		p := begin(func() error { _, err := s.Join(t.Context(), election, "a", ""); return err })
		time.Sleep(2*time.Second - 1)
		wantLine(t, c)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		wantLine(t, c, "a")
		<-p.done
		if d := p.at.Sub(began); d != 3*time.Second {
			t.Fatalf("Join took %v, want 3s", d)
		}
		// Messages do not overtake: what is sent without delay waits for what was
		// sent before.
		slow := begin(func() error { _, err := s.Get(t.Context(), "r"); return err })
		b.Delay(0, 0)
		_, err := s.Get(t.Context(), "r")
		ok(t, "Get", err)
		ok(t, "Get", slow.returned(t, "the Get sent before"))
	})
}

func TestLostAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, s := client(t, c, "a")
		ctx := t.Context()
		m := join(t, s, "a")
		gone := begin(func() error { return s.Gone(ctx, m) })

		b.LoseAnswer(memory.OpPut)
		_, err := s.Put(ctx, "r", []byte("1"), nil)
		is(t, "Put whose answer is lost", err, backend.ErrUnavailable)
		v := c.Record("r").Version
		if v == backend.Absent {
			t.Fatal("the Put has not taken effect")
		}
		b.LoseRequest(memory.OpDelete)
		is(t, "Delete whose request is lost", s.Delete(ctx, "r", nil), backend.ErrUnavailable)
		if c.Record("r").Version != v {
			t.Fatal("the Delete has taken effect")
		}
		for op, f := range map[memory.Op]func() error{
			memory.OpAhead:   func() error { _, err := s.Ahead(ctx, m); return err },
			memory.OpLine:    func() error { _, err := s.Line(ctx, election); return err },
			memory.OpGet:     func() error { _, err := s.Get(ctx, "r"); return err },
			memory.OpList:    func() error { _, err := s.List(ctx, "r"); return err },
			memory.OpReadAll: func() error { _, err := s.ReadAll(ctx, "r"); return err },
			memory.OpWatch:   func() error { _, err := s.Watch(ctx, "r", 0); return err },
		} {
			b.LoseAnswer(op)
			before := c.Requests()
			ok(t, string(op), f())
			if n := c.Requests().Since(before).Total(op); n != 2 {
				t.Errorf("%s with a lost answer: %d requests, want 2", op, n)
			}
		}
		gone.blocks(t, "Gone, over connections that broke")
		b.LoseAnswer(memory.OpGone)
		c.Remove(election, m.Key)
		ok(t, "Gone", gone.returned(t, "Gone whose answer is lost"))
		if ended(s) {
			t.Fatalf("the session has ended: %v", s.Err())
		}

		b.Expire()
		b.LoseAnswer(memory.OpOpen)
		session(t, b)
		if n := len(c.Sessions()); n != 1 {
			t.Fatalf("%d sessions after a lost opening, want 1", n)
		}
	})
}

// A client that is cut off does not hear that its connection is dead. What it has
// sent over it never arrives.
func TestBrokenWhileCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, s := client(t, c, "a")
		b.Cut()
		put := begin(func() error { return second(s.Put(t.Context(), "r", nil, nil)) })
		c.Restart()
		put.blocks(t, "Put")
		get := begin(func() error { return second(s.Get(t.Context(), "r")) })
		get.blocks(t, "Get")
		b.Heal()
		is(t, "Put", put.returned(t, "Put after Heal"), backend.ErrUnavailable)
		ok(t, "Get", get.returned(t, "Get after Heal"))
		if v := c.Record("r").Version; v != backend.Absent {
			t.Fatalf("the Put has arrived over a dead connection: version %d", v)
		}
	})
}

// A watch does not die with its connection, cut off or not.
func TestWatchOutlivesConnection(t *testing.T) {
	for name, fault := range map[string]func(*memory.Coordinator, *memory.Backend){
		"disconnect": func(_ *memory.Coordinator, b *memory.Backend) { b.Disconnect() },
		"restart":    func(c *memory.Coordinator, _ *memory.Backend) { c.Restart() },
		"restart while cut off": func(c *memory.Coordinator, b *memory.Backend) {
			b.Cut()
			c.Restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				_, sa := client(t, c, "a")
				b, sb := client(t, c, "b")
				ma := join(t, sa, "a")
				gone := begin(func() error { return sb.Gone(t.Context(), ma) })
				fault(c, b)
				gone.blocks(t, "Gone")
				ok(t, "Leave", sa.Leave(t.Context(), ma))
				b.Heal()
				ok(t, "Gone", gone.returned(t, "Gone"))
				if ended(sb) {
					t.Fatalf("the session has ended: %v", sb.Err())
				}
			})
		})
	}
}

func TestExpire(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, s := client(t, c, "a")
		join(t, s, "a")
		b.Expire()
		synctest.Wait()
		wantLine(t, c)
		if !ended(s) {
			t.Fatal("a client that can be reached has not been told")
		}
		ok(t, "Close of an ended session", s.Close(t.Context()))

		// Cut off, it hears of it when it is healed.
		s = session(t, b)
		b.Cut()
		b.Expire()
		time.Sleep(ttl / 2)
		if ended(s) {
			t.Fatal("a client that is cut off has been told")
		}
		b.Heal()
		synctest.Wait()
		is(t, "Err", s.Err(), backend.ErrSessionEnded)
	})
}

// A restart gives every session its whole time again.
func TestRestart(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		a := c.Client("a")
		s := session(t, a)
		join(t, s, "a")
		_, sb := client(t, c, "b")
		mb := join(t, sb, "b")
		a.Kill()
		time.Sleep(ttl - 1)
		c.Restart()
		time.Sleep(ttl - 1)
		wantLine(t, c, "a", "b")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		wantLine(t, c, "b")
		if !ahead(t, sb, mb).First || ended(sb) {
			t.Fatal("b is not first in a session that goes on")
		}
	})
}

// While the coordinator is paused its clocks stand still, and the clients' go on.
func TestPause(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		dead := c.Client("dead")
		join(t, session(t, dead), "dead")
		b, s := client(t, c, "a")
		join(t, s, "a")
		time.Sleep(ttl / 2)
		dead.Kill() // its newest heartbeat was at a third of the TTL: 5/6 are left
		c.Pause()
		c.Pause()
		get := begin(func() error { _, err := s.Get(t.Context(), "r"); return err })
		time.Sleep(ttl / 4)
		get.blocks(t, "Get")
		c.Resume()
		c.Resume()
		ok(t, "Get", get.returned(t, "Get after Resume"))

		c.Pause()
		<-s.Done()
		time.Sleep(5 * ttl)
		wantLine(t, c, "dead", "a")
		c.Resume()
		synctest.Wait()
		wantLine(t, c, "dead") // a's client has said that its session is over
		time.Sleep(ttl*5/6 - time.Second)
		wantLine(t, c, "dead")
		time.Sleep(time.Second)
		synctest.Wait()
		wantLine(t, c)
		session(t, b)
	})
}

// Drop deletes the path; positions keep growing.
func TestDrop(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, s := client(t, c, "a")
		m := join(t, s, "a")
		ok(t, "Pin", s.Pin(t.Context(), m, backend.Header{Fence: 5}, backend.Absent))
		p := join(t, s, "b")
		gone := begin(func() error { return s.Gone(t.Context(), m) })
		watch := begin(func() error { _, err := s.Watch(t.Context(), election, c.Record(election).Version); return err })
		c.Drop(election)
		ok(t, "Gone", gone.returned(t, "Gone"))
		ok(t, "Watch", watch.returned(t, "Watch"))
		wantLine(t, c)
		if n := join(t, s, "c"); n.Key != m.Key || n.Position <= p.Position {
			t.Fatalf("after Drop: %+v, want key %s and a position above %d", n, m.Key, p.Position)
		}
	})
}

// A client that saw more of the log than there is refuses to go on.
func TestReset(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, s := client(t, c, "a")
		for range 5 {
			join(t, s, "a")
		}
		c.Reset()
		synctest.Wait()
		is(t, "Err", s.Err(), backend.ErrSessionEnded)
		is(t, "Err", s.Err(), backend.ErrReset)
		_, err := b.Session(t.Context())
		is(t, "Session", err, backend.ErrReset)
		if n := len(c.Sessions()); n != 0 {
			t.Fatalf("%d sessions stay after an opening that was refused", n)
		}

		_, other := client(t, c, "b")
		for range 5 {
			join(t, other, "b")
		}
		// The log has caught up with what a saw, and perhaps not with what others saw.
		_, err = b.Session(t.Context())
		is(t, "Session", err, backend.ErrReset)
	})
}

// A session ends by the coordinator's clock, which need not run as fast as the
// client's: before its deadline where it is faster, and after it where it is slower.
func TestDrift(t *testing.T) {
	for _, rate := range []float64{0.8, 1, 1.25} {
		bubble(t, func(t *testing.T, c *memory.Coordinator) {
			b := c.Client("a")
			b.Drift(rate)
			session(t, b)
			ends := c.Sessions()[0].Expires
			if d, want := time.Until(ends), time.Duration(float64(ttl)/rate); d != want {
				t.Errorf("at rate %v the session ends after %v; want %v", rate, d, want)
			}
			b.Cut()
			time.Sleep(time.Until(ends) - 1)
			if len(c.Sessions()) != 1 {
				t.Errorf("at rate %v the session ended too early", rate)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if len(c.Sessions()) != 0 {
				t.Errorf("at rate %v the session has not ended", rate)
			}
		})
	}
}

// The log begins, and begins again, where it is told to.
func TestIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(&memory.Options{Index: 1000})
		for range 2 {
			_, s := client(t, c, "a")
			if m := join(t, s, "a"); m.Position != 1001 || c.Index() != 1001 {
				t.Fatalf("the first position is %d, the index %d; want 1001", m.Position, c.Index())
			}
			c.Reset()
		}
	})
}

// A connection that is severed answers nothing, whether or not the request has taken
// effect; what can be sent again waits, and is done once.
func TestSever(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, s := client(t, c, "a")
		b.Sever()
		put := begin(func() error { _, err := s.Put(t.Context(), "r", []byte("1"), nil); return err })
		is(t, "Put", put.returned(t, "Put over a connection that breaks"), backend.ErrUnavailable)
		if got := string(c.Record("r").Value); got != "1" {
			t.Errorf("the record holds %q; the first request takes effect", got)
		}
		joined := begin(func() error { _, err := s.Join(t.Context(), election, "x", ""); return err })
		time.Sleep(ttl / 10)
		joined.blocks(t, "Join")
		b.Heal()
		time.Sleep(ttl / 50)
		ok(t, "Join", joined.returned(t, "Join after Heal"))
		if n := len(c.Members(election)); n != 1 {
			t.Errorf("%d members joined, want 1", n)
		}
		b.Sever()
		<-s.Done() // no heartbeat is answered
	})
}

// A client that knows that there is no coordinator waits with what it can send again,
// until its session ends.
func TestHide(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, s := client(t, c, "a")
		m := join(t, s, "a")
		watching := begin(func() error { _, err := s.Watch(t.Context(), "r", backend.Absent); return err })
		watching.blocks(t, "Watch")
		b.Hide()
		watching.blocks(t, "Watch without a coordinator")
		joined := begin(func() error { _, err := s.Join(t.Context(), election, "x", ""); return err })
		joined.blocks(t, "Join")
		b.Heal()
		ok(t, "Join", joined.returned(t, "Join after Heal"))
		if !ahead(t, s, m).First {
			t.Error("the member has gone")
		}
		b.Hide()
		<-s.Done()
		again := begin(func() error { _, err := b.Session(t.Context()); return err })
		again.blocks(t, "Session without a coordinator")
		b.Heal()
		ok(t, "Session", again.returned(t, "Session after Heal"))
	})
}

// A snapshot brings back lines, records, sessions and the index; who saw a later one
// is told, and who did not goes on.
func TestSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, sa := client(t, c, "a")
		_, sb := client(t, c, "b")
		ma, mb := join(t, sa, "a"), join(t, sb, "b")
		_, err := sa.Put(t.Context(), "r", []byte("before"), nil)
		ok(t, "Put", err)
		restore := c.Snapshot()
		_, err = sa.Put(t.Context(), "r", []byte("after"), nil)
		ok(t, "Put", err)
		ok(t, "Leave", sa.Leave(t.Context(), ma))
		restore()
		if got := string(c.Record("r").Value); got != "before" {
			t.Errorf("the record holds %q", got)
		}
		synctest.Wait()
		is(t, "Err", sa.Err(), backend.ErrReset)
		time.Sleep(5 * ttl)
		if ended(sb) {
			t.Fatalf("the session that saw nothing later has ended: %v", sb.Err())
		}
		if !ahead(t, sb, mb).First {
			t.Error("a member of a session that was told stands still")
		}
	})
}
