package recipes

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/recipes/record"
)

// numberOf is the client's handle on the record of the rule, which has a number.
func numberOf(t *engine.Trial, c *engine.Client) *record.Value[int] {
	return record.New(c, t.Name+"-value", record.JSON[int]())
}

// A reading is a call of Follow in the background, for a number that never falls.
type reading struct {
	t    *engine.Trial
	name string

	mu   sync.Mutex
	seen []int // 0 is no record
}

// reads has the client follow the record.
func reads(t *engine.Trial, c *engine.Client) *reading {
	r := &reading{t: t, name: c.Name}
	t.Go(c.Name+": Follow", func() error {
		largest := 0
		for e, err := range numberOf(t, c).Follow(t.Ctx) {
			if err != nil {
				if t.Ctx.Err() == nil {
					t.Fatalf("%s: Follow has ended: %v", c.Name, err)
				}
				return err
			}
			t.Log(c.Name, "follows: %d at version %d", e.Value, e.Version)
			if e.Exists() && e.Value < largest {
				t.Never("%s: Follow shows %d after %d", c.Name, e.Value, largest)
			}
			largest = max(largest, e.Value)
			r.mu.Lock()
			r.seen = append(r.seen, e.Value)
			r.mu.Unlock()
		}
		return nil
	})
	return r
}

// states returns what it has seen.
func (r *reading) states() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// sees waits until the newest state is this one; 0 is no record.
func (r *reading) sees(d time.Duration, n int) {
	r.t.Eventually(d, fmt.Sprintf("%s: Follow shows %d", r.name, n), func() bool {
		seen := r.states()
		return len(seen) > 0 && seen[len(seen)-1] == n
	})
}

// writes has the client write the record, which must succeed soon.
func writes(t *engine.Trial, c *engine.Client, n int) (at backend.Version) {
	at, err := numberOf(t, c).Set(t.Ctx, n)
	t.Want(c.Name+": Set", err)
	return at
}

var valueRules = []engine.Rule{{
	ID: "Value.fresh", Title: "Get shows what has been written",
	Text:  "Three clients set a value in turn, forty times. As soon as Set has returned, Get of the next one returns just that.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		for i := range 40 {
			a, b := cs[i%3], cs[(i+1)%3]
			at := writes(t, a, i)
			e, err := numberOf(t, b).Get(t.Ctx)
			t.Want(b.Name+": Get", err)
			if e.Value != i || e.Version != at {
				t.Never("%s has set %d at version %d, and then %s gets %d at version %d", a.Name, i, at, b.Name, e.Value, e.Version)
			}
		}
	},
}, {
	ID: "Value.follow", Title: "whoever follows a value sees each state that lasts",
	Text:  "One client follows a record, and two others write it: by Set, by CompareAndSet at the version that it has, and by Update; they delete it, and write it again. Each state is seen soon, once and in this order, and the absence of the record at once. A CompareAndSet at another version fails with ErrVersion, and is not seen.",
	Needs: []engine.Fault{engine.Records},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		a, b, r := numberOf(t, cs[0]), numberOf(t, cs[1]), reads(t, cs[2])
		r.sees(t.Soon(), 0)
		at := writes(t, cs[0], 1)
		r.sees(t.Soon(), 1)
		now, err := b.CompareAndSet(t.Ctx, at, 2)
		t.Want("CompareAndSet", err)
		r.sees(t.Soon(), 2)
		_, err = a.CompareAndSet(t.Ctx, at, 9)
		t.Want("CompareAndSet at an earlier version", err, backend.ErrVersion)
		e, err := a.Update(t.Ctx, func(n int) (int, error) { return n + 1, nil })
		t.Want("Update", err)
		if e.Value != 3 || e.Version == now { // if an answer was lost, it may have added two
			t.Fatalf("Update has added one to 2 at version %d, and says %d at version %d", now, e.Value, e.Version)
		}
		r.sees(t.Soon(), 3)
		t.Want("Delete", b.Delete(t.Ctx, e.Version))
		r.sees(t.Soon(), 0)
		writes(t, cs[1], 4)
		r.sees(t.Soon(), 4)
		t.Pass(t.TTL/10, "in which a state might be seen again")
		if got, want := r.states(), []int{0, 1, 2, 3, 0, 4}; !slices.Equal(got, want) {
			t.Fatalf("Follow has shown %v; want %v", got, want)
		}
	},
}, {
	ID: "Value.update", Title: "Update loses nothing",
	Text:  "Four clients add to a record five times each by Update, at once. It ends at twenty.",
	Needs: []engine.Fault{engine.Records},
	Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		var calls []*engine.Call
		for _, c := range cs {
			calls = append(calls, t.Go(c.Name+": Update", func() error {
				for range 5 {
					if _, err := numberOf(t, c).Update(t.Ctx, func(n int) (int, error) { return n + 1, nil }); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		for _, call := range calls {
			call.Returns(t.Limit())
		}
		e, err := numberOf(t, cs[0]).Update(t.Ctx, func(n int) (int, error) { return n, nil }) // reads the newest
		t.Want("Update", err)
		if e.Value < 20 {
			t.Never("twenty calls of Update have added one, and the record is %d", e.Value)
		}
		if e.Value > 20 { // if an answer was lost, a call may have added two
			t.Fatalf("twenty calls of Update have added one, and the record is %d", e.Value)
		}
	},
}, {
	ID: "Value.guarded", Title: "a holder that was replaced writes nothing",
	Text:  "The holder of a Mutex writes a record by SetAs. An operator removes its member: SetAs then fails, also at the version that the record has, and the record stays as it was.",
	Needs: []engine.Fault{engine.Records, engine.Remove},
	Check: func(t *engine.Trial) {
		c := t.Client()
		v := numberOf(t, c)
		h := asks(t, c, "Lock", lock.NewMutex(c, t.Name, options(t, c)).Lock).holds(t.Soon())
		at, err := v.SetAs(t.Ctx, h, backend.Absent, 1)
		t.Want("SetAs", err)
		t.Remove(h.Term().Member())
		for _, version := range []backend.Version{0, at} {
			_, err := v.SetAs(t.Ctx, h, version, 2)
			t.Want("SetAs of one who was removed", err, backend.ErrNotMember, backend.ErrSessionEnded)
		}
		c.Has(v.Name(), "1", at)
	},
}, {
	ID: "Value.expired", Title: "Follow outlives its session, and never goes back",
	Text:  "The session of a client that follows a record is ended, and another writes the record at that time. The first sees that within the time of two crashes, and the next write after a crash. It is told of no error, and sees no earlier state.",
	Needs: []engine.Fault{engine.Records, engine.Expire},
	Check: func(t *engine.Trial) {
		cs := t.Clients(2)
		r := reads(t, cs[1])
		r.sees(t.Soon(), 0)
		writes(t, cs[0], 1)
		r.sees(t.Soon(), 1)
		cs[1].Inject(engine.Expire)
		writes(t, cs[0], 2)
		r.sees(2*t.Crash(), 2)
		writes(t, cs[0], 3)
		r.sees(t.Crash(), 3)
	},
}, {
	ID: "Value.cut", Title: "Follow waits while it is cut off, and then sees the newest",
	Text:  "A client that follows a record is cut off for longer than a session, and another writes the record three times meanwhile. The first is told of no error. It sees the newest state after recovery, and after that the next write soon. It sees no earlier state.",
	Needs: []engine.Fault{engine.Records, engine.Deadlines, engine.Cut},
	Check: func(t *engine.Trial) {
		cs := t.Clients(2)
		r := reads(t, cs[1])
		r.sees(t.Soon(), 0)
		writes(t, cs[0], 1)
		r.sees(t.Soon(), 1)
		heal := cs[1].Inject(engine.Cut)
		for n := 2; n <= 4; n++ {
			writes(t, cs[0], n)
			t.Pass((t.TTL+t.Slack)/2, "while the one who follows is cut off")
		}
		heal()
		r.sees(t.Recovery(), 4)
		writes(t, cs[0], 5)
		r.sees(t.Soon(), 5)
	},
}, {
	ID: "Value.lost-answer", Title: "Update goes on after a lost answer",
	Text:  "Three clients each add to a set by Update, one after the other, and lose the answer to the write. Update returns within the time of two crashes each time, and the record is seen to have all three.",
	Needs: []engine.Fault{engine.Records, engine.LoseAnswer},
	Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		r := reads(t, cs[3])
		writes(t, cs[3], 1) // makes the folder: what is lost later has taken effect
		for i, c := range cs[:3] {
			c.Live()
			c.Inject(engine.LoseAnswer)
			t.Go(c.Name+": Update with a lost answer", func() error {
				_, err := numberOf(t, c).Update(t.Ctx, func(n int) (int, error) { return n | 2<<i, nil })
				return err
			}).Returns(2 * t.Crash())
		}
		r.sees(t.Soon(), 15)
	},
}}
