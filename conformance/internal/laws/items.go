package laws

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

var itemRules = []engine.Rule{{
	ID: "L10.append", Title: "an item stands behind all, and outlives its session",
	Text:  "Items that three clients append at once to a line in which one stands are there soon, each once and pinned, in the order of their positions. Each is behind whoever had joined or been appended before the call began. They stand when their sessions have been closed and a crash has passed.",
	Needs: []engine.Fault{engine.Items},
	Check: func(t *engine.Trial) {
		b := t.Client()
		want := []backend.Member{b.Join("member")}
		var calls []*engine.Call
		cs := t.Clients(3)
		items := make([][]backend.Member, len(cs))
		for i, c := range cs {
			calls = append(calls, t.Go(c.Name+": three times Append", func() error {
				for n := range 3 {
					items[i] = append(items[i], c.Append(fmt.Sprintf("item %d of %s", n, c.Name)))
				}
				return nil
			}))
		}
		for i, c := range cs {
			calls[i].Returns(3 * t.Soon())
			inOrder := slices.IsSortedFunc(items[i], byPosition)
			if !inOrder || items[i][0].Position <= want[0].Position {
				t.Never("%s appended %s behind %s, in this order", c.Name, engine.ShowLine(items[i]), engine.Show(want[0]))
			}
		}
		want = append(want, slices.SortedFunc(slices.Values(slices.Concat(items...)), byPosition)...)
		b.Shows(t.Soon(), want...)
		for _, m := range b.Members()[1:] {
			if !m.Pinned {
				t.Never("the item %s is not pinned", engine.Show(m))
			}
		}
		for _, c := range cs {
			c.CloseSession()
		}
		b.Settles(want...)
	},
}, {
	ID: "L10.remove", Title: "Remove takes out its item alone, while its guard stands",
	Text:  "Of three items the second is removed by a member of another line that stands: the others stand on, and who waits for it with Gone is woken soon. Removing it again returns nil. By a member that has left, Remove fails with ErrNotMember; of a member that is not pinned it fails with ErrDenied; both leave all that stand.",
	Needs: []engine.Fault{engine.Items},
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		beside := b.In(t.Name + "-beside")
		guard, left := beside.Join("guard"), beside.Join("left")
		beside.Leave(left)
		items := []backend.Member{a.Append("one"), a.Append("two"), a.Append("three")}
		going := a.Gone(items[1])
		b.Do(engine.RemoveItem(items[1], guard))
		going.Returns(t.Soon())
		b.Do(engine.RemoveItem(items[1], guard))
		b.Fails(engine.RemoveItem(items[0], left), backend.ErrNotMember)
		member := a.Join("member")
		b.Fails(engine.RemoveItem(member, guard), backend.ErrDenied)
		b.Settles(items[0], items[2], member)
	},
}, {
	ID: "L10.ended", Title: "whose session has ended removes nothing",
	Text:  "A client's session is ended while it holds a member that is to guard a Remove. By that member Remove fails with ErrNotMember, or under the old session with ErrSessionEnded, and the item stands.",
	Needs: []engine.Fault{engine.Items, engine.Expire},
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		item := b.Append("item")
		guard := a.In(t.Name + "-beside").Join("guard")
		going := b.Gone(guard)
		old := a.Live()
		a.Expires()
		going.Returns(t.Crash())
		t.Want(a.Name+": Remove under the old session", engine.RemoveItem(item, guard).Call(t.Ctx, old), backend.ErrSessionEnded)
		b.Fails(engine.RemoveItem(item, guard), backend.ErrNotMember)
		b.Settles(item)
	},
}, {
	ID: "L10.lost-answer", Title: "a lost answer of Append or Remove is done once at most",
	Text:  "Where the answer of Append is lost after it took effect, one item stands when a crash has passed; the call succeeds, or fails with ErrUnavailable. Where that of Remove is lost, the item has gone, and removing it again returns nil.",
	Needs: []engine.Fault{engine.Items, engine.LoseAnswer},
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		first := a.Append("first") // so that there is a line
		_, _ = a.Loses(engine.Append(t.Name, "lost"), nil, backend.ErrUnavailable, backend.ErrSessionEnded)
		t.Pass(t.Crash(), "in which what is on its way may come")
		l := b.Members()
		if len(l) != 2 || !engine.Same(l[0], first) || l[1].Value != "lost" || !l[1].Pinned {
			t.Fatalf("the line is %s; want %s and one more item", engine.ShowLine(l), engine.Show(first))
		}
		guard := b.In(t.Name + "-beside").Join("guard")
		_, _ = b.Loses(engine.RemoveItem(l[1], guard), nil, backend.ErrUnavailable)
		b.Shows(t.Soon(), first)
		b.Do(engine.RemoveItem(l[1], guard))
	},
}, {
	ID: "L10.claim", Title: "an item is claimed by one",
	Text:  "Of two items Free returns the first. A client claims it: it is first in the line of the claims, another that claims the same item fails with ErrTaken, and Free returns the second. When that is claimed as well, Free fails with ErrTaken. When the first claim has left, Free returns the first item again. When that was removed, Claim of it fails with ErrTaken. The line of the claims has those claims alone that were returned. Of three clients that claim one item at once, one at most is returned a claim.",
	Needs: []engine.Fault{engine.Items, engine.Shares},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		a, b := cs[0], cs[1]
		beside := t.Name + "-claims"
		claims, free := b.In(beside), engine.Free(t.Name, beside)
		one, two := a.Append("one"), a.Append("two")
		shows := func(want backend.Member) {
			b.Refresh() // it is to know of what the other has done
			if m := b.Do(free).(backend.Member); !engine.Same(m, want) || m.Value != want.Value || !m.Pinned {
				t.Never("the first free item should be %s, and is %s", engine.Show(want), engine.Show(m))
			}
		}
		claim := func(c *engine.Client, item backend.Member) backend.Member {
			return c.Do(engine.Claim(beside, c.Name, item)).(backend.Joined).Member
		}
		shows(one)
		ofOne := claim(a, one)
		a.In(beside).First(ofOne, engine.Now)
		b.Fails(engine.Claim(beside, b.Name, one), backend.ErrTaken)
		shows(two)
		ofTwo := claim(b, two)
		claims.First(ofTwo, engine.Now)
		b.Fails(free, backend.ErrTaken)
		claims.Shows(t.Soon(), ofOne, ofTwo)
		a.Do(engine.Leave(ofOne))
		shows(one)
		b.Do(engine.RemoveItem(one, ofTwo))
		a.Fails(engine.Claim(beside, a.Name, one), backend.ErrTaken)
		claims.Shows(t.Soon(), ofTwo)
		three := a.Append("three")
		shows(three)
		var calls []*engine.Call
		got := make([]backend.Member, len(cs))
		for i, c := range cs {
			s := c.Live()
			calls = append(calls, t.Go(c.Name+": Claim", func() error {
				j, err := s.Claim(t.Ctx, beside, c.Name+"\n"+kit.Subject(three), "", three)
				got[i] = j.Member
				return err
			}))
		}
		want := []backend.Member{ofTwo}
		for i, call := range calls {
			if call.Returns(3*t.Soon(), nil, backend.ErrTaken) == nil {
				want = append(want, got[i])
			}
		}
		if len(want) > 2 {
			t.Never("one item has the claims %s", engine.ShowLine(want[1:]))
		}
		claims.Settles(want...)
	},
}, {
	ID: "L10.claim-lost", Title: "a lost answer of Claim leaves one claim",
	Text:  "Where the answer of Claim is lost after it took effect, Claim returns that claim, and no other of its own stands; another client that claims the item fails with ErrTaken. Where it returns an error instead, its claim is gone after a crash at the latest.",
	Needs: []engine.Fault{engine.Items, engine.Shares, engine.LoseAnswer},
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		beside := t.Name + "-claims"
		claims := b.In(beside)
		item := a.Append("one")
		other := b.Append("two")
		want := []backend.Member{b.Do(engine.Claim(beside, b.Name, other)).(backend.Joined).Member}
		claimed, err := a.Loses(engine.Claim(beside, a.Name, item), nil, backend.ErrUnavailable)
		if err == nil {
			want = append(want, claimed.(backend.Joined).Member)
		}
		claims.Shows(t.Crash(), want...)
		if err == nil {
			b.Fails(engine.Claim(beside, b.Name, item), backend.ErrTaken)
		}
		claims.Settles(want...)
	},
}, {
	ID: "L10.held", Title: "an item is appended once at most, however late its request comes",
	Text:  "A request of Append is held back on its way. When Append has returned, the request arrives: when a crash has passed, one item stands at most, and exactly that which Append has returned. So it is with each request that Append sends.",
	Needs: []engine.Fault{engine.Items, engine.HoldBack},
	Check: func(t *engine.Trial) {
		for skip := 0; ; skip++ {
			line := fmt.Sprintf("%s-%d", t.Name, skip)
			a, b := t.Client().In(line), t.Client().In(line)
			call, arrives, held := a.HoldsBack(t.Ctx, engine.Append(line, "item"), skip)
			if !held {
				return
			}
			err := call.Returns(t.Crash(), nil, backend.ErrUnavailable)
			arrives()
			t.Pass(t.Crash(), "in which what is on its way may come and go")
			l := b.Members()
			if len(l) > 1 || err == nil && (len(l) == 0 || !engine.Same(l[0], call.Value().(backend.Member))) {
				t.Never("Append has returned %v, %v, and the line is %s", call.Value(), err, engine.ShowLine(l))
			}
		}
	},
}}

func byPosition(a, b backend.Member) int { return cmp.Compare(a.Position, b.Position) }
