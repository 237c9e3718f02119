package group_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/group"
)

// A desk is where all members work. It knows who works on which item, and that nobody else does.
type desk struct {
	t *testing.T

	mu   sync.Mutex
	at   map[string]string // the ID of who works on an item
	last map[string]uint64 // the newest token of an item
}

func newDesk(t *testing.T) *desk {
	return &desk{t: t, at: make(map[string]string), last: make(map[string]uint64)}
}

func (d *desk) begins(id, item string, t *elect.Term) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if other, taken := d.at[item]; taken {
		d.t.Errorf("%s begins to work on %s while %s does", id, item, other)
	}
	if t.Token() <= d.last[item] {
		d.t.Errorf("%s works on %s with token %d, after one with %d", id, item, t.Token(), d.last[item])
	}
	d.at[item], d.last[item] = id, t.Token()
}

func (d *desk) ends(item string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.at, item)
}

// owners returns who works on which item.
func (d *desk) owners() map[string]string {
	time.Sleep(time.Second)
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.at)
}

// member joins with that ID, and works on items until ctx ends. It returns what Assign has
// returned, when that has returned.
func (d *desk) member(ctx context.Context, b backend.Backend, id string, items []string) <-chan error {
	p := join(d.t, b, id, "")
	ended := make(chan error, 1)
	go func() {
		err := p.Assign(ctx, items, func(ctx context.Context, item string, t *elect.Term) error {
			d.begins(id, item, t)
			defer d.ends(item)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		p.Leave(ctx)
		ended <- err
	}()
	return ended
}

func someItems(n int) (items []string) {
	for i := range n {
		items = append(items, fmt.Sprintf("source/%d", i))
	}
	return items
}

// of returns the items of one owner.
func of(owners map[string]string, id string) string {
	var all []string
	for _, item := range someItems(20) {
		if owners[item] == id {
			all = append(all, item)
		}
	}
	return strings.Join(all, " ")
}

// At each change the items of who came or went move, and few others; all items are owned, each by one, and no
// member has two more than another; and who returns finds its own again.
func TestAssign(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		items, d := someItems(20), newDesk(t)
		var before map[string]string
		check := func(what, who string) map[string]string {
			t.Helper()
			now, others, each := d.owners(), 0, make(map[string]int)
			for _, item := range items {
				if now[item] == "" {
					t.Errorf("%s: nobody owns %s", what, item)
				}
				if each[now[item]]++; before != nil && before[item] != now[item] && before[item] != who && now[item] != who {
					others++
				}
			}
			if others > len(items)/4 {
				t.Errorf("%s: %d items of others have moved", what, others)
			}
			counts := slices.Sorted(maps.Values(each))
			if counts[len(counts)-1] > counts[0]+1 {
				t.Errorf("%s: the members have %v items", what, counts)
			}
			before = now
			return now
		}
		ctxA, leaveA := context.WithCancel(t.Context())
		endedA := d.member(ctxA, bubble.Client(t, c, "a"), "a", items)
		check("a joins", "a")
		b := bubble.Client(t, c, "b")
		d.member(t.Context(), b, "b", items)
		check("b joins", "b")
		ctxC, leaveC := context.WithCancel(t.Context())
		endedC := d.member(ctxC, bubble.Client(t, c, "c"), "c", items)
		three := check("c joins", "c")
		for _, id := range []string{"a", "b", "c"} {
			if of(three, id) == "" {
				t.Errorf("nothing falls to %s: %v", id, three)
			}
		}

		b.Kill()
		time.Sleep(2 * bubble.TTL)
		check("b crashes", "b")
		leaveA()
		bubble.Want(t, <-endedA, context.Canceled)
		check("a leaves", "a")
		d.member(t.Context(), bubble.Client(t, c, "b again"), "b", items)
		check("b returns", "b")
		ctxA, leaveA = context.WithCancel(t.Context())
		endedA = d.member(ctxA, bubble.Client(t, c, "a again"), "a", items)
		again := check("a returns", "a")
		if !maps.Equal(three, again) {
			t.Errorf("those who have returned do not have what was theirs:\n%v\n%v", three, again)
		}
		leaveA()
		bubble.Want(t, <-endedA, context.Canceled)
		check("a leaves again", "a")
		leaveC()
		bubble.Want(t, <-endedC, context.Canceled)
		check("c leaves too", "c")
	})
}

// Members that come, go, crash and are cut off never work on an item at the same time, and in the
// end all is owned.
func TestAssignThroughFaults(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		items, d := someItems(10), newDesk(t)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var all []*memory.Backend
		for i := range 4 {
			b := bubble.Client(t, c, fmt.Sprint(i))
			b.Delay(time.Millisecond, time.Millisecond)
			all = append(all, b)
			running.Go(func() {
				for {
					p, err := group.New(b, "workers", &elect.Options{ID: fmt.Sprint(i)}).Join(ctx)
					if err != nil {
						return
					}
					err = p.Assign(ctx, items, func(ctx context.Context, item string, t *elect.Term) error {
						d.begins(fmt.Sprint(i), item, t)
						defer d.ends(item)
						<-ctx.Done()
						return nil
					})
					p.Leave(ctx)
					if !errors.Is(err, elect.ErrLost) {
						return
					}
				}
			})
		}
		for n := range 20 {
			b := all[n%len(all)]
			switch n % 5 {
			case 0, 3:
				b.Expire()
			case 1:
				b.Cut()
				time.AfterFunc(2*bubble.TTL, b.Heal)
			case 2:
				c.Remove("workers-members", c.Members("workers-members")[0].Key)
			case 4:
				b.LoseAnswer(memory.OpJoin)
				b.LoseAnswer(memory.OpPut)
				b.LoseAnswer(memory.OpLeave)
				c.Restart()
			}
			time.Sleep(bubble.TTL / 2)
		}
		time.Sleep(4 * bubble.TTL)
		if n := len(c.Members("workers-members")); n != 4 {
			t.Errorf("%d are present, want 4", n)
		}
		if now := d.owners(); len(now) != len(items) {
			t.Errorf("owned are %v", now)
		}
		cancel()
		running.Wait()
		for _, item := range items {
			if n := len(c.Members("workers-item-" + strings.ReplaceAll(item, "/", "_2f"))); n > 0 {
				t.Errorf("%d stand in the line of %s", n, item)
			}
		}
	})
}

// Of two members with the same ID, one works and the other waits.
func TestAssignToTwoWithOneID(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		items, d := someItems(20), newDesk(t)
		b := bubble.Client(t, c, "first")
		d.member(t.Context(), b, "a", items)
		if got := d.owners(); len(got) != len(items) {
			t.Errorf("owned are %v", got)
		}
		tokens := maps.Clone(d.last)
		d.member(t.Context(), bubble.Client(t, c, "second"), "a", items)
		if got := d.owners(); len(got) != len(items) || !maps.Equal(tokens, d.last) {
			t.Errorf("the second has changed something: %v, %v", got, d.last)
		}
		b.Kill()
		time.Sleep(2 * bubble.TTL)
		if got := d.owners(); len(got) != len(items) {
			t.Errorf("after the first has crashed, owned are %v", got)
		}
	})
}

// When Assign returns, all work has returned, and all items have been handed on.
func TestAssignWaitsForWork(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		enough, failed := errors.New("enough"), errors.New("failed")
		for _, tt := range []struct {
			name string
			end  func(cancel context.CancelCauseFunc, p *group.Presence)
			want error
		}{
			{"its context ends", func(cancel context.CancelCauseFunc, _ *group.Presence) { cancel(enough) }, enough},
			{"the member leaves", func(_ context.CancelCauseFunc, p *group.Presence) { go p.Leave(t.Context()) }, elect.ErrResigned},
			{"the member is removed", func(_ context.CancelCauseFunc, p *group.Presence) { c.Remove("workers-members", p.Term().Member().Key) }, elect.ErrLost},
			{"work fails", nil, failed},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			p := join(t, bubble.Client(t, c, tt.name), "a", "")
			ended, slow := make(chan error, 1), 0
			var mu sync.Mutex
			go func() {
				ended <- p.Assign(ctx, []string{"x", "y", "z"}, func(ctx context.Context, item string, _ *elect.Term) error {
					if tt.end == nil && item == "x" {
						time.Sleep(time.Second)
						return failed
					}
					<-ctx.Done()
					time.Sleep(time.Minute)
					mu.Lock()
					defer mu.Unlock()
					slow++
					return nil
				})
			}()
			time.Sleep(2 * time.Second)
			if tt.end != nil {
				tt.end(cancel, p)
			}
			synctest.Wait()
			if len(ended) > 0 {
				t.Errorf("%s: Assign does not wait for work", tt.name)
			}
			if stands := len(c.Members("workers-item-y")); stands != 1 {
				t.Errorf("%s: %d stand for an item while its work goes on", tt.name, stands)
			}
			bubble.Want(t, <-ended, tt.want)
			if min := 2; slow < min {
				t.Errorf("%s: %d works have returned", tt.name, slow)
			}
			for _, item := range []string{"x", "y", "z"} {
				if stands := len(c.Members("workers-item-" + item)); stands != 0 {
					t.Errorf("%s: %d stand for %s", tt.name, stands, item)
				}
			}
			p.Leave(t.Context())
			cancel(nil)
		}
	})
}

// An item whose work has returned nil stays with its member, and is begun again by the next.
func TestAssignDone(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		begun := make(chan string, 10)
		member := func(ctx context.Context, id string) {
			p := join(t, bubble.Client(t, c, id), id, "")
			go p.Assign(ctx, []string{"x"}, func(_ context.Context, item string, t *elect.Term) error {
				begun <- id
				return nil
			})
			time.Sleep(2 * bubble.TTL)
		}
		ctx, cancel := context.WithCancel(t.Context())
		member(ctx, "a")
		if len(begun) != 1 || <-begun != "a" {
			t.Fatal("a has not begun once")
		}
		if _, err := operate.New(bubble.Client(t, c, "operator"), "workers-item-x", "").AskToResign(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(bubble.TTL)
		if len(begun) > 0 {
			t.Errorf("%s has begun again what is done, in another term", <-begun)
		}
		member(t.Context(), "a") // the same item falls to it
		if len(begun) > 0 {
			t.Errorf("%s has begun what is done", <-begun)
		}
		cancel()
		time.Sleep(time.Second)
		if len(begun) != 1 {
			t.Errorf("the next has begun %d times", len(begun))
		}
	})
}

// Work may resign the item's term: it begins again in another one.
func TestAssignResigned(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough, tokens := errors.New("enough"), []uint64(nil)
		p := join(t, bubble.Client(t, c, "a"), "a", "")
		err := p.Assign(ctx, []string{"x"}, func(ctx context.Context, _ string, term *elect.Term) error {
			if tokens = append(tokens, term.Token()); len(tokens) == 3 {
				cancel(enough)
			}
			return term.Resign(ctx)
		})
		bubble.Want(t, err, enough)
		if len(tokens) != 3 || !slices.IsSorted(tokens) {
			t.Errorf("it was begun with the tokens %v", tokens)
		}
	})
}

// The term of an item that is done may be resigned late. The item stays done.
func TestAssignResignedLate(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough, begun := errors.New("enough"), make(chan *elect.Term, 10)
		p := join(t, bubble.Client(t, c, "a"), "a", "")
		ended := make(chan error, 1)
		go func() {
			ended <- p.Assign(ctx, []string{"x"}, func(_ context.Context, _ string, t *elect.Term) error {
				begun <- t
				return nil
			})
		}()
		first := <-begun
		synctest.Wait()
		first.Resign(t.Context())
		time.Sleep(bubble.TTL)
		if line := c.Members("workers-item-x"); len(line) != 1 || line[0].Position <= first.Member().Position || len(begun) > 0 {
			t.Errorf("after position %d in line are %v, and %d have begun again", first.Member().Position, line, len(begun))
		}
		cancel(enough)
		bubble.Want(t, <-ended, enough)
	})
}

// Without an ID in the options, a member still has one, and its share.
func TestAssignWithoutID(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		d := newDesk(t)
		d.member(t.Context(), bubble.Client(t, c, "a"), "", someItems(3))
		if got := d.owners(); len(got) != 3 {
			t.Errorf("owned are %v", got)
		}
	})
}

func TestOwners(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		items := []string{"x", "/var/log/mail.log", ".", "日本_x"}
		watcher := group.New(bubble.Client(t, c, "watcher"), "workers", nil)
		owners := func(items ...string) map[string]group.Owner {
			t.Helper()
			byItem := make(map[string]group.Owner)
			for i, o := range bubble.Must[[]group.Owner](t)(watcher.Owners(t.Context(), items...)) {
				if len(items) > 0 && o.Item != items[i] {
					t.Errorf("owner %d is of %s, want %s", i, o.Item, items[i])
				}
				byItem[o.Item] = o
			}
			return byItem
		}
		if all := owners(); len(all) != 0 {
			t.Errorf("before the first was owned: %v", all)
		}
		if o := owners("x")["x"]; o != (group.Owner{Item: "x"}) {
			t.Errorf("an item that was never owned: %+v", o)
		}
		began := time.Now().UTC()
		d := newDesk(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := d.member(ctx, bubble.Client(t, c, "a"), "a", items)
		d.owners()
		for _, all := range []map[string]group.Owner{owners(), owners(items...)} {
			if len(all) != len(items) {
				t.Errorf("owned are %v", all)
			}
			for _, item := range items {
				if o := all[item]; o != (group.Owner{Item: item, ID: "a", Token: d.last[item], Since: began, Held: true}) {
					t.Errorf("the owner of %q is %+v, want a with token %d since %v", item, o, d.last[item], began)
				}
			}
		}
		cancel()
		<-ended
		for item, o := range owners() {
			if o != (group.Owner{Item: item, ID: "a", Token: d.last[item], Since: began}) {
				t.Errorf("when its owner has gone, that of %q is %+v", item, o)
			}
		}

		// Whoever is first in line owns the item, also before it has said so.
		term := bubble.Must[*elect.Term](t)(elect.New(bubble.Client(t, c, "b"), "workers-item-x", &elect.Options{ID: "b"}).Campaign(t.Context()))
		if o := owners("x")["x"]; o != (group.Owner{Item: "x", ID: "b", Token: term.Token(), Held: true}) {
			t.Errorf("of one that has just begun: %+v", o)
		}
		term.Resign(t.Context())
	})
}

// Owners whose server lags behind shows who owns an item now.
func TestOwnersWhereServerLags(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Lags(bubble.Client(t, c, "watcher"))
		watcher := group.New(b, "workers", nil)
		for n, items := range [][]string{{"x"}, nil} {
			bubble.Must[[]group.Owner](t)(watcher.Owners(t.Context(), items...))
			item := []string{"x", "y"}[n]
			ctx, cancel := context.WithCancel(t.Context())
			ended := newDesk(t).member(ctx, bubble.Client(t, c, fmt.Sprint(n)), "a", []string{item})
			synctest.Wait()
			cancel()
			<-ended
			b.Lag()
			owners := bubble.Must[[]group.Owner](t)(watcher.Owners(t.Context(), items...))
			if len(owners) != n+1 || owners[n].Item != item || owners[n].ID != "a" || owners[n].Since.IsZero() {
				t.Errorf("of %v the owners are %+v, want that %s was a's", items, owners, item)
			}
		}
	})
}

// What an item that moves costs, as the comment of Assign says.
func TestRequestsOfAssign(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		d := newDesk(t)
		a, b := bubble.Client(t, c, "a"), bubble.Client(t, c, "b")
		ended := d.member(ctx, a, "a", []string{"x2"})
		d.member(t.Context(), b, "b", []string{"x2"})
		if owner := d.owners()["x2"]; owner != "a" {
			t.Fatalf("the item falls to %s; choose another, which moves when a leaves", owner)
		}
		before := c.Requests()
		cancel()
		<-ended
		synctest.Wait()
		n := c.Requests().Since(before)
		watches := []memory.Op{memory.OpHeartbeat, memory.OpGone, memory.OpWatch, memory.OpWatchPlace}
		if got := n.Of("a") - n.Of("a", watches...); got != 2 { // of the item, and of the group
			t.Errorf("to leave has cost %d requests, want 2: %v", got, n)
		}
		if got := n.Of("b") - n.Of("b", watches...) - n.Of("b", memory.OpWatchLine); got != 2 { // here a join tells the place, and the fence
			t.Errorf("to get the item has cost %d requests, want 2: %v", got, n)
		}
	})
}
