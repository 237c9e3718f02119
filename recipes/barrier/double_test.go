package barrier_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
)

// round has n enter the double barrier, which must open for them.
func round(t *testing.T, c *memory.Coordinator, name string, n int) []*call {
	t.Helper()
	var all []*call
	var inside []int
	for i := range n {
		all, inside = append(all, enters(t, c, fmt.Sprint(name, i), n)), append(inside, i)
	}
	passed(t, "all have come", all, inside...)
	return all
}

// Nobody has left before all have, in whatever order they do.
func TestLeave(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}} {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			inside := round(t, c, "c", 3)
			other := round(t, c, "d", 3) // those who come later are a round of their own
			var left []*call
			for _, i := range order {
				passed(t, fmt.Sprint(len(left), " of three have called Leave"), left)
				left = append(left, leaves(t, inside[i]))
			}
			passed(t, "all have called Leave", left, 0, 1, 2)
			for _, k := range other {
				if err := k.in.Check(); err != nil {
					t.Error(err)
				}
				go k.in.Leave(t.Context())
			}
			synctest.Wait()
			empty(t, c)
			if again := leaves(t, inside[0]); !again.returned() || again.err != nil {
				t.Errorf("the second Leave has returned: %v, %v", again.returned(), again.err)
			}
		})
	}
}

// If the record has no room for another round beside those that are inside, that round waits until they have left.
func TestNoRoomForAnotherRound(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		first := round(t, c, "a", 1)
		open, others := bubble.Must[backend.Session](t)(bubble.Client(t, c, "x").Session(t.Context())), new(strings.Builder)
		r := c.Record("start-open")
		before, last, _ := strings.Cut(string(r.Value), "}")
		for i := 0; len(before)+others.Len()+len(last) < backend.MaxRecord-20; i++ { // as if so many had entered with the first
			fmt.Fprintf(others, `,"other%d":1`, i)
		}
		bubble.Must[backend.Version](t)(open.Put(t.Context(), r.Name, []byte(before+others.String()+"}"+last), nil))
		next := enters(t, c, "next", 1)
		time.Sleep(3 * bubble.TTL)
		passed(t, "there is no room", []*call{next})
		leaves(t, first[0])
		passed(t, "the first has left", []*call{next}, 0)
		leaves(t, next)
		empty(t, c)
	})
}

// Whoever dies inside has left, and whoever is lost.
func TestTheDeadHaveLeft(t *testing.T) {
	for what, dies := range map[string]func(*memory.Backend){"killed": (*memory.Backend).Kill, "expired": (*memory.Backend).Expire, "cut off": (*memory.Backend).Cut} {
		for dead := range 3 {
			t.Run(fmt.Sprint(what, " as number ", dead), func(t *testing.T) {
				bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
					all := round(t, c, "c", 3)
					var left []*call
					for i, k := range all {
						if i != dead {
							left = append(left, leaves(t, k))
						}
					}
					passed(t, "two of three have called Leave", left)
					dies(all[dead].b)
					time.Sleep(2 * bubble.TTL)
					passed(t, "the third has died", left, 0, 1)
					bubble.Want(t, all[dead].in.Check(), elect.ErrLost)
					empty(t, c)
				})
			})
		}
	}
}

// One who was lost waits for the others all the same.
func TestLeaveOfTheLost(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		all := round(t, c, "c", 3)
		all[0].b.Expire()
		<-all[0].in.Context().Done()
		left := []*call{leaves(t, all[0]), leaves(t, all[1])}
		passed(t, "one is lost, and one leaves", left)
		left = append(left, leaves(t, all[2]))
		passed(t, "the last leaves", left, 0, 1, 2)
		bubble.Want(t, all[0].in.Check(), elect.ErrLost)
		bubble.Want(t, all[1].in.Check(), elect.ErrResigned)
		empty(t, c)
	})
}

// One whose session ends while it waits for the others waits on.
func TestExpiredWhileLeaving(t *testing.T) {
	for who := range 3 {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			all := round(t, c, "c", 3)
			var left []*call
			for i, k := range all {
				if i != (who+1)%3 {
					left = append(left, leaves(t, k))
				}
			}
			all[who].b.Expire()
			time.Sleep(bubble.TTL)
			passed(t, "one is still inside", left)
			left = append(left, leaves(t, all[(who+1)%3]))
			time.Sleep(bubble.TTL)
			passed(t, "the last leaves", left, 0, 1, 2)
			empty(t, c)
		})
	}
}

// Whoever does not wait for the others any longer leaves, and they can too.
func TestLeaveEndsWithItsContext(t *testing.T) {
	for who := range 3 {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			all := round(t, c, "c", 3)
			k := leaves(t, all[who])
			passed(t, "the others are inside", []*call{k})
			k.cancel()
			ends(t, k)
			bubble.Want(t, k.err, context.Canceled)
			if n := len(c.Members("start-arrivals")); n != 2 {
				t.Errorf("%d stand in line", n)
			}
			one, two := leaves(t, all[(who+1)%3]), leaves(t, all[(who+2)%3])
			passed(t, "all have left", []*call{one, two}, 0, 1)
			empty(t, c)
		})
	}
}

// While the coordinator cannot be reached, Leave waits.
func TestLeaveWaitsForTheCoordinator(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		all := round(t, c, "c", 2)
		c.Pause()
		k := leaves(t, all[1])
		time.Sleep(bubble.TTL / 2)
		passed(t, "the coordinator is paused", []*call{k})
		c.Resume()
		time.Sleep(bubble.TTL)
		passed(t, "one is inside", []*call{k})
		last := leaves(t, all[0])
		time.Sleep(bubble.TTL)
		passed(t, "all have left", []*call{k, last}, 0, 1)
		empty(t, c)
	})
}

// An exit wakes the first of the round, and the exit of the first wakes all.
func TestLeaveWakesOne(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		const n = 20
		all := round(t, c, "c", n)
		time.Sleep(bubble.TTL / 2)
		var left []*call
		asked := c.Requests()
		for i, k := range all {
			before := c.Wakeups()
			left = append(left, leaves(t, k))
			if i < n-1 {
				// The first waits for the last, who has not left.
				if got := woken(c, before, fmt.Sprint("c", i)); i > 0 && len(got) > 1 {
					t.Errorf("the exit of number %d has woken %v", i, got)
				}
				continue
			}
			told := 0
			for s, k := range c.Wakeups().Since(before) {
				if s.Op == memory.OpGone && s.Client != "c0" {
					told += k
				}
			}
			if told > n+1 {
				t.Errorf("the last exits have woken %d: %v", told, c.Wakeups().Since(before))
			}
		}
		var whole []int
		for i := range left {
			whole = append(whole, i)
		}
		passed(t, "all have called Leave", left, whole...)
		if got := c.Requests().Since(asked); got.Total()-got.Total(memory.OpHeartbeat) > 5*n+2*n {
			t.Errorf("to leave has cost %d requests for %d: %v", got.Total(), n, got)
		}
		empty(t, c)
	})
}

// Whoever is inside writes, and not afterwards.
func TestInsideWrites(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		all := round(t, c, "c", 2)
		if _, err := all[0].in.Put(t.Context(), "start-result", []byte("7"), backend.Any); err != nil {
			t.Error(err)
		}
		left := []*call{leaves(t, all[0]), leaves(t, all[1])}
		passed(t, "all have called Leave", left, 0, 1)
		_, err := all[0].in.Put(t.Context(), "start-result", []byte("8"), backend.Any)
		bubble.Want(t, err, backend.ErrNotMember)
		bubble.Want(t, all[0].in.Check(), elect.ErrResigned)
	})
}
