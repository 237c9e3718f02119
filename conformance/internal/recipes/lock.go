package recipes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/lock"
)

// A manner is one way to ask for a lock.
type manner func(context.Context) (*lock.Held, error)

// take asks for a lock. What it gets is unlocked at the end of the rule, if not before.
func (m manner) take(t *engine.Trial) (*lock.Held, error) {
	h, err := m(t.Ctx)
	if err == nil {
		t.Cleanup(func() { h.Unlock(context.Background()) })
	}
	return h, err
}

// A room is what the locks of a rule are for. It knows who holds one, and who may be in it
// together.
type room struct {
	t     *engine.Trial
	limit int // how many may share it

	mu     sync.Mutex
	inside map[*lock.Held]bool // whether it shares
	last   uint64              // the token of who came last
}

func newRoom(t *engine.Trial, limit int) *room {
	return &room{t: t, limit: limit, inside: make(map[*lock.Held]bool)}
}

// enters checks that h may be in the room together with all who are inside, and have not lost
// their locks.
func (r *room) enters(who string, h *lock.Held, shares bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Log(who, "holds %s", h)
	together := 1
	for other, sharing := range r.inside {
		switch {
		case other.Check() != nil || h.Check() != nil:
		case !sharing || !shares:
			r.t.Never("%s holds %s together with %s", who, h, other)
		default:
			together++
		}
	}
	if together > r.limit {
		r.t.Never("%d hold %s at once; %d may", together, h, r.limit)
	}
	if !shares && h.Token() <= r.last && h.Check() == nil {
		r.t.Never("%s holds %s, after one with token %d", who, h, r.last)
	}
	r.last = max(r.last, h.Token())
	r.inside[h] = shares
}

func (r *room) leaves(h *lock.Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inside, h)
}

// options are those of the locks of a client.
func options(t *engine.Trial, c *engine.Client) *elect.Options {
	return &elect.Options{ID: c.Name, ResignTimeout: t.TTL/2 + t.Soon()}
}

// visits has the client ask for the lock so many times, be in the room for a moment each time,
// and unlock.
func (r *room) visits(c *engine.Client, times int, shares bool, m manner) *engine.Call {
	return r.t.Go(fmt.Sprintf("%s: %d locks", c.Name, times), func() error {
		for range times {
			h, err := m.take(r.t)
			if err != nil {
				return err
			}
			r.enters(c.Name, h, shares)
			r.t.Pass(r.t.TTL/200, "in which it holds the lock")
			r.leaves(h)
			if err := h.Unlock(r.t.Ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// asking is a call that asks for a lock.
type asking struct {
	*engine.Call
	held *lock.Held
}

// asks has the client ask for the lock in the background.
func asks(t *engine.Trial, c *engine.Client, what string, m manner) *asking {
	a := new(asking)
	a.Call = t.Go(c.Name+": "+what, func() (err error) {
		a.held, err = m.take(t)
		return err
	})
	return a
}

// holds waits until the lock is held.
func (a *asking) holds(d time.Duration) *lock.Held {
	a.Returns(d)
	return a.held
}

// stands waits until so many stand in the client's election.
func stands(t *engine.Trial, c *engine.Client, n int) {
	t.Eventually(t.Soon(), fmt.Sprintf("%d stand in line", n), func() bool { return len(c.Members()) == n })
}

// silent checks that the clients, who have to wait on, send nothing while f runs but for heartbeats,
// a second look, and what a watch asks that its coordinator ends although nothing has changed.
func silent(t *engine.Trial, cs []*engine.Client, f func()) { quiet(t, cs, 1, f) }

// quiet is silent for clients that wait for several things. They look at each of them again, about
// once in a TTL.
func quiet(t *engine.Trial, cs []*engine.Client, waits int64, f func()) {
	if noise := noise(t, cs, waits, f); noise != "" {
		t.Fatalf("%s", noise)
	}
}

// noise says which of the clients has sent more than quiet allows while f ran; it is empty if none has.
func noise(t *engine.Trial, cs []*engine.Client, waits int64, f func()) string {
	before := make([]int64, len(cs))
	for i, c := range cs {
		before[i] = c.Requests()
	}
	began := time.Now()
	f()
	limit := int64(time.Duration(9+3*waits)*time.Since(began)/t.TTL) + 3*waits
	for i, c := range cs {
		if n := c.Requests() - before[i]; n > limit {
			return fmt.Sprintf("%s, who has to wait on, has sent %d requests in %v", c.Name, n, time.Since(began))
		}
	}
	return ""
}

// unlocks unlocks, which must succeed soon.
func unlocks(t *engine.Trial, h *lock.Held) {
	t.Want("Unlock of "+h.String(), h.Unlock(t.Ctx))
}

var lockRules = []engine.Rule{{
	ID: "Lock.alone", Title: "one holds a lock at a time",
	Text: "Four clients take a Mutex six times each. No two hold it at once, each gets it every time, tokens grow from holder to holder, and in the end the line is empty.",
	Check: func(t *engine.Trial) {
		r := newRoom(t, 1)
		var calls []*engine.Call
		cs := t.Clients(4)
		for _, c := range cs {
			calls = append(calls, r.visits(c, 6, false, lock.NewMutex(c, c.Election, options(t, c)).Lock))
		}
		for _, call := range calls {
			call.Returns(t.Limit())
		}
		cs[0].Shows(t.Soon())
	},
}, {
	ID: "Lock.try", Title: "TryLock does not wait for others",
	Text: "TryLock of a lock that another holds returns ErrLocked soon, leaves nobody in line, and does not disturb the holder; when that has unlocked, TryLock holds the lock soon.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		h := asks(t, a, "TryLock", lock.NewMutex(a, a.Election, options(t, a)).TryLock).holds(t.Soon())
		m := lock.NewMutex(b, b.Election, options(t, b))
		b.Shows(t.Soon(), h.Term().Member())
		asks(t, b, "TryLock", m.TryLock).Returns(t.Soon(), lock.ErrLocked)
		b.Shows(t.Soon(), h.Term().Member())
		t.Want("Check of the holder", h.Check())
		unlocks(t, h)
		unlocks(t, asks(t, b, "TryLock", m.TryLock).holds(t.Soon()))
		a.Shows(t.Soon())
	},
}, {
	ID: "Lock.cost", Title: "a lock that nobody else wants takes few requests",
	Text:  "Ten times a client locks a Mutex that nobody else wants, and unlocks it. The fewest requests that it takes for that are at most as many as the harness says that it takes on this coordinator (Costs), or six: to join, to see what stands there and to watch it, and to leave.",
	Needs: []engine.Fault{engine.Requests},
	Most:  6,
	Check: func(t *engine.Trial) {
		c := t.Client()
		m := lock.NewMutex(c, c.Election, options(t, c))
		fewest := int64(math.MaxInt64) // a heartbeat may fall into one
		for range 10 {
			before := c.Requests()
			asks(t, c, "Lock", m.Lock).holds(t.Soon()).Unlock(t.Ctx)
			fewest = min(fewest, c.Requests()-before)
		}
		if fewest > t.Most() {
			t.Fatalf("to lock what nobody else wants, and to unlock it, takes %d requests; want at most %d", fewest, t.Most())
		}
	},
}, {
	ID: "Lock.together", Title: "readers hold a lock together, writers alone",
	Text:  "Three readers and two writers take an RWMutex five times each. No writer holds it together with anybody, each gets it every time, and in the end the line is empty. Then two readers hold it at once.",
	Needs: []engine.Fault{engine.Shares},
	Check: func(t *engine.Trial) {
		r := newRoom(t, 5)
		var calls []*engine.Call
		cs := t.Clients(5)
		for i, c := range cs {
			m := lock.NewRWMutex(c, c.Election, options(t, c))
			if i < 3 {
				calls = append(calls, r.visits(c, 5, true, m.RLock))
			} else {
				calls = append(calls, r.visits(c, 5, false, m.Lock))
			}
		}
		for _, call := range calls {
			call.Returns(t.Limit())
		}
		cs[0].Shows(t.Soon())
		one := asks(t, cs[0], "RLock", lock.NewRWMutex(cs[0], t.Name, options(t, cs[0])).RLock).holds(t.Soon())
		two := asks(t, cs[1], "RLock", lock.NewRWMutex(cs[1], t.Name, options(t, cs[1])).RLock).holds(t.Soon())
		if err := errors.Join(one.Check(), two.Check()); err != nil {
			t.Fatalf("two readers hold the lock together, and one says: %v", err)
		}
		unlocks(t, one)
		unlocks(t, two)
	},
}, {
	ID: "Lock.woken", Title: "an exit wakes those who can go on",
	Text:  "In the line writer, reader, reader, writer, reader, the first unlocks: the two readers hold the lock soon, and the two behind them send nothing.",
	Needs: []engine.Fault{engine.Shares, engine.Requests},
	Check: func(t *engine.Trial) {
		cs := t.Clients(5)
		var line []*asking
		for i, c := range cs {
			m := lock.NewRWMutex(c, c.Election, options(t, c))
			take := m.RLock
			if i == 0 || i == 3 {
				take = m.Lock
			}
			line = append(line, asks(t, c, "lock", take))
			stands(t, cs[0], i+1)
		}
		first := line[0].holds(t.Soon())
		t.Settles(cs...)
		var one, two *lock.Held
		silent(t, cs[3:], func() {
			unlocks(t, first)
			one, two = line[1].holds(t.Soon()), line[2].holds(t.Soon())
		})
		unlocks(t, one)
		unlocks(t, two)
		unlocks(t, line[3].holds(t.Soon()))
		unlocks(t, line[4].holds(t.Soon()))
	},
}, {
	ID: "Lock.crash", Title: "a lock is handed on when its holder crashes",
	Text:  "The holder of a Mutex crashes, and so does the first of two who wait for it. The second holds the lock after a crash, with a larger token.",
	Needs: []engine.Fault{engine.Kill},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		var line []*asking
		for i, c := range cs {
			line = append(line, asks(t, c, "Lock", lock.NewMutex(c, c.Election, options(t, c)).Lock))
			stands(t, cs[2], i+1)
		}
		first := line[0].holds(t.Soon())
		cs[1].Inject(engine.Kill)
		cs[0].Inject(engine.Kill)
		last := line[2].holds(t.Crash() + t.Recheck() + t.Soon())
		if last.Token() <= first.Token() {
			t.Never("the tokens are %d and then %d", first.Token(), last.Token())
		}
		unlocks(t, last)
	},
}, {
	ID: "Lock.cut", Title: "a reader that is cut off knows before the writer holds the lock",
	Text:  "One of two readers that hold an RWMutex is cut off, and the other unlocks. The writer behind them holds the lock after a crash. Before that the reader's context has ended, and the reader's lock stays lost when it is healed.",
	Needs: []engine.Fault{engine.Shares, engine.Deadlines, engine.Cut},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		var locks []*lock.RWMutex
		for _, c := range cs {
			locks = append(locks, lock.NewRWMutex(c, c.Election, options(t, c)))
		}
		one := asks(t, cs[0], "RLock", locks[0].RLock).holds(t.Soon())
		two := asks(t, cs[1], "RLock", locks[1].RLock).holds(t.Soon())
		writer := asks(t, cs[2], "Lock", locks[2].Lock)
		stands(t, cs[2], 3)
		heal := cs[1].Inject(engine.Cut)
		unlocks(t, one)
		h := writer.holds(t.Crash())
		t.HasLost(two, fmt.Sprintf("the writer holds %s, and the reader that is cut off holds %s", h, two))
		heal()
		t.Always(t.TTL/4, "a lock that was lost is held again", func() bool { return two.Check() != nil })
		unlocks(t, h)
	},
}, {
	ID: "Lock.expired", Title: "a lock ends with its session",
	Text:  "The session of the holder of a Mutex ends. Its context ends soon with a LostError, the next one holds the lock soon, and the old holder gets it again, behind that, with a larger token.",
	Needs: []engine.Fault{engine.Expire},
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		m := lock.NewMutex(a, a.Election, options(t, a))
		first := asks(t, a, "Lock", m.Lock).holds(t.Soon())
		waiting := asks(t, b, "Lock", lock.NewMutex(b, b.Election, options(t, b)).Lock)
		stands(t, b, 2)
		a.Inject(engine.Expire)
		engine.Await(t, first.Context().Done(), t.Crash(), "the context of the lock has not ended")
		t.Want("Check of a lock whose session has ended", first.Check(), elect.ErrLost)
		second := waiting.holds(t.Crash())
		unlocks(t, first)
		again := asks(t, a, "Lock", m.Lock)
		t.Always(t.TTL/10, "two hold the lock", func() bool { return !again.Returned() })
		unlocks(t, second)
		third := again.holds(t.Soon())
		if !slices.IsSorted([]uint64{first.Token(), second.Token(), third.Token()}) {
			t.Never("the tokens are %d, %d and %d", first.Token(), second.Token(), third.Token())
		}
		unlocks(t, third)
	},
}, {
	ID: "Lock.lost-answer", Title: "a lost answer leaves nobody in line",
	Text:  "The answer is lost to the request by which a reader joins the line of an RWMutex, and to that by which it leaves. The lock is held and unlocked all the same, within the time of a crash each, and in the end the line is empty.",
	Needs: []engine.Fault{engine.Shares, engine.LoseAnswer},
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		a.Live()
		a.Inject(engine.LoseAnswer)
		h := asks(t, a, "RLock", lock.NewRWMutex(a, a.Election, options(t, a)).RLock).holds(2 * t.Crash())
		a.Inject(engine.LoseAnswer)
		t.Go(a.Name+": Unlock", func() error { return h.Unlock(t.Ctx) }).Returns(2*t.Crash(), nil, backend.ErrUnavailable, context.DeadlineExceeded)
		b.Settles()
	},
}}
