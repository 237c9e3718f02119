package recipes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
)

// A desk is where the members of a rule work on their items. It knows who works on which.
type desk struct {
	t      *engine.Trial
	notice time.Duration // how long a member may not know that it has lost an item

	mu    sync.Mutex
	at    map[string]*stint // who works on an item
	last  map[string]uint64 // the token of whoever began it last
	begun map[string]int    // how often it was begun
}

// A collector is a client that is a member under that ID.
type collector struct {
	*engine.Client
	id string
}

// A stint is the work of one member on one item.
type stint struct {
	*collector
	over chan struct{} // closed when it has ended
}

func newDesk(t *engine.Trial) *desk {
	return &desk{t: t, at: make(map[string]*stint), last: make(map[string]uint64), begun: make(map[string]int)}
}

// sources are the items of the rules. Whose each is follows from the IDs of those present, for ever.
var sources = []string{"auth", "cron", "kernel", "mail", "ssh", "web"}

// whose says whose the sources are, in their order, where these members are present.
var whose = map[string]string{"a": "aaaaaa", "ab": "abbaab", "ac": "accaac", "abc": "ccbaab", "bc": "cccbbb"}

// works has the client join with that ID, and work on what is its own until the func that it returns
// is called. Whenever its presence is lost it joins again.
func (d *desk) works(c *engine.Client, id string) (leave func()) {
	t, w := d.t, &collector{c, id}
	ctx, cancel := context.WithCancel(t.Ctx)
	left := t.Go(c.Name+": Assign", func() error {
		for {
			p, err := groupOf(t, c, id).Join(ctx)
			if err != nil {
				return err
			}
			err = p.Assign(ctx, sources, func(ctx context.Context, item string, term *elect.Term) error {
				now, err := d.begins(w, item, term)
				if err != nil {
					return err
				}
				<-ctx.Done()
				time.Sleep(t.TTL / 50) // work takes a moment to end
				d.ends(now, item)
				return nil
			})
			p.Leave(ctx)
			switch {
			case ctx.Err() != nil || c.Killed():
				return err
			case !errors.Is(err, elect.ErrLost):
				t.Fatalf("%s: Assign: %v", c.Name, err)
			}
			t.Log(c.Name, "joins again: %v", err)
		}
	})
	return func() {
		cancel()
		left.Returns(t.Soon(), context.Canceled)
	}
}

// begins checks that nobody else works on the item, but for one that was killed.
func (d *desk) begins(w *collector, item string, term *elect.Term) (*stint, error) {
	now := &stint{w, make(chan struct{})}
	other, err := d.enter(now, item, term.Token())
	if err != nil || other == nil || other.Killed() {
		return now, err
	}
	select {
	case <-other.over:
		return now, nil
	case <-time.After(d.notice):
		return now, fmt.Errorf("%s begins %s with token %d while %s works on it", w.id, item, term.Token(), other.id)
	}
}

// enter returns who works on the item, if somebody does.
func (d *desk) enter(now *stint, item string, token uint64) (other *stint, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.t.Log(now.Name, "as %s begins %s with token %d", now.id, item, token)
	if token <= d.last[item] {
		return nil, fmt.Errorf("%s begins %s with token %d, after one with token %d", now.id, item, token, d.last[item])
	}
	other = d.at[item]
	d.at[item], d.last[item] = now, token
	d.begun[item]++
	return other, nil
}

func (d *desk) ends(now *stint, item string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(now.over)
	if d.at[item] == now { // a killed one may be late
		delete(d.at, item)
	}
}

// owner returns the ID of whoever works on the item, and how often it was begun.
func (d *desk) owner(item string) (id string, begun int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.at[item]; w != nil {
		id = w.id
	}
	return id, d.begun[item]
}

// divides has something happen, and waits until the sources are divided as the members who are then
// present have to. Each that has moved was begun once since, and no other.
func (d *desk) divides(within time.Duration, present string, happens func()) {
	before, want := make([]int, len(sources)), make([]int, len(sources))
	for i, item := range sources {
		var id string
		id, before[i] = d.owner(item)
		if want[i] = before[i]; id != whose[present][i:i+1] {
			want[i]++
		}
	}
	happens()
	d.t.Eventually(within, fmt.Sprintf("with %q present, all sources are owned", present), func() bool {
		for i, item := range sources {
			switch id, begun := d.owner(item); {
			case begun > want[i]:
				d.t.Fatalf("with %q present, %s was begun %d times; want %d", present, item, begun-before[i], want[i]-before[i])
			case id != whose[present][i:i+1]:
				return false
			}
		}
		return true
	})
}

var assignRules = []engine.Rule{{
	ID: "Group.assign", Title: "each item is one member's, and at a change only those move that must",
	Text:  "Three clients join one after the other, and divide six items by Assign; then one of them crashes, comes back with its ID, and another one leaves. After each change all items are owned, soon or after a crash, each by the member that it falls to. No item has two owners at once, tokens grow from owner to owner, and what stays a member's is not disturbed.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Kill},
	Check: func(t *engine.Trial) {
		cs, d := t.Clients(4), newDesk(t)
		var leave func()
		d.divides(t.Crash(), "a", func() { leave = d.works(cs[0], "a") })
		d.divides(t.Crash(), "ab", func() { d.works(cs[1], "b") })
		d.divides(t.Crash(), "abc", func() { d.works(cs[2], "c") })
		d.divides(t.Crash()+t.Soon(), "ac", func() { cs[1].Inject(engine.Kill) })
		d.divides(t.Crash(), "abc", func() { d.works(cs[3], "b") })
		d.divides(t.Crash(), "bc", leave)
	},
}, {
	ID: "Group.owners", Title: "Owners shows who works on an item, and who did last",
	Text:  "Two clients divide six items by Assign, one of which joins later and leaves, and then the other leaves. As soon as work on all items has begun after each change, Owners of a third shows for each who owns it, since when and with which token; when nobody works on them any more, it shows the same, and that nobody owns them.",
	Needs: []engine.Fault{engine.Shares, engine.Records},
	Check: func(t *engine.Trial) {
		cs, d := t.Clients(3), newDesk(t)
		watcher := groupOf(t, cs[2], "")
		shows := func(present string, held bool) {
			owners, err := watcher.Owners(t.Ctx, sources...)
			t.Want("Owners", err)
			d.mu.Lock()
			defer d.mu.Unlock()
			for i, o := range owners {
				if o.Item != sources[i] || o.ID != whose[present][i:i+1] || o.Token != d.last[o.Item] || o.Held != held || o.Since.IsZero() {
					t.Fatalf("with %q present, the owner of %s is %+v; want %c with token %d, held: %t", present, sources[i], o, whose[present][i], d.last[sources[i]], held)
				}
			}
		}
		var leave, other func()
		d.divides(t.Crash(), "a", func() { leave = d.works(cs[0], "a") })
		shows("a", true)
		d.divides(t.Crash(), "ab", func() { other = d.works(cs[1], "b") })
		shows("ab", true)
		d.divides(t.Crash(), "a", other)
		shows("a", true)
		leave()
		shows("a", false)
	},
}, {
	ID: "Group.cut", Title: "a member that is cut off gives its items up before others own them",
	Text:  "Two clients divide six items, and one is cut off. All items are the other's after a crash, and none has two owners at once. When the first is healed, it joins again, and has its own again within the time of a recovery.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Deadlines, engine.Cut},
	Check: func(t *engine.Trial) {
		cs, d := t.Clients(2), newDesk(t)
		d.divides(t.Crash(), "a", func() { d.works(cs[0], "a") })
		d.divides(t.Crash(), "ab", func() { d.works(cs[1], "b") })
		var heal func()
		d.divides(t.Crash()+t.Soon(), "a", func() { heal = cs[1].Inject(engine.Cut) })
		d.divides(t.Recovery(), "ab", heal)
	},
}, {
	ID: "Group.assign-expired", Title: "a member whose session has ended has its items again",
	Text:  "Two clients divide six items, and the session of one is ended. It joins again, and within the time of two crashes it has its own items again, each by a larger token. Those of the other are not disturbed. No item has two owners at once, but for the moment in which the one does not know yet.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Expire},
	Check: func(t *engine.Trial) {
		cs, d := t.Clients(2), newDesk(t)
		d.notice = t.Soon()
		d.divides(t.Crash(), "a", func() { d.works(cs[0], "a") })
		d.divides(t.Crash(), "ab", func() { d.works(cs[1], "b") })
		before := make(map[string]int)
		for _, item := range sources {
			_, before[item] = d.owner(item)
		}
		cs[1].Inject(engine.Expire)
		t.Eventually(2*t.Crash(), "who has joined again has its items again", func() bool {
			again := true
			for i, item := range sources {
				switch id, begun := d.owner(item); {
				case whose["ab"][i] == 'b':
					again = again && id == "b" && begun > before[item]
				case begun > before[item]:
					t.Fatalf("the session of b has ended, and %s, which is a's, was begun again", item)
				}
			}
			return again
		})
	},
}, {
	ID: "Group.assign-lost-answer", Title: "a lost answer leaves no item without an owner",
	Text:  "The answer is lost to the request by which a member joins that divides six items, and to that by which it stands for the first item that falls to it when another leaves. Within the time of two crashes all items are owned, each was begun once when it moved, and no item has two owners at once.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.LoseAnswer},
	Check: func(t *engine.Trial) {
		cs, d := t.Clients(2), newDesk(t)
		cs[0].Live()
		cs[0].Inject(engine.LoseAnswer)
		d.divides(2*t.Crash(), "a", func() { d.works(cs[0], "a") })
		var leave func()
		d.divides(t.Crash(), "ab", func() { leave = d.works(cs[1], "b") })
		cs[0].Inject(engine.LoseAnswer)
		d.divides(2*t.Crash(), "a", leave)
	},
}}
