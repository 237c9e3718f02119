package recipes

import (
	"context"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/lock"
)

// acquires has the client ask for one of n slots in the background.
func acquires(t *engine.Trial, c *engine.Client, n int) *asking {
	return asks(t, c, "Acquire", lock.NewSemaphore(c, t.Name, n, options(t, c)).Acquire)
}

// slots is the client in the line of those who hold a slot, and turns in that of those who wait for
// their turn.
func slots(t *engine.Trial, c *engine.Client) *engine.Client { return c.In(t.Name + "-slots") }
func turns(t *engine.Trial, c *engine.Client) *engine.Client { return c.In(t.Name + "-waiting") }

// fills has the clients ask for n slots one after the other. The first n hold one; the next stands
// behind them, and the others wait for its turn to be over.
func fills(t *engine.Trial, n int, cs ...*engine.Client) (all []*asking) {
	for i, c := range cs {
		all = append(all, acquires(t, c, n))
		stands(t, slots(t, c), min(i, n)+1)
		stands(t, turns(t, c), max(0, i-n+1))
		if i < n {
			all[i].holds(t.Soon())
		}
	}
	return all
}

// waits checks that the call does not get what it asks for.
func (a *asking) waits(t *engine.Trial) {
	t.Always(t.TTL/10, "more hold slots than there are", func() bool { return !a.Returned() })
}

var slotRules = []engine.Rule{{
	ID: "Lock.slots", Title: "a semaphore has so many slots",
	Text:  "Five clients take a Semaphore with two slots four times each. No three hold it at once, each gets it every time, and in the end nobody stands in its lines. Then two hold it together, and the third has to wait for either.",
	Needs: []engine.Fault{engine.Shares},
	Check: func(t *engine.Trial) {
		r := newRoom(t, 2)
		var calls []*engine.Call
		cs := t.Clients(5)
		for _, c := range cs {
			calls = append(calls, r.visits(c, 4, true, lock.NewSemaphore(c, t.Name, 2, options(t, c)).Acquire))
		}
		for _, call := range calls {
			call.Returns(t.Limit())
		}
		slots(t, cs[0]).Shows(t.Soon())
		turns(t, cs[0]).Shows(t.Soon())
		all := fills(t, 2, cs[:3]...)
		all[2].waits(t)
		unlocks(t, all[1].held)
		h := all[2].holds(t.Soon())
		t.Want("Check of the first", all[0].held.Check())
		unlocks(t, all[0].held)
		unlocks(t, h)
	},
}, {
	ID: "Lock.slots-woken", Title: "an exit from a semaphore wakes two",
	Text:  "Two of eight clients hold the two slots of a Semaphore. Three times one who holds a slot unlocks, and not the second: each time the next holds the slot soon, and another then stands behind the holders. The second, and the last two who wait for their turn, send nothing.",
	Needs: []engine.Fault{engine.Shares, engine.Requests},
	Check: func(t *engine.Trial) {
		cs := t.Clients(8)
		all := fills(t, 2, cs...)
		t.Settles(cs...)
		silent(t, []*engine.Client{cs[1], cs[6], cs[7]}, func() {
			for i, leaves := range []int{0, 2, 3} {
				unlocks(t, all[leaves].held)
				all[2+i].holds(t.Soon())
				stands(t, slots(t, cs[0]), 3)
				stands(t, turns(t, cs[0]), 5-i)
			}
			t.Pass(t.TTL/20, "in which others might be woken")
		})
		unlocks(t, all[1].held)
		unlocks(t, all[4].held)
		for _, a := range all[5:] {
			unlocks(t, a.holds(t.Soon()))
		}
		slots(t, cs[0]).Shows(t.Soon())
	},
}, {
	ID: "Lock.slots-crash", Title: "the slot of a holder that crashes is handed on",
	Text:  "Two of four clients hold the two slots of a Semaphore. One of them crashes, and so does the third, who is next. The fourth holds a slot after a crash, with a larger token, and the other holder is not disturbed.",
	Needs: []engine.Fault{engine.Shares, engine.Kill},
	Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		all := fills(t, 2, cs...)
		cs[2].Inject(engine.Kill)
		cs[0].Inject(engine.Kill)
		h := all[3].holds(t.Crash() + t.Recheck() + t.Soon())
		if h.Token() <= all[1].held.Token() {
			t.Never("the tokens are %d and then %d", all[1].held.Token(), h.Token())
		}
		t.Want("Check of the other holder", all[1].held.Check())
		unlocks(t, all[1].held)
		unlocks(t, h)
		slots(t, cs[1]).Shows(t.Soon())
	},
}, {
	ID: "Lock.slots-cut", Title: "a holder of a slot that is cut off knows before another has the slot",
	Text:  "One of the two holders of a Semaphore with two slots is cut off. The third holds a slot after a crash. Before that the context of the first has ended, and its slot stays lost when it is healed. The other holder is not disturbed.",
	Needs: []engine.Fault{engine.Shares, engine.Deadlines, engine.Cut},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		all := fills(t, 2, cs...)
		old := all[0].held
		heal := cs[0].Inject(engine.Cut)
		h := all[2].holds(t.Crash() + t.Soon())
		t.HasLost(old, fmt.Sprintf("another holds %s, and who is cut off holds %s", h, old))
		heal()
		t.Always(t.TTL/4, "a slot that was lost is held again, or another was disturbed", func() bool {
			return old.Check() != nil && all[1].held.Check() == nil
		})
		unlocks(t, all[1].held)
		unlocks(t, h)
	},
}, {
	ID: "Lock.slots-expired", Title: "a slot ends with its session",
	Text:  "The session of one of the two holders of a Semaphore with two slots is ended. Its context ends after a crash, and Check says ErrLost; the third holds the slot. The first asks again, and has to wait until one of the others unlocks; then it has a larger token than before.",
	Needs: []engine.Fault{engine.Shares, engine.Expire},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		all := fills(t, 2, cs...)
		old := all[0].held
		cs[0].Inject(engine.Expire)
		engine.Await(t, old.Context().Done(), t.Crash(), "the context of a slot whose session was ended has not ended")
		t.Want("Check of a slot whose session was ended", old.Check(), elect.ErrLost)
		h := all[2].holds(t.Crash())
		unlocks(t, old)
		again := acquires(t, cs[0], 2)
		stands(t, slots(t, cs[1]), 3)
		again.waits(t)
		unlocks(t, all[1].held)
		now := again.holds(t.Soon())
		if tokens := []uint64{old.Token(), h.Token(), now.Token()}; !slices.IsSorted(tokens) {
			t.Never("the tokens are %v", tokens)
		}
		unlocks(t, h)
		unlocks(t, now)
	},
}, {
	ID: "Lock.slots-lost-answer", Title: "a lost answer leaves nobody in the lines of a semaphore",
	Text:  "A client holds the only slot of a Semaphore, and the next waits for it. The answer is lost to the request by which a third stands in line for its turn, to that by which it stands behind the holder when its turn has come, and to that by which it unlocks. It holds the slot all the same, each step is done within the time of two crashes, and in the end the lines are empty.",
	Needs: []engine.Fault{engine.Shares, engine.LoseAnswer},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		all := fills(t, 1, cs[:2]...)
		cs[2].Live()
		cs[2].Inject(engine.LoseAnswer)
		third := acquires(t, cs[2], 1)
		t.Eventually(2*t.Crash(), "the third waits for its turn", func() bool { return len(turns(t, cs[0]).Members()) == 2 })
		t.Pass(t.Soon(), "in which it finds its place")
		cs[2].Inject(engine.LoseAnswer)
		unlocks(t, all[0].held)
		unlocks(t, all[1].holds(2*t.Crash()))
		h := third.holds(2 * t.Crash())
		cs[2].Inject(engine.LoseAnswer)
		t.Go(cs[2].Name+": Unlock", func() error { return h.Unlock(t.Ctx) }).Returns(2*t.Crash(), nil, backend.ErrUnavailable, context.DeadlineExceeded)
		slots(t, cs[0]).Settles()
		turns(t, cs[0]).Shows(engine.Now)
	},
}, {
	ID: "Lock.all", Title: "several locks are taken together",
	Text: "Two clients take the same three locks by All, which are named in opposite orders, five times each. Each gets them every time; no two hold one of them at once, and its tokens grow from holder to holder. Then one holds the second lock: TryAll of the other returns ErrLocked soon. In the end nobody stands in a line.",
	Check: func(t *engine.Trial) {
		cs, names := t.Clients(2), []string{t.Name + "-x", t.Name + "-y", t.Name + "-z"}
		var locks [2][]*lock.Mutex
		var rooms []*room
		for _, name := range names {
			rooms = append(rooms, newRoom(t, 1))
			for i, c := range cs {
				locks[i] = append(locks[i], lock.NewMutex(c, name, options(t, c)))
			}
		}
		slices.Reverse(locks[1])
		var calls []*engine.Call
		for i, c := range cs {
			calls = append(calls, t.Go(c.Name+": All", func() error {
				for range 5 {
					h, err := lock.All(t.Ctx, locks[i]...)
					if err != nil {
						return err
					}
					for j, one := range h.Locks() { // in the order of names
						rooms[j].enters(c.Name, one, false)
					}
					t.Pass(t.TTL/200, "in which it holds the locks")
					for j, one := range h.Locks() {
						rooms[j].leaves(one)
					}
					if err := h.Unlock(t.Ctx); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		for _, call := range calls {
			call.Returns(t.Limit())
		}
		h := asks(t, cs[0], "Lock", locks[0][1].Lock).holds(t.Soon())
		t.Go(cs[1].Name+": TryAll", func() error {
			_, err := lock.TryAll(t.Ctx, locks[1]...)
			return err
		}).Returns(t.Soon(), lock.ErrLocked)
		unlocks(t, h)
		for _, name := range names {
			cs[0].In(name).Shows(t.Soon())
		}
	},
}}
