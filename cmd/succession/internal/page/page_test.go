package page_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/barrier"
	"github.com/succession-dev/succession/recipes/group"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/recipes/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inBubble runs f in virtual time, with a coordinator and the page of its elections.
func inBubble(t *testing.T, o page.Options, f func(t *testing.T, c *memory.Coordinator, s *page.Server)) {
	t.Helper()
	inBubbleOf(t, func(b backend.Backend) backend.Backend { return b }, o, f)
}

// inBubbles is inBubble where the coordinator tells of all lines at once, and where it tells of one at a time.
func inBubbles(t *testing.T, o page.Options, f func(t *testing.T, c *memory.Coordinator, s *page.Server)) {
	t.Run("all at once", func(t *testing.T) { inBubble(t, o, f) })
	t.Run("one line at a time", func(t *testing.T) {
		inBubbleOf(t, func(b backend.Backend) backend.Backend { return oneByOne{b, ""} }, o, f)
	})
}

// inBubbleOf is inBubble with the backend that of makes of the page's.
func inBubbleOf(t *testing.T, of func(backend.Backend) backend.Backend, o page.Options, f func(t *testing.T, c *memory.Coordinator, s *page.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		b := c.Client("page")
		s := page.New(of(b), o)
		t.Cleanup(func() {
			s.Close()
			b.Close()
		})
		f(t, c, s)
	})
}

func request(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, "http://localhost"+target, strings.NewReader(body))
	r.Host = "localhost"
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, loopback))
}

// candidate has a process stand in line, until the returned func has it leave or resign.
func candidate(t *testing.T, c *memory.Coordinator, name, id string) (leave func()) {
	t.Helper()
	b := c.Client(id)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	joined := make(chan struct{})
	go func() {
		defer close(ended)
		e := elect.New(b, name, &elect.Options{ID: id, Value: "value of " + id, Trace: func(ev trace.Event) {
			if ev.Kind == trace.Joined {
				close(joined)
			}
		}})
		if term, err := e.Campaign(ctx); err == nil {
			select {
			case <-ctx.Done():
			case <-term.Context().Done():
			}
			term.Resign(t.Context())
		}
	}()
	<-joined
	leave = func() {
		cancel()
		<-ended
		b.Close()
	}
	t.Cleanup(leave)
	return leave
}

// The list and the detail follow the election without being asked.
func TestFollows(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		first := candidate(t, c, "app/reports", "web-1")
		candidate(t, c, "app/reports", "web-2")
		candidate(t, c, "mails", "web-3")
		v := visit(t, s, "app/reports")
		v.sees("both elections", func() bool { return v.rows["app/reports"].Who == "web-1" && v.rows["mails"].Who == "web-3" })
		v.sees("the line", func() bool { return slices.Equal(v.table("Line", 1), []string{"web-1", "web-2"}) })
		if d := v.detail; d.Leader == nil || d.Leader.ID != "web-1" || d.Leader.Token != "1" || d.Leader.Value != "value of web-1" || len(d.Terms) != 1 || !d.Terms[0].Before {
			t.Errorf("the detail is %+v", d)
		}
		time.Sleep(3 * time.Second)
		first()
		v.sees("the next leader", func() bool { return v.detail.Leader != nil && v.detail.Leader.ID == "web-2" })
		v.sees("the next leader in the list", func() bool { return v.rows["app/reports"].Who == "web-2" && v.rows["app/reports"].Token == "2" })
		if terms := v.detail.Terms; len(terms) != 2 || terms[0].To == 0 || terms[0].To < terms[0].From || terms[1].ID != "web-2" || terms[1].Before {
			t.Errorf("the terms are %+v", terms)
		}
	})
}

// A fence that is raised in a term makes its token larger, and begins no other term.
func TestFenceRaisedInATerm(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		candidate(t, c, "reports", "web-1")
		v := visit(t, s, "reports")
		v.sees("a leader", func() bool { return v.rows["reports"].Token == "1" && len(v.detail.Terms) == 1 })
		time.Sleep(time.Minute)
		b := c.Client("operator")
		defer b.Close()
		if err := operate.New(b, "reports", "").RaiseFence(t.Context(), 5000); err != nil {
			t.Fatal(err)
		}
		v.sees("the larger token", func() bool { return v.rows["reports"].Token == "5001" && v.detail.Leader.Token == "5001" })
		if terms := v.detail.Terms; len(terms) != 1 || terms[0].To != 0 {
			t.Errorf("the terms are %+v", terms)
		}
	})
}

// So it is also for a page that is opened later: the history has the token with which the term began. Who was asked to resign still is.
func TestFenceRaisedBeforeThePage(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		b := c.Client("web")
		defer b.Close()
		began := time.Now().UnixMilli()
		term, err := elect.New(b, "reports", &elect.Options{ID: "web-1", History: 5}).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer term.Resign(t.Context())
		time.Sleep(time.Minute)
		if err := operate.New(b, "reports", "anna").RaiseFence(t.Context(), 5000); err != nil {
			t.Fatal(err)
		}
		v := visit(t, s, "reports")
		v.sees("one term", func() bool {
			r, terms := v.rows["reports"], v.detail.Terms
			return len(v.rows) == 1 && r.Token == "5001" && len(terms) == 1 && terms[0].From == began && terms[0].To == 0 && !terms[0].Told
		})
	})
}

// An election that was seen is still shown when nobody stands in its line, and so is one that was named.
func TestVacant(t *testing.T) {
	inBubble(t, page.Options{Names: []string{"never"}}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		leave := candidate(t, c, "reports", "web-1")
		v := visit(t, s, "")
		v.sees("a leader", func() bool { return v.rows["reports"].Who == "web-1" })
		leave()
		v.sees("that nobody leads", func() bool {
			return v.rows["reports"].State == "nobody leads" && v.rows["reports"].Mood == "bad" && v.rows["never"].State == "nobody leads"
		})
		for range 3600 {
			time.Sleep(time.Second)
			for len(v.events) > 0 {
				v.takes(<-v.events)
			}
		}
		v.sees("that it was forgotten", func() bool { _, there := v.rows["reports"]; return !there && v.rows["never"].Name != "" })
	})
}

// However many pages show one election, the coordinator is asked as for one; and not at all when
// none is open.
func TestNoHerd(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		candidate(t, c, "reports", "web-1")
		cost := func(visitors int) int {
			var all []*visitor
			for range visitors {
				v := visit(t, s, "reports")
				v.sees("the leader", func() bool { return v.detail.Leader != nil && v.ready })
				all = append(all, v)
			}
			before := c.Requests()
			time.Sleep(time.Minute)
			n := c.Requests().Since(before).Of("page")
			for _, v := range all {
				v.goes()
			}
			time.Sleep(time.Minute)
			return n
		}
		one, many := cost(1), cost(20)
		if one == 0 || many > one+one/10+1 {
			t.Errorf("in a minute one page costs %d requests, and twenty cost %d", one, many)
		}
		before := c.Requests()
		time.Sleep(time.Minute)
		if n := c.Requests().Since(before); n.Of("page", memory.OpLine, memory.OpHead, memory.OpLines, memory.OpWatch, memory.OpWatchLine) != 0 {
			t.Errorf("without a page the coordinator is asked %v", n)
		}
	})
}

// Recipes are one row, whatever lines they have, and show what these say together. So they do if all
// have one name.
func TestRecipes(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		b := c.Client("recipes")
		defer b.Close()
		q := queue.New(b, "mails", &queue.Options{Options: elect.Options{ID: "sender"}})
		g := group.New(b, "mails", &elect.Options{ID: "web-1", Value: "idle"})
		for _, item := range []string{"first", "second"} {
			if _, err := q.Put(t.Context(), item); err != nil {
				t.Fatal(err)
			}
		}
		taken, err := q.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		present, err := g.Join(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			present.Assign(ctx, []string{"disk"}, func(ctx context.Context, _ string, _ *elect.Term) error {
				<-ctx.Done()
				return nil
			})
		})
		candidate(t, c, "mails", "leader")
		for _, name := range []string{"some-members", "some-waiting"} { // nothing else says that these are of a recipe
			candidate(t, c, name, "leader")
		}
		for _, id := range []string{"holder", "waiter"} {
			running.Go(func() {
				if held, err := lock.NewSemaphore(b, "mails", 1, &elect.Options{ID: id}).Acquire(ctx); err == nil {
					<-ctx.Done()
					held.Unlock(t.Context())
				}
			})
			running.Go(func() { barrier.New(b, "mails", 3, &elect.Options{ID: id}).Wait(ctx) })
			synctest.Wait()
		}

		v := visit(t, s, "mails-items")
		v.sees("the queue", func() bool { return slices.Equal(v.table("Items", 2), []string{"sender", ""}) })
		want := map[string]row{
			"mails":          {"mails", "mails", "election", "leader", "", "leads", "good"},
			"mails-arrivals": {"mails", "mails-arrivals", "barrier", "", "", "present", "quiet"},
			"mails-items":    {"mails", "mails-items", "queue", "", "", "1 taken, 0 wait", "quiet"},
			"mails-members":  {"mails", "mails-members", "group", "", "", "present", "quiet"},
			"mails-slots":    {"mails", "mails-slots", "semaphore", "", "", "1 wait", "quiet"},
			"some-members":   {"some-members", "some-members", "election", "leader", "", "leads", "good"},
			"some-waiting":   {"some-waiting", "some-waiting", "election", "leader", "", "leads", "good"},
		}
		v.sees("one row for each", func() bool {
			rows := maps.Clone(v.rows)
			for line, r := range rows {
				r.Token = ""
				rows[line] = r
			}
			return maps.Equal(rows, want)
		})
		if err := taken.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		v.sees("that an item was confirmed", func() bool { return slices.Equal(v.table("Items", 1), []string{"second"}) })
		v = visit(t, s, "mails")
		v.sees("the election", func() bool { return slices.Equal(v.table("Line", 1), []string{"leader"}) })
		v = visit(t, s, "mails-slots")
		v.sees("the semaphore", func() bool {
			return slices.Equal(v.table("Present", 1), []string{"holder", "waiter"}) && slices.Equal(v.table("Waiting for a slot", 1), []string{"waiter"})
		})
		v = visit(t, s, "mails-arrivals")
		v.sees("the barrier", func() bool { return slices.Equal(v.table("Present", 1), []string{"holder", "waiter"}) })
		v = visit(t, s, "mails-members")
		v.sees("the group", func() bool {
			return v.detail.Name == "mails" && slices.Equal(v.table("Present", 3), []string{"idle"}) && slices.Equal(v.table("Items", 1), []string{"web-1"})
		})
		if err := present.Set(t.Context(), "busy"); err != nil {
			t.Fatal(err)
		}
		v.sees("a new value", func() bool { return slices.Equal(v.table("Present", 3), []string{"busy"}) })
		stop()
		running.Wait()
		present.Leave(t.Context())
	})
}

// A name that was asked for is what has that name: an election only if there is one.
func TestNamesakes(t *testing.T) {
	inBubble(t, page.Options{Names: []string{"mails", "slots"}}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		b := c.Client("recipes")
		defer b.Close()
		if _, err := queue.New(b, "mails", nil).Put(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		held, err := lock.NewSemaphore(b, "slots", 2, &elect.Options{ID: "holder"}).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer held.Unlock(t.Context())
		v := visit(t, s, "mails")
		v.sees("the recipes alone", func() bool {
			return v.ready && slices.Equal(slices.Sorted(maps.Keys(v.rows)), []string{"mails-items", "slots-slots"})
		})
		v.sees("the queue", func() bool { return v.detail.Kind == "queue" && slices.Equal(v.table("Items", 1), []string{"first"}) })
		other := visit(t, s, "slots")
		other.sees("the semaphore", func() bool {
			return other.detail.Kind == "semaphore" && slices.Equal(other.table("Present", 1), []string{"holder"})
		})
		leave := candidate(t, c, "mails", "leader")
		v.sees("the election", func() bool { return v.detail.Kind == "election" && v.rows["mails"].Who == "leader" })
		leave()
		v.sees("that nobody leads", func() bool { return v.detail.State == "nobody leads" && v.rows["mails"].State == "nobody leads" })
	})
}

// A thousand elections are looked at a few at a time, and a page is told of those alone that change.
func TestThousand(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		b := c.Client("members")
		defer b.Close()
		session, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			if _, err := session.Join(t.Context(), fmt.Sprintf("jobs/%03d", i), "web", ""); err != nil {
				t.Fatal(err)
			}
		}
		v := visit(t, s, "")
		v.sees("all", func() bool {
			n := 0
			for _, r := range v.rows {
				if r.Who == "web" {
					n++
				}
			}
			return n == 1000 && v.ready
		})
		lists := v.got["list"]
		leave := candidate(t, c, "jobs/500-more", "web-2")
		v.sees("one more", func() bool { return v.rows["jobs/500-more"].Who == "web-2" })
		leave()
		v.sees("one less", func() bool { return v.rows["jobs/500-more"].State == "nobody leads" })
		if n := v.got["list"] - lists; n > 6 {
			t.Errorf("%d lists have told of two changes", n)
		}
	})
}

// While the coordinator cannot be reached, the page says so, shows what was last known, and goes on by
// itself afterwards.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		b := c.Client("page")
		s := page.New(b, page.Options{})
		defer b.Close()
		defer s.Close()
		leave := candidate(t, c, "reports", "web-1")
		v := visit(t, s, "reports")
		v.sees("the leader", func() bool { return v.detail.Leader != nil && v.ready })
		v.sees("that all is well", func() bool { return v.lost == 0 && v.err == "" })
		soon := func(what string, do func(), ok func() bool) {
			t.Helper()
			begin := time.Now()
			do()
			v.sees(what, ok)
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("the page showed %s only after %v", what, took)
			}
		}
		before := time.Now()
		soon("the outage", b.Cut, func() bool { return v.lost != 0 && v.rows["reports"].Who == "web-1" })
		if since := time.UnixMilli(v.lost); since.Before(before.Add(-time.Second)) || since.After(before) {
			t.Errorf("the page says that nothing was heard since %v; it was cut off at %v", since, before)
		}
		leave()
		candidate(t, c, "reports", "web-2")
		time.Sleep(time.Minute)
		soon("the next leader", b.Heal, func() bool {
			return v.lost == 0 && v.rows["reports"].Who == "web-2" && v.detail.Leader != nil && v.detail.Leader.ID == "web-2" && v.detail.Error == ""
		})
		if !slices.ContainsFunc(v.detail.Gaps, func(g struct{ Kind string }) bool { return g.Kind == "not reached" }) {
			t.Errorf("the outage is not among the gaps %+v", v.detail.Gaps)
		}
		v.goes()
	})
}
