package group_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/group"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// join joins the group as a member with that ID, and with that value at first.
func join(t *testing.T, b backend.Backend, id, value string) *group.Presence {
	t.Helper()
	p := bubble.Must[*group.Presence](t)(group.New(b, "workers", &elect.Options{ID: id, Value: value}).Join(t.Context()))
	t.Cleanup(func() { p.Leave(context.Background()) })
	return p
}

// show is what a test expects of members: their IDs and values.
func show(members []group.Member) string {
	var all []string
	for _, m := range members {
		all = append(all, m.ID+"="+m.Value)
	}
	return strings.Join(all, " ")
}

func expect(t *testing.T, b backend.Backend, members string) {
	t.Helper()
	got := bubble.Must[[]group.Member](t)(group.New(b, "workers", nil).Members(t.Context()))
	if show(got) != members {
		t.Errorf("present are %q, want %q", show(got), members)
	}
}

// values are the records of values, as the coordinator has them.
func values(t *testing.T, b backend.Backend) []string {
	t.Helper()
	s := bubble.Must[backend.Session](t)(b.Session(t.Context()))
	return bubble.Must[[]string](t)(s.List(t.Context(), "workers-values"))
}

func set(t *testing.T, p *group.Presence, value string) {
	t.Helper()
	if err := p.Set(t.Context(), value); err != nil {
		t.Fatal(err)
	}
}

func leave(t *testing.T, p *group.Presence) {
	t.Helper()
	if err := p.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestMembers(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		watcher := bubble.Client(t, c, "watcher")
		expect(t, watcher, "")
		one := join(t, bubble.Client(t, c, "1"), "one", "at first")
		two := join(t, bubble.Client(t, c, "2"), "two", "")
		three := join(t, bubble.Client(t, c, "3"), "three", "")
		expect(t, watcher, "one=at first two= three=")
		set(t, one, "50%")
		set(t, two, "idle")
		expect(t, watcher, "one=50% two=idle three=")
		set(t, one, "")
		expect(t, watcher, "one= two=idle three=")

		members := bubble.Must[[]group.Member](t)(group.New(watcher, "workers", nil).Members(t.Context()))
		for i, p := range []*group.Presence{one, two, three} {
			if members[i].Token != p.Token() || i > 0 && p.Token() <= members[i-1].Token {
				t.Errorf("member %d has token %d, and its presence %d", i, members[i].Token, p.Token())
			}
		}
		leave(t, two)
		expect(t, watcher, "one= three=")
		bubble.Want(t, context.Cause(two.Context()), elect.ErrResigned)
		leave(t, two)
		// Leave also does its work when its context has ended.
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := one.Leave(over); err != nil {
			t.Error(err)
		}
		leave(t, three)
		expect(t, watcher, "")
		if left := values(t, watcher); len(left) > 0 {
			t.Errorf("values are left of members that have left: %v", left)
		}
	})
}

// Who has gone, and does not know it, cannot set a value.
func TestSetIsGuarded(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a, b := bubble.Client(t, c, "a"), bubble.Client(t, c, "b")
		removed, ended := join(t, a, "removed", ""), join(t, b, "ended", "")
		c.Remove("workers-members", removed.Term().Member().Key)
		bubble.Want(t, removed.Set(t.Context(), "x"), backend.ErrNotMember)
		b.Expire()
		<-ended.Context().Done()
		bubble.Want(t, ended.Set(t.Context(), "x"), backend.ErrSessionEnded)
		bubble.Want(t, context.Cause(ended.Context()), elect.ErrLost)
		if left := values(t, a); len(left) > 0 {
			t.Errorf("they have set %v", left)
		}
	})
}

// Values that the dead have left behind go when somebody joins, sixteen at a time. Those of members
// that stand are left alone, also where these joined later.
func TestSweep(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		lives := join(t, bubble.Client(t, c, "lives"), "lives", "")
		set(t, lives, "here")
		for i := range 20 {
			b := bubble.Client(t, c, fmt.Sprint("dies", i))
			set(t, join(t, b, fmt.Sprint("dies", i), ""), "x")
			b.Kill()
		}
		watcher := bubble.Client(t, c, "watcher")
		if n := len(values(t, watcher)); n != 21 {
			t.Fatalf("%d values, want 21", n)
		}
		join(t, bubble.Client(t, c, "early"), "early", "") // all stand: their sessions have not ended
		if n := len(values(t, watcher)); n != 21 {
			t.Fatalf("%d values after a join, while all stand; want 21", n)
		}
		time.Sleep(2 * bubble.TTL)
		expect(t, watcher, "lives=here early=")
		for _, n := range []int{5, 1} {
			join(t, bubble.Client(t, c, "next"), "next", "")
			if got := len(values(t, watcher)); got != n {
				t.Errorf("%d values are left, want %d", got, n)
			}
		}
		expect(t, watcher, "lives=here early= next= next=")
	})
}

// A hooked is a session that has something happen before a call.
type hooked struct {
	backend.Session
	list, all func()
	line      *backend.Line // what Line returns instead
}

func (s *hooked) List(ctx context.Context, dir string) ([]string, error) {
	if s.list != nil {
		s.list()
	}
	return s.Session.List(ctx, dir)
}

func (s *hooked) ReadAll(ctx context.Context, dir string) ([]backend.Record, error) {
	if s.all != nil {
		s.all()
	}
	return s.Session.ReadAll(ctx, dir)
}

func (s *hooked) Line(ctx context.Context, line string) (backend.Line, error) {
	if s.line != nil {
		return *s.line, nil
	}
	return s.Session.Line(ctx, line)
}

// The line that a sweep reads may be as old as its own join. Whoever joined after that stands.
func TestSweepSparesTheNewest(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a, watcher := bubble.Client(t, c, "a"), bubble.Client(t, c, "watcher")
		b := view.Of(bubble.Client(t, c, "b"), func(s backend.Session) backend.Session {
			return &hooked{Session: s, line: &backend.Line{}, list: func() { set(t, join(t, a, "newest", ""), "here") }}
		})
		join(t, b, "sweeps", "")
		expect(t, watcher, "sweeps= newest=here")
	})
}

// The value of a member that leaves while it is read is the one that it joined with.
func TestValueGoesWhileRead(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		p := join(t, bubble.Client(t, c, "a"), "a", "at first")
		set(t, p, "later")
		b := view.Of(bubble.Client(t, c, "b"), func(s backend.Session) backend.Session {
			return &hooked{Session: s, all: func() { leave(t, p) }}
		})
		expect(t, b, "a=at first")
	})
}

// What stands in the line for another purpose is told from a group, and is not disturbed.
func TestNotAGroup(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a, b := bubble.Client(t, c, "a"), bubble.Client(t, c, "b")
		term := bubble.Must[*elect.Term](t)(elect.New(a, "workers-members", nil).Campaign(t.Context()))
		g := group.New(b, "workers", nil)
		refused := func(err error) {
			t.Helper()
			bubble.Want(t, err, backend.ErrInvalid)
			if err == nil || !strings.Contains(err.Error(), "line workers-members ") {
				t.Errorf("%v does not name the line", err)
			}
		}
		_, err := g.Join(t.Context())
		refused(err)
		_, err = g.Members(t.Context())
		refused(err)
		for _, err := range g.Follow(t.Context()) {
			refused(err)
		}
		if n := len(c.Members("workers-members")); n != 1 {
			t.Errorf("%d stand in line, want the leader alone", n)
		}
		term.Resign(t.Context())

		p := join(t, b, "member", "")
		go elect.New(a, "workers-members", nil).Campaign(t.Context())
		synctest.Wait()
		expect(t, b, "member=")
		if n := len(c.Members("workers-members")); n != 2 || p.Check() != nil {
			t.Errorf("%d stand in line, want the member and a candidate that waits; %v", n, p.Check())
		}
	})
}

func TestArguments(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		for _, name := range []string{"no//name", "", "jobs/", "jobs/.."} { // with a suffix most would be names
			bad := group.New(b, name, nil)
			_, err := bad.Join(t.Context())
			bubble.Want(t, err, backend.ErrInvalid)
			_, err = bad.Members(t.Context())
			bubble.Want(t, err, backend.ErrInvalid)
			_, err = bad.Owners(t.Context())
			bubble.Want(t, err, backend.ErrInvalid)
			for _, err := range bad.Follow(t.Context()) {
				bubble.Want(t, err, backend.ErrInvalid)
				break
			}
		}
		_, err := group.New(b, "workers", &elect.Options{Margin: -1}).Join(t.Context())
		bubble.Want(t, err, backend.ErrInvalid)

		p := join(t, b, "one", "")
		bubble.Want(t, p.Set(t.Context(), strings.Repeat("x", backend.MaxValue+1)), backend.ErrInvalid)
		bubble.Want(t, p.Set(t.Context(), "\xff"), backend.ErrInvalid)
		expect(t, b, "one=")
		never := func(context.Context, string, *elect.Term) error { panic("work was begun") }
		for _, items := range [][]string{nil, {""}, {"x", "y", "x"}, {"\xff"}, {strings.Repeat("x", backend.MaxName)}} {
			bubble.Want(t, p.Assign(t.Context(), items, never), backend.ErrInvalid)
			if len(items) == 1 {
				_, err := group.New(b, "workers", nil).Owners(t.Context(), items...)
				bubble.Want(t, err, backend.ErrInvalid)
			}
		}
		bubble.Want(t, p.Assign(t.Context(), []string{"x"}, nil), backend.ErrInvalid)

		// An item after which no election can be named is refused by each member, not only by the one that it falls to.
		for item, o := range map[string]elect.Options{
			"app.history": {}, "x.unready": {}, strings.Repeat("x", backend.MaxName-len("workers-owners/")): {History: 1},
		} {
			for _, id := range []string{"a", "b"} {
				o := o
				o.ID = id
				p := bubble.Must[*group.Presence](t)(group.New(b, "workers", &o).Join(t.Context()))
				defer p.Leave(t.Context())
				soon, cancel := context.WithTimeout(t.Context(), bubble.TTL)
				bubble.Want(t, p.Assign(soon, []string{item}, never), backend.ErrInvalid)
				cancel()
			}
		}
	})
}

// Where something is lacking, the error says what to do. Without records, presence works, with the
// values of the options.
func TestUnsupported(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		unsupported := func(err error, hint string) {
			t.Helper()
			bubble.Want(t, err, errors.ErrUnsupported)
			if err != nil && !strings.Contains(err.Error(), hint) {
				t.Errorf("%q does not say %q", err, hint)
			}
		}
		b := view.Of(bubble.Client(t, c, "a"), bubble.NoShares)
		_, err := group.New(b, "workers", nil).Join(t.Context())
		unsupported(err, "migration")

		b = view.Of(bubble.Client(t, c, "b"), bubble.NoRecords)
		p := join(t, b, "one", "address")
		expect(t, b, "one=address")
		unsupported(p.Set(t.Context(), "x"), "Options")
		unsupported(p.Assign(t.Context(), []string{"x"}, func(context.Context, string, *elect.Term) error { return nil }), "another coordinator")
		_, err = group.New(b, "workers", nil).Owners(t.Context(), "x")
		unsupported(err, "another coordinator")
		leave(t, p)
		if n := len(c.Members("workers-members")) + len(c.Members("workers-item-x")); n > 0 {
			t.Errorf("%d stand in line", n)
		}
	})
}

// The requests that the comments promise.
func TestRequests(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		costs := func(what string, want int, f func()) {
			t.Helper()
			synctest.Wait()
			before := c.Requests()
			f()
			synctest.Wait()
			n := c.Requests().Since(before)
			if got := n.Total() - n.Total(memory.OpHeartbeat, memory.OpGone, memory.OpWatch, memory.OpWatchPlace); got != want {
				t.Errorf("%s costs %d requests, want %d: %v", what, got, want, n)
			}
		}
		a, b := bubble.Client(t, c, "a"), bubble.Client(t, c, "b")
		bubble.Must[backend.Session](t)(a.Session(t.Context()))
		var p, q *group.Presence
		costs("Join", 2, func() { p = join(t, a, "a", "") })
		q = join(t, b, "b", "")
		costs("Set", 1, func() { set(t, p, "x") })
		g := group.New(a, "workers", nil)
		costs("Members with one value", 2, func() { bubble.Must[[]group.Member](t)(g.Members(t.Context())) })
		set(t, q, "y")
		costs("Members with two values", 2, func() { bubble.Must[[]group.Member](t)(g.Members(t.Context())) })
		var r *group.Presence
		costs("Join where values are set", 3, func() { r = join(t, b, "c", "") })
		costs("Leave without a value", 1, func() { leave(t, r) })
		costs("Leave with a value", 2, func() { leave(t, q) })
	})
}
