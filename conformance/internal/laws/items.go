package laws

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
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
}}

func byPosition(a, b backend.Member) int { return cmp.Compare(a.Position, b.Position) }
