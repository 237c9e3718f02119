package recipes

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/group"
)

// groupOf returns the client's handle on the group, as a member with that ID.
func groupOf(t *engine.Trial, c *engine.Client, id string) *group.Group {
	o := options(t, c)
	o.ID = id
	return group.New(c, c.Election, o)
}

// joins has the client join the group, which must succeed soon. It leaves at the end of the rule, if
// not before.
func joins(t *engine.Trial, c *engine.Client, id string) *group.Presence {
	var p *group.Presence
	t.Go(c.Name+": Join", func() (err error) {
		p, err = groupOf(t, c, id).Join(t.Ctx)
		return err
	}).Returns(t.Soon())
	t.Cleanup(func() { p.Leave(context.Background()) })
	t.Log(c.Name, "is present with token %d", p.Token())
	return p
}

func sets(t *engine.Trial, p *group.Presence, value string) {
	t.Want("Set", p.Set(t.Ctx, value))
}

// showMembers shows members as rules name them: their IDs with their values.
func showMembers(members []group.Member) string {
	var all []string
	for _, m := range members {
		all = append(all, m.ID+"="+m.Value)
	}
	return strings.Join(all, " ")
}

// A following is a call of Follow in the background.
type following struct {
	t    *engine.Trial
	name string

	mu     sync.Mutex
	states []string // as showMembers shows them
}

// follows has the client follow the group. No state may show somebody who had gone, and all stand in
// the order in which they joined.
func follows(t *engine.Trial, c *engine.Client) *following {
	f := &following{t: t, name: c.Name}
	t.Go(c.Name+": Follow", func() error {
		newest, before := uint64(0), make(map[uint64]bool)
		for members, err := range groupOf(t, c, c.Name).Follow(t.Ctx) {
			if err != nil {
				if t.Ctx.Err() == nil {
					t.Fatalf("%s: Follow has ended: %v", c.Name, err)
				}
				return err
			}
			t.Log(c.Name, "follows: %s", showMembers(members))
			last, now := uint64(0), make(map[uint64]bool)
			for _, m := range members {
				if m.Token <= newest && !before[m.Token] {
					t.Never("%s: Follow shows %s with token %d, who had gone", c.Name, m.ID, m.Token)
				}
				if m.Token <= last {
					t.Never("%s: Follow shows %s, which is not the order of joining", c.Name, showMembers(members))
				}
				last, now[m.Token] = m.Token, true
			}
			newest, before = max(newest, last), now
			f.mu.Lock()
			f.states = append(f.states, showMembers(members))
			f.mu.Unlock()
		}
		return nil
	})
	return f
}

// count returns how many states it has seen.
func (f *following) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.states)
}

// sees waits until the newest state is this one.
func (f *following) sees(d time.Duration, members string) {
	f.t.Eventually(d, fmt.Sprintf("%s: Follow shows %q", f.name, members), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.states) > 0 && f.states[len(f.states)-1] == members
	})
}

// shows waits until Members shows these.
func shows(t *engine.Trial, c *engine.Client, members string) {
	g := groupOf(t, c, c.Name)
	t.Eventually(t.Soon(), fmt.Sprintf("%s: Members shows %q", c.Name, members), func() bool {
		got, err := g.Members(t.Ctx)
		t.Want(c.Name+": Members", err)
		return showMembers(got) == members
	})
}

var groupRules = []engine.Rule{{
	ID: "Group.members", Title: "joins, values and exits are seen in order",
	Text:  "Three clients join a group and set values; a fourth follows it, and asks for its members. It sees each join and each exit soon, from either end, with the values that they joined with, and a value that was set when it asks. When all have left, nobody is present and no value is left.",
	Needs: []engine.Fault{engine.Shares, engine.Records},
	Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		watcher := cs[3]
		f := follows(t, watcher)
		f.sees(t.Soon(), "")
		a := joins(t, cs[0], "a")
		f.sees(t.Soon(), "a=")
		b := joins(t, cs[1], "b")
		f.sees(t.Soon(), "a= b=")
		sets(t, a, "10%")
		shows(t, watcher, "a=10% b=")
		sets(t, a, "20%")
		sets(t, b, "idle")
		shows(t, watcher, "a=20% b=idle")
		c := joins(t, cs[2], "c")
		f.sees(t.Soon(), "a= b= c=")
		shows(t, watcher, "a=20% b=idle c=")
		for _, left := range []struct {
			p       *group.Presence
			members string
		}{{b, "a= c="}, {c, "a="}, {a, ""}} {
			t.Want("Leave", left.p.Leave(t.Ctx))
			f.sees(t.Soon(), left.members)
		}
		shows(t, watcher, "")
		if left := watcher.List(t.Name + "-values"); len(left) > 0 {
			t.Fatalf("all have left, and values are left: %v", left)
		}
	},
}, {
	ID: "Group.crash", Title: "a member that crashes is gone, and so is its value",
	Text:  "Two clients join a group and set values, and the first crashes. Whoever follows sees after a crash that it has gone. The next one that joins deletes its value, and leaves that of the other.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Kill},
	Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		f := follows(t, cs[3])
		a, b := joins(t, cs[0], "a"), joins(t, cs[1], "b")
		f.sees(t.Soon(), "a= b=")
		sets(t, a, "left behind")
		sets(t, b, "here")
		shows(t, cs[3], "a=left behind b=here")
		cs[0].Inject(engine.Kill)
		f.sees(t.Crash(), "b=")
		joins(t, cs[2], "c")
		f.sees(t.Soon(), "b= c=")
		shows(t, cs[3], "b=here c=")
		kept := []string{fmt.Sprintf("%s-values/%d", t.Name, b.Term().Member().Position)}
		t.Eventually(t.Soon(), "the value of the member that has crashed is deleted", func() bool {
			return slices.Equal(cs[3].List(t.Name+"-values"), kept)
		})
	},
}, {
	ID: "Group.woken", Title: "a join wakes those who follow, once, and a value wakes nobody",
	Text:  "Two clients follow a group of one. While it sets its value twenty times, over half a TTL, they send at most four requests each, which may be heartbeats. When another joins, they see it soon, and send at most twelve requests each; the member that was there sends at most two. It is enough that they send no more at one of three joins, as heartbeats and watches that end for nothing may come at once.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Requests},
	Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		a := joins(t, cs[0], "a")
		fs := []*following{follows(t, cs[2]), follows(t, cs[3])}
		for _, f := range fs {
			f.sees(t.Soon(), "a=")
		}
		cs[1].Live()
		t.Settles(cs...)
		var seen []int
		for _, f := range fs {
			seen = append(seen, f.count())
		}
		sent := func() (n [4]int64) {
			for i, c := range cs {
				n[i] = c.Requests()
			}
			return n
		}
		silent(t, cs[2:], func() {
			for n := range 20 {
				sets(t, a, fmt.Sprintf("%d%%", n))
				t.Pass(t.TTL/40, "between two values")
			}
		})
		for i, f := range fs {
			if n := f.count(); n != seen[i] {
				t.Fatalf("%s has seen %d more states, and nobody has joined or left", f.name, n-seen[i])
			}
		}
		loud := ""
		for range 3 {
			before, began := sent(), time.Now()
			b := joins(t, cs[1], "b")
			for _, f := range fs {
				f.sees(t.Soon(), "a= b=")
			}
			loud = ""
			beats := int64(8 * time.Since(began) / t.TTL)
			for i, n := range sent() {
				switch n -= before[i] + beats; {
				case i == 0 && n > 2:
					loud = fmt.Sprintf("a join has had the other member send %d requests", n)
				case i >= 2 && n > 12:
					loud = fmt.Sprintf("a join has had %s, who follows the group, send %d requests", cs[i].Name, n)
				}
			}
			if loud == "" {
				return
			}
			t.Want("Leave", b.Leave(t.Ctx))
			for _, f := range fs {
				f.sees(t.Soon(), "a=")
			}
		}
		t.Fatalf("each of three times, %s", loud)
	},
}, {
	ID: "Group.cost", Title: "who follows is told of a join at one price, however many are present",
	Text:  "A client follows two groups, one after the other: first one of three and then one of twelve, in which each has set a value. Another joins and leaves each of them three times, each time when the client waits again. The fewest requests that the client sends from before a join until it waits again after the exit are as many both times, but for two that may be heartbeats, and at most sixteen.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Requests},
	Check: func(t *engine.Trial) {
		const most = 16
		cs := t.Clients(3)
		fewest := func(present int) int64 {
			name := fmt.Sprintf("%s-%d", t.Name, present)
			handle := func(c *engine.Client, id string) *group.Group {
				o := options(t, c)
				o.ID = id
				return group.New(c, name, o)
			}
			enters := func(c *engine.Client, id string) *group.Presence {
				p, err := handle(c, id).Join(t.Ctx)
				t.Want("Join", err)
				t.Cleanup(func() { p.Leave(context.Background()) })
				return p
			}
			for i := range present {
				sets(t, enters(cs[0], fmt.Sprint(i)), "set")
			}
			ctx, stop := context.WithCancel(t.Ctx)
			defer stop()
			var mu sync.Mutex
			seen := 0
			following := t.Go(fmt.Sprintf("Follow of %d", present), func() error {
				for members, err := range handle(cs[2], "").Follow(ctx) {
					if err != nil {
						return err
					}
					mu.Lock()
					seen = len(members)
					mu.Unlock()
				}
				return nil
			})
			sees := func(n int) {
				t.Eventually(t.Soon(), fmt.Sprintf("Follow shows %d", n), func() bool {
					mu.Lock()
					defer mu.Unlock()
					return seen == n
				})
			}
			sees(present)
			n := int64(math.MaxInt64) // a heartbeat may fall into one
			t.Settles(cs[2])
			for range 3 {
				before := cs[2].Requests()
				p := enters(cs[1], "another")
				sees(present + 1)
				t.Settles(cs[2]) // otherwise it may see the exit when it looks for what it is to watch
				t.Want("Leave", p.Leave(t.Ctx))
				sees(present)
				t.Settles(cs[2])
				n = min(n, cs[2].Requests()-before)
			}
			stop()
			following.Returns(t.Soon(), context.Canceled)
			return n
		}
		short, long := fewest(3), fewest(12)
		if long > short+2 || short > most {
			t.Fatalf("to be told of a join and of an exit takes %d requests where 3 are present, and %d where 12 are; want as many, and at most %d", short, long, most)
		}
	},
}, {
	ID: "Group.expired", Title: "a presence ends with its session, and so does its value",
	Text:  "Two clients join a group and set values, and the session of the first is ended. After a crash the context of its presence has ended, Check says ErrLost, and its Set fails; whoever follows sees that it has gone. It joins again, with the same ID: that is another member, with a larger token and without the value of the first, which is deleted.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Expire},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		f := follows(t, cs[2])
		old, b := joins(t, cs[0], "a"), joins(t, cs[1], "b")
		sets(t, old, "left behind")
		sets(t, b, "here")
		shows(t, cs[2], "a=left behind b=here")
		cs[0].Inject(engine.Expire)
		engine.Await(t, old.Context().Done(), t.Crash(), "the context of a presence whose session was ended has not ended")
		t.Want("Check of a presence whose session was ended", old.Check(), elect.ErrLost)
		t.Want("Set of a presence whose session was ended", old.Set(t.Ctx, "late"), backend.ErrNotMember, backend.ErrSessionEnded)
		f.sees(t.Crash(), "b=")
		if again := joins(t, cs[0], "a"); again.Token() <= old.Token() {
			t.Fatalf("it joins with token %d, and then with %d", old.Token(), again.Token())
		}
		f.sees(t.Soon(), "b= a=")
		shows(t, cs[2], "b=here a=")
		kept := []string{fmt.Sprintf("%s-values/%d", t.Name, b.Term().Member().Position)}
		t.Eventually(t.Soon(), "the value that was left behind is deleted", func() bool {
			return slices.Equal(cs[2].List(t.Name+"-values"), kept)
		})
	},
}, {
	ID: "Group.lost-answer", Title: "a lost answer makes no second member, and leaves none behind",
	Text:  "The answer is lost to the request by which a member joins a group, to that by which it sets its value, and to that by which it deletes the value as it leaves; another one, which has no value, loses the answer to its exit. Join and Leave return within the time of two crashes. Set has set the value, also where it says ErrUnavailable. Each is present once, and when a crash has passed since all have left nobody is. Another one joins, and no value is left.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.LoseAnswer},
	Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		watcher := cs[3]
		var a *group.Presence
		cs[0].Live()
		cs[0].Inject(engine.LoseAnswer)
		t.Go("a: Join with a lost answer", func() (err error) {
			a, err = groupOf(t, cs[0], "a").Join(t.Ctx)
			return err
		}).Returns(2 * t.Crash())
		b, c := joins(t, cs[1], "b"), joins(t, cs[2], "c")
		sets(t, c, "here") // makes the folder: what is lost later has taken effect
		cs[0].Inject(engine.LoseAnswer)
		t.Go("a: Set with a lost answer", func() error { return a.Set(t.Ctx, "here") }).Returns(2*t.Crash(), nil, backend.ErrUnavailable)
		shows(t, watcher, "a=here b= c=here")
		t.Want("Check of the member that has lost answers", a.Check())
		var leaving []*engine.Call
		for i, p := range []*group.Presence{a, b} {
			cs[i].Inject(engine.LoseAnswer)
			leaving = append(leaving, t.Go(cs[i].Name+": Leave with a lost answer", func() error { return p.Leave(t.Ctx) }))
		}
		for _, call := range leaving {
			call.Returns(2*t.Crash(), nil, backend.ErrUnavailable, context.DeadlineExceeded)
		}
		t.Want("Leave", c.Leave(t.Ctx))
		watcher.In(t.Name + "-members").Settles()
		joins(t, watcher, "d") // deletes what others could not
		if left := watcher.List(t.Name + "-values"); len(left) > 0 {
			t.Fatalf("all have left, and values are left: %v", left)
		}
	},
}}
