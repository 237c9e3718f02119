package guarantees

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
)

var successionRules = []engine.Rule{{
	ID: "G4.order", Title: "leadership goes down the line",
	Text: "Six candidates join one after the other. Each wins when the one before resigns, and nobody before; who has resigned and campaigns again stands at the end.",
	Check: func(t *engine.Trial) {
		cs := t.Clients(6)
		var line []*engine.Candidate
		for _, c := range cs {
			line = append(line, c.Stand(t.Ctx))
		}
		line = append(line, nil)
		for i := range cs {
			term := line[i].Wins(t.Soon())
			for _, st := range line[i+1:] {
				if st != nil && st.Leading() {
					t.Fatalf("%s won while %s led", st.Name, line[i].Name)
				}
			}
			t.Want("Resign", term.Resign(t.Ctx))
			if i == 0 {
				line[len(cs)] = cs[0].Stand(t.Ctx)
			}
		}
		line[len(cs)].Wins(t.Soon())
	},
}, {
	ID: "G4.middle", Title: "who leaves from the middle changes nothing in front",
	Text: "Of six candidates the second, fourth and last give up. The leader's term goes on with its token, nobody wins for half a TTL, and then the third and the fifth win in this order.",
	Check: func(t *engine.Trial) {
		cs := t.Clients(6)
		term := cs[0].Leads()
		line := make([]*engine.Candidate, len(cs))
		giveUp := make([]context.CancelCauseFunc, len(cs))
		for i := 1; i < len(cs); i++ {
			ctx, cancel := context.WithCancelCause(t.Ctx)
			defer cancel(nil)
			giveUp[i] = cancel
			line[i] = cs[i].Stand(ctx)
		}
		for _, i := range []int{1, 3, 5} {
			giveUp[i](engine.ErrCancelled)
			line[i].GivesUp(t.Soon(), engine.ErrCancelled)
		}
		t.Always(t.TTL/2, "the leader was disturbed, or another won", func() bool {
			return term.Check() == nil && !line[2].Leading() && !line[4].Leading()
		})
		term.Resign(t.Ctx)
		third := line[2].Wins(t.Soon())
		if line[4].Leading() {
			t.Fatalf("the fifth won while the third led")
		}
		third.Resign(t.Ctx)
		line[4].Wins(t.Soon())
	},
}, {
	ID: "G4.crash", Title: "a crash in the middle changes nothing in front",
	Text:  "Of three candidates the second is killed. For the time of a crash the leader leads on and the third does not win; when the leader resigns after that, the third wins soon.",
	Needs: []engine.Fault{engine.Kill}, Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		term := cs[0].Leads()
		ctx, cancel := context.WithCancel(t.Ctx)
		defer cancel()
		cs[1].Stand(ctx)
		third := cs[2].Stand(t.Ctx)
		m := cs[0].Members()[0]
		cs[0].Refresh()
		cs[1].Inject(engine.Kill)
		cancel()
		t.Eventually(t.Crash(), "the dead candidate's member goes", func() bool { return len(cs[0].Members()) == 2 })
		t.Always(t.TTL/4, "the leader was disturbed, or the third won", func() bool {
			return term.Check() == nil && !third.Leading()
		})
		if l := cs[0].Members(); !engine.Same(l[0], m) {
			t.Fatalf("the line is %s; want %s first", engine.ShowLine(l), engine.Show(m))
		}
		term.Resign(t.Ctx)
		third.Wins(t.Soon())
	},
}}

// queue makes n clients join, with a number and that value, and each wait for the one in front of it.
func queue(t *engine.Trial, n int, value string) (cs []*engine.Client, line []backend.Member, waits []*engine.Call) {
	cs = t.Clients(n)
	waits = make([]*engine.Call, n)
	for i, c := range cs {
		line = append(line, c.Join(fmt.Sprint(i)+value))
		if i > 0 {
			c.Behind(line[i], line[i-1])
			waits[i] = c.Gone(line[i-1])
		}
	}
	return cs, line, waits
}

// handoverCost returns what a handover in a line of n clients costs, from Leave to Ahead, as count
// counts it for a client. It adds the least that the client that leaves and the next one have used
// together in any handover, and the least that each bystander has used in any. So what a session sends by
// the clock, such as a heartbeat, hardly ever counts: it does not fall into all of them. What each handover
// causes does count. Half of a long line leaves. The members have that value.
func handoverCost(t *engine.Trial, n int, value string, count func(*engine.Client) int64) cost {
	cs, line, waits := queue(t, n, value)
	t.Settles(cs...)
	counts := func() (each []int64) {
		for _, c := range cs {
			each = append(each, count(c))
		}
		return each
	}
	two := int64(math.MaxInt64)
	bystanders := slices.Repeat([]int64{math.MaxInt64}, n)
	for i := range max(3, n/2) {
		before := counts()
		cs[i].Leave(line[i])
		waits[i+1].Returns(t.Soon())
		cs[i+1].First(line[i+1], engine.Now)
		after := counts()
		two = min(two, after[i]-before[i]+after[i+1]-before[i+1])
		for j := range bystanders {
			if j != i && j != i+1 {
				bystanders[j] = min(bystanders[j], after[j]-before[j])
			}
		}
	}
	for _, c := range cs {
		c.CloseSession()
	}
	c := cost{two: two}
	for _, b := range bystanders {
		c.others += b
	}
	return c
}

// handoverCosts returns what handovers cost in a line of four and in one of twenty-four; see
// handoverCost. It measures the first before the second and after it, and returns the dearer: what does
// not depend on the line may have changed between them. So a composite raises a fence in a handover, or
// need not, as the logs of its coordinators go.
func handoverCosts(t *engine.Trial, value string, count func(*engine.Client) int64) (small, large cost) {
	small = handoverCost(t, 4, value, count)
	large = handoverCost(t, 24, value, count)
	if after := handoverCost(t, 4, value, count); after.all() > small.all() {
		small = after
	}
	return small, large
}

// A cost is how many requests, or bytes, a handover takes.
type cost struct{ two, others int64 }

func (c cost) all() int64 { return c.two + c.others }

func (c cost) String() string {
	return fmt.Sprintf("%d, %d of them of others than the two", c.all(), c.others)
}

// observerCost returns the fewest requests that an observer of a line of n clients sends from a
// departure at its head until it has seen the next leader, in any of the first three.
func observerCost(t *engine.Trial, n int) int64 {
	cs, line, _ := queue(t, n, "")
	watcher := t.Client()
	ctx, end := context.WithCancel(t.Ctx)
	o := watcher.Observe(ctx)
	sees := func(m backend.Member) {
		o.Sees(t.Recheck()+t.Soon(), engine.Show(m), func(s elect.State) bool { return s.Leader.Key == m.Key })
	}
	sees(line[0])
	fewest := int64(math.MaxInt64)
	for i := range 3 {
		t.Settles(watcher)
		before := watcher.Requests()
		cs[i].Leave(line[i])
		sees(line[i+1])
		fewest = min(fewest, watcher.Requests()-before)
	}
	end()
	for _, c := range cs {
		c.CloseSession()
	}
	return fewest
}

var herdRules = []engine.Rule{{
	ID: "G5.one", Title: "one exit wakes one",
	Text:  "Twenty clients stand in line, each waits for the one in front. Five times the first leaves: the next one's Gone returns soon, and it is first. By then, and by the end, nobody else's Gone has returned.",
	Crowd: true, Check: func(t *engine.Trial) {
		cs, line, waits := queue(t, 20, "")
		t.Settles(cs...)
		nobodyElse := func(next int) {
			for i := next; i < len(line); i++ {
				if waits[i].Returned() {
					t.Fatalf("%s left, and %s, who waits for %s, was woken", engine.Show(line[next-2]), engine.Show(line[i]), engine.Show(line[i-1]))
				}
			}
		}
		for i := range 5 {
			cs[i].Leave(line[i])
			waits[i+1].Returns(t.Soon())
			cs[i+1].First(line[i+1], engine.Now)
			nobodyElse(i + 2)
		}
		t.Always(t.TTL/4, "somebody was woken late", func() bool {
			nobodyElse(6)
			return true
		})
	},
}, {
	ID: "G5.cost", Title: "a handover costs the same in a long line",
	Text:  "The requests from Leave to the next one's Ahead are as few in a line of twenty-four as in one of four, before it or after it, give or take four: of three handovers, and of twelve in the long line, the fewest that the two of a handover send together, and for each other client the fewest that it sends during any, so that heartbeats do not count.",
	Needs: []engine.Fault{engine.Requests}, Crowd: true, Check: func(t *engine.Trial) {
		const some = 4
		small, large := handoverCosts(t, "", (*engine.Client).Requests)
		if large.all() > small.all()+some {
			t.Fatalf("the requests of a handover are %v in a line of 24, and %v in a line of 4", large, small)
		}
	},
}, {
	ID: "G5.handover", Title: "a handover takes few requests",
	Text:  "Two candidates hand the leadership over to each other six times: each waits until the other one resigns. The fewest requests that both together send from Resign on, until the one that has waited leads, are at most as many as the harness says that it takes on this coordinator (Costs), or eight: to leave, and to look who stands in front.",
	Needs: []engine.Fault{engine.Requests},
	Most:  8,
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		term := a.Leads()
		fewest := int64(math.MaxInt64) // a heartbeat may fall into one
		for range 6 {
			next := b.Stand(t.Ctx)
			t.Settles(a, b)
			before := a.Requests() + b.Requests()
			t.Want("Resign", term.Resign(t.Ctx))
			term = next.Wins(t.Soon())
			fewest = min(fewest, a.Requests()+b.Requests()-before)
			a, b = b, a
		}
		if fewest > t.Most() {
			t.Fatalf("a handover takes %d requests; want at most %d", fewest, t.Most())
		}
	},
}, {
	ID: "G5.bytes", Title: "a handover tells no more in a long line",
	Text:  "Members have a value of a kibibyte. The bytes of a handover, counted as in G5.cost, are as few in a line of twenty-four as in one of four, give or take a kibibyte, and a hundred for each further member: a list of names is allowed, what they say is not.",
	Needs: []engine.Fault{engine.Bytes}, Crowd: true, Check: func(t *engine.Trial) {
		const some = 1024 + 20*100
		small, large := handoverCosts(t, strings.Repeat("v", 1024), (*engine.Client).Bytes)
		if large.all() > small.all()+some {
			t.Fatalf("the bytes of a handover are %v in a line of 24, and %v in a line of 4", large, small)
		}
	},
}, {
	ID: "G5.observer", Title: "an observer asks no more in a long line",
	Text:  "Three times the first of a line leaves, and an observer sees the next one, at its slow re-check at the latest. The fewest requests that it sends for that are as few in a line of twenty-four as in one of four, give or take ten, heartbeats included.",
	Needs: []engine.Fault{engine.Requests}, Crowd: true, Check: func(t *engine.Trial) {
		small := observerCost(t, 4)
		large := observerCost(t, 24)
		if large > small+10 {
			t.Fatalf("an observer sends %d requests to see the next leader of a line of 24, and %d in a line of 4", large, small)
		}
	},
}, {
	ID: "G5.elections", Title: "a client at rest is as quiet in many elections as in one",
	Text:  "A client waits in one election, and another in twenty. In two TTL in which nothing happens the second sends as few requests as the first, give or take ten: a session asks for all who wait at once.",
	Needs: []engine.Fault{engine.Requests}, Check: func(t *engine.Trial) {
		leader, one, many := t.Client(), t.Client(), t.Client()
		waits := func(c *engine.Client, election string) {
			leader.In(election).Leads()
			c.In(election).Stand(t.Ctx)
		}
		waits(one, t.Name)
		for i := range 20 {
			waits(many, fmt.Sprintf("%s-%d", t.Name, i+1))
		}
		t.Settles(one, many)
		before, beforeMany := one.Requests(), many.Requests()
		t.Pass(2*t.TTL, "while nothing happens")
		if n, m := one.Requests()-before, many.Requests()-beforeMany; m > n+10 {
			t.Fatalf("a client sends %d requests in two TTL in which it waits in twenty elections, and another %d that waits in one", m, n)
		}
	},
}, {
	ID: "G5.rest", Title: "a candidate at rest is quiet",
	Text:  "Six candidates wait behind a leader for five TTL. The quietest of the last four sends per TTL at most as many requests as the harness says that it takes on this coordinator (Costs), or eight, heartbeats and the slow re-check included, and two more in all. The others may have had sessions of other rules to end: on some coordinators clients do that for each other.",
	Needs: []engine.Fault{engine.Requests},
	Most:  8,
	Check: func(t *engine.Trial) {
		cs := t.Clients(7)
		cs[0].Leads()
		for _, c := range cs[1:] {
			c.Stand(t.Ctx)
		}
		t.Settles(cs...)
		before := make([]int64, len(cs))
		for i, c := range cs {
			before[i] = c.Requests()
		}
		began := time.Now()
		t.Pass(5*t.TTL, "while nothing happens")
		var sent []int64
		for i, c := range cs[3:] {
			sent = append(sent, c.Requests()-before[3+i])
		}
		passed := time.Since(began)
		if limit := int64(time.Duration(t.Most())*passed/t.TTL) + 2; slices.Min(sent) > limit {
			t.Fatalf("the last four sent %v requests in %v, %.1f TTL, while they waited; want at most %d of the quietest", sent, passed, passed.Seconds()/t.TTL.Seconds(), limit)
		}
	},
}}
