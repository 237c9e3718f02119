package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/recipes/queue"
)

// needs are the abilities that a queue needs, and these faults.
func needs(faults ...engine.Fault) []engine.Fault {
	return append([]engine.Fault{engine.Items, engine.Shares}, faults...)
}

// queueOf returns the client's handle on a queue in which so many items stand.
func queueOf(t *engine.Trial, c *engine.Client, length int) *queue.Queue {
	q := queue.New(c, fmt.Sprintf("%s-%d", t.Name, length), &queue.Options{Options: *options(t, c)})
	var puts []*engine.Call
	for range length {
		puts = append(puts, t.Go("Put", func() error { _, err := q.Put(t.Ctx, "x"); return err }))
	}
	for _, put := range puts {
		put.Returns(t.Limit())
	}
	return q
}

var queueRules = []engine.Rule{{
	ID: "Queue.order", Title: "items are taken in their order, each by one",
	Text:  "Three clients put four items each, one after the other, while three others take four each and confirm them. Each item is taken once. Sorted by the tokens of their takers, they are in the order of their positions, and those of one client in the order in which it put them. In the end nothing stands in the queue's lines.",
	Needs: needs(),
	Check: func(t *engine.Trial) {
		const each = 4
		l := newLedger(t)
		ws := l.workers(6)
		var calls []*engine.Call
		for i, w := range ws {
			calls = append(calls, t.Go(w.Name+": its items", func() error {
				for n := range each {
					if i%2 == 0 {
						if _, err := w.q.Put(t.Ctx, fmt.Sprintf("%s%d", w.Name, n)); err != nil {
							return err
						}
						continue
					}
					item, err := w.q.Take(t.Ctx)
					if err != nil {
						return err
					}
					l.enters(w.Name, item)
					if err := l.confirms(w.Name, item); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		for _, call := range calls {
			call.Returns(t.Limit())
		}
		slices.SortFunc(l.taken, func(a, b *queue.Item) int { return cmp.Compare(a.Token(), b.Token()) })
		last, lastOf := uint64(0), make(map[string]string)
		for _, item := range l.taken {
			of := item.Value[:1]
			if item.Position <= last || item.Value <= lastOf[of] {
				t.Fatalf("%q at position %d was taken after %d, and after %q", item.Value, item.Position, last, lastOf[of])
			}
			last, lastOf[of] = item.Position, item.Value
		}
		ws[0].isOver()
	},
}, {
	ID: "Queue.crash", Title: "what a consumer that crashes has taken goes to another, at its place",
	Text:  "Four consumers take an item each, and the one with the first item crashes. Whoever asks for one more gets the first item after a crash. When the second consumer crashes as well, and a fifth item is put after that, the second is taken before the fifth.",
	Needs: needs(engine.Kill),
	Check: func(t *engine.Trial) {
		l := newLedger(t)
		ws := l.workers(4)
		ws[3].puts("one", "two", "three", "four")
		one := ws[0].gets("one")
		ws[1].gets("two")
		three, four := ws[2].gets("three"), ws[3].gets("four")
		ws[0].Inject(engine.Kill)
		again := ws[2].takes().gets(t.Crash()+t.Soon(), "one")
		if again.ID != one.ID {
			t.Never("the item %s is now the item %s", one.ID, again.ID)
		}
		ws[1].Inject(engine.Kill)
		t.Pass(t.Crash(), "in which the claim of the second goes")
		ws[3].puts("five")
		ws[3].shows("one*", "two", "three*", "four*", "five")
		two := ws[3].gets("two")
		for _, item := range []*queue.Item{again, two, three, four, ws[2].gets("five")} {
			ws[3].finishes(item)
		}
		ws[3].isOver()
	},
}, {
	ID: "Queue.cut", Title: "a consumer that is cut off knows before another has its item",
	Text:  "A consumer that has taken the only item is cut off. Another gets the item after a crash, with a larger token. Before that the context of the first has ended. When the first is healed its Done fails with ErrLost, and the item is still there for the other to confirm.",
	Needs: needs(engine.Deadlines, engine.Cut),
	Check: func(t *engine.Trial) {
		l := newLedger(t)
		ws := l.workers(2)
		ws[1].puts("one")
		old := ws[0].gets("one")
		waiting := ws[1].takes()
		heal := ws[0].Inject(engine.Cut)
		item := waiting.gets(t.Crash()+t.Soon(), "one") // enters has checked that the first had lost it
		if old.Context().Err() == nil {
			t.Fatalf("another has %q, and the context of the %s has not ended", item.Value, old)
		}
		heal()
		t.Go("a: Done of what it has lost", func() error { return old.Done(t.Ctx) }).Returns(t.Crash(), queue.ErrLost)
		ws[1].shows("one*")
		ws[1].finishes(item)
		ws[1].isOver()
	},
}, {
	ID: "Queue.removed", Title: "without a claim nothing is confirmed",
	Text:  "An operator removes the claim of a consumer. Its context ends soon, and its Done fails with ErrLost; the item is free, and the next one takes and confirms it.",
	Needs: needs(engine.Remove),
	Check: func(t *engine.Trial) {
		l := newLedger(t)
		ws := l.workers(2)
		ws[1].puts("one")
		old := ws[0].gets("one")
		t.Remove(old.Term().Member())
		engine.Await(t, old.Context().Done(), t.Soon(), "the context of an item whose claim was removed has not ended")
		t.Go("a: Done of what it has lost", func() error { return old.Done(t.Ctx) }).Returns(t.Soon(), queue.ErrLost)
		ws[1].shows("one")
		ws[1].finishes(ws[1].gets("one"))
		ws[1].isOver()
	},
}, {
	ID: "Queue.expired", Title: "a claim ends with its session",
	Text:  "The session of a consumer is ended. The item is free after a crash, at its place; another takes it with a larger token, and confirms it. The Done of the first fails with ErrLost, and it takes the next item.",
	Needs: needs(engine.Expire),
	Check: func(t *engine.Trial) {
		l := newLedger(t)
		ws := l.workers(2)
		ws[1].puts("one", "two")
		old := ws[0].gets("one")
		ws[0].Inject(engine.Expire)
		engine.Await(t, old.Context().Done(), t.Crash(), "the context of an item whose session was ended has not ended")
		t.Go("a: Done of what it has lost", func() error { return old.Done(t.Ctx) }).Returns(t.Soon(), queue.ErrLost)
		ws[1].shows("one", "two")
		item := ws[1].gets("one")
		ws[0].finishes(ws[0].gets("two"))
		ws[1].finishes(item)
		ws[1].isOver()
	},
}, {
	ID: "Queue.woken", Title: "an item wakes one who waits",
	Text:  "Five clients wait for an item, and one is put. The first who waits has it soon, and the three behind the second, whose turn is next, send nothing.",
	Needs: needs(engine.Requests),
	Check: func(t *engine.Trial) {
		l := newLedger(t)
		ws := l.workers(6)
		var waiting []*taking
		for i, w := range ws[:5] {
			waiting = append(waiting, w.waits(i+1))
		}
		var cs []*engine.Client
		for _, w := range ws {
			cs = append(cs, w.Client)
		}
		t.Settles(cs...)
		var items []*queue.Item
		silent(t, cs[2:5], func() {
			ws[5].puts("one")
			items = append(items, waiting[0].gets(t.Soon(), "one"))
			t.Pass(t.TTL/20, "in which those whose turn it is not might be woken")
		})
		ws[5].puts("two", "three", "four", "five")
		for i, value := range []string{"two", "three", "four", "five"} {
			items = append(items, waiting[i+1].gets(t.Soon(), value))
		}
		for i, item := range items {
			ws[i].finishes(item)
		}
		ws[5].isOver()
	},
}, {
	ID: "Queue.lost-answer", Title: "a lost answer loses no item, and puts none twice",
	Text:  "The answer is lost to the request by which an item is put, and to that by which it is confirmed. Put and Done succeed all the same, within the time of two crashes each. After the first one item stands, and after the second none does, nor anything else in the queue's lines, also when a crash has passed.",
	Needs: needs(engine.LoseAnswer),
	Check: func(t *engine.Trial) {
		l := newLedger(t)
		ws := l.workers(2)
		a, b := ws[0], ws[1]
		a.Live()
		a.Inject(engine.LoseAnswer)
		t.Go("a: Put with a lost answer", func() error { _, err := a.q.Put(t.Ctx, "one"); return err }).Returns(2 * t.Crash())
		t.Pass(t.Crash(), "in which what is on its way may come")
		b.shows("one")
		item := a.gets("one")
		a.Inject(engine.LoseAnswer)
		t.Go("a: Done with a lost answer", func() error { return l.confirms("a", item) }).Returns(2 * t.Crash())
		t.Pass(t.Crash(), "in which what is on its way may come")
		b.isOver()
	},
}, {
	ID: "Queue.full", Title: "no more items stand than the limit allows",
	Text:  "Four clients put two items each at once into a queue with a limit of three. Three of these succeed, the others fail with ErrFull, and three items stand. When one has been taken another Put fails, and when it has been confirmed one succeeds.",
	Needs: needs(),
	Check: func(t *engine.Trial) {
		const limit = 3
		l := newLedger(t)
		ws := l.workers(4)
		var calls []*engine.Call
		for _, w := range ws {
			w.q = queue.New(w, w.Election, &queue.Options{Options: *options(t, w.Client), Limit: limit})
			for n := range 2 {
				calls = append(calls, t.Go(fmt.Sprintf("%s: Put no. %d", w.Name, n), func() error { _, err := w.q.Put(t.Ctx, w.Name); return err }))
			}
		}
		succeeded := 0
		for _, call := range calls {
			if call.Returns(3*t.Soon(), nil, queue.ErrFull) == nil {
				succeeded++
			}
		}
		n, err := ws[0].q.Len(t.Ctx)
		t.Want("Len", err)
		if succeeded != limit || n != limit {
			t.Fatalf("%d of %d Puts have succeeded, and %d items stand; the limit is %d", succeeded, len(calls), n, limit)
		}
		taken := ws[0].takes()
		taken.Returns(t.Soon())
		_, err = ws[1].q.Put(t.Ctx, "too many")
		t.Want("Put into a full queue", err, queue.ErrFull)
		ws[0].finishes(taken.item)
		ws[1].puts("last")
		if n, err = ws[0].q.Len(t.Ctx); err != nil || n != limit {
			t.Fatalf("%d items stand, and the limit is %d: %v", n, limit, err)
		}
	},
}, {
	ID: "Queue.cost", Title: "a take costs the same, however many items stand",
	Text:  "A client takes ten items, one after the other, and confirms each: first of a queue in which twelve stand, and then of one in which sixty do. The fewest requests that it takes in the long queue to take an item and to confirm it are as many as it mostly takes in the short one, but for one that may come late, and the fewest in the short one are at most as many as the harness says that it takes on this coordinator (Costs), or eight.",
	Needs: needs(engine.Requests),
	Most:  8,
	Check: func(t *engine.Trial) {
		// A heartbeat may fall into a take, and what watches its term may not have asked when that
		// ends. So the cheapest take of one is compared with a usual one of the other.
		requests := func(length int) (fewest, often int64) {
			c := t.Client()
			q := queueOf(t, c, length)
			var all []int64
			for range 10 {
				before := c.Requests()
				item, err := q.Take(t.Ctx)
				t.Want("Take", err)
				t.Want("Done", item.Done(t.Ctx))
				all = append(all, c.Requests()-before)
			}
			slices.Sort(all)
			return all[0], all[len(all)/2]
		}
		fewest, short := requests(12)
		long, _ := requests(60)
		if long > short+1 || fewest > t.Most() {
			t.Fatalf("to take an item and to confirm it takes %d requests, at best %d, where 12 stand, and at best %d where 60 do; want as many, and at best %d at most", short, fewest, long, t.Most())
		}
	},
}, {
	ID: "Queue.put", Title: "a put costs the same, however many items stand",
	Text:  "A client puts ten items, one after the other: first into a queue in which twelve stand, and then into one in which sixty do. The fewest requests that it takes to put one are as many in the long queue as in the short one, and at most as many as the harness says that it takes on this coordinator (Costs), or three.",
	Needs: needs(engine.Requests),
	Most:  3,
	Check: func(t *engine.Trial) {
		requests := func(length int) int64 {
			c := t.Client()
			q := queueOf(t, c, length)
			fewest := int64(math.MaxInt64) // a heartbeat may fall into one
			for range 10 {
				before := c.Requests()
				_, err := q.Put(t.Ctx, "x")
				t.Want("Put", err)
				fewest = min(fewest, c.Requests()-before)
			}
			return fewest
		}
		short, long := requests(12), requests(60)
		if long != short || short > t.Most() {
			t.Fatalf("to put an item takes %d requests at best where 12 stand, and %d where 60 do; want as many, and %d at most", short, long, t.Most())
		}
	},
}, {
	ID: "Queue.fresh", Title: "what has been put is there to be taken",
	Text:  "Of three clients in turn one puts an item, twenty times. As soon as Put has returned, TryTake of the next one takes it and Return gives it back, and then TryTake of the last one takes it and Done confirms it. After that TryTake of the first one returns ErrEmpty.",
	Needs: needs(),
	Check: func(t *engine.Trial) {
		l := newLedger(t)
		ws := l.workers(3)
		for i := range 20 {
			a, b, c := ws[i%3], ws[(i+1)%3], ws[(i+2)%3]
			value := fmt.Sprint(i)
			a.puts(value)
			item := b.tries(value)
			t.Want(b.Name+": Return", item.Return(t.Ctx))
			c.finishes(c.tries(value))
			_, err := a.q.TryTake(t.Ctx)
			t.Want(a.Name+": TryTake", err, queue.ErrEmpty)
		}
		ws[0].isOver()
	},
}, {
	ID: "Queue.churn", Title: "no item is lost, and none is had by two",
	Text:  "Two clients put six items each, and three others take and confirm items, while the sessions of those three are ended in turn, nine times. Whoever loses a claim takes another item. Nobody gets an item that another has, unless the session of that one was ended just before: it then knows soon. Nobody gets one that was confirmed, nobody confirms one twice, and soon after the last session was ended nothing stands in the queue's lines. Each item was confirmed, or is gone after a Done that could not know whether it was.",
	Needs: needs(engine.Expire),
	Check: func(t *engine.Trial) {
		const each = 6
		l := newLedger(t)
		l.notice = t.Soon()
		ws := l.workers(5)
		var putting, taking []*engine.Call
		for _, w := range ws[:2] {
			putting = append(putting, t.Go(w.Name+": its items", func() error {
				for n := range each {
					if _, err := w.q.Put(t.Ctx, fmt.Sprintf("%s%d", w.Name, n)); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		var mu sync.Mutex
		unknown := make(map[string]bool) // the IDs of items whose Done has failed
		over, end := context.WithCancelCause(t.Ctx)
		defer end(nil)
		enough := errors.New("enough")
		for _, w := range ws[2:] {
			taking = append(taking, t.Go(w.Name+": takes items", func() error {
				for {
					item, err := w.q.Take(over)
					if err != nil {
						return err
					}
					l.enters(w.Name, item)
					t.Pass(t.TTL/20, "in which it works")
					if err := l.confirms(w.Name, item); err != nil {
						t.Want(w.Name+": Done", err, queue.ErrLost)
						mu.Lock()
						unknown[item.ID] = true
						mu.Unlock()
					}
				}
			}))
		}
		for n := range 9 {
			t.Pass(t.TTL/40, "until the next session is ended")
			ws[2+n%3].Inject(engine.Expire)
		}
		for _, call := range putting {
			call.Returns(t.Limit())
		}
		observer := t.Client()
		items := observer.In(t.Name + "-items")
		t.Eventually(t.Limit(), "all items are confirmed", func() bool { return len(items.Members()) == 0 })
		end(enough)
		for _, call := range taking {
			call.Returns(t.Crash(), enough)
		}
		(&worker{observer, ws[0].q, l}).isOver()
		met := make(map[string]bool)
		for id, item := range l.newest {
			met[item.Value] = true
			if !l.confirmed[id] && !unknown[id] {
				t.Never("%q is gone, and nobody has confirmed it", item.Value)
			}
		}
		if len(met) != 2*each {
			t.Fatalf("of %d items these were taken: %s", 2*each, strings.Join(slices.Sorted(maps.Keys(met)), " "))
		}
	},
}}
