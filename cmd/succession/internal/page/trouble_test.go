package page_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// leads has a process lead for a while, and resign, or be killed.
func leads(t *testing.T, c *memory.Coordinator, name string, o elect.Options, killed bool) {
	t.Helper()
	b := c.Client(o.ID)
	term, err := elect.New(b, name, &o).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // the beginning is written
	if killed {
		b.Kill()
	} else if err := term.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	b.Close()
	time.Sleep(time.Minute) // the session has ended
}

// Trouble is what somebody has to look at, and nothing else is: an election whose candidates have all gone, also before
// the page was opened; one that flaps; a leader that cannot work. What is free because a leader was done is none.
func TestTrouble(t *testing.T) {
	inBubbles(t, page.Options{Names: []string{"gone", "nightly"}}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		leads(t, c, "gone", elect.Options{ID: "gone-1", History: 10}, true)
		leads(t, c, "nightly", elect.Options{ID: "cron-1", History: 10}, false)
		stands(t, c, "cold", elect.Options{ID: "web-1", Ready: func(context.Context) error { return errors.New("the cache is cold") }})
		stands(t, c, "well", elect.Options{ID: "web-1"})
		for i := range 8 {
			b := c.Client("flapper")
			term, err := elect.New(b, "flaps", &elect.Options{ID: fmt.Sprint("flap-", i), History: 100}).Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			term.Resign(t.Context())
			b.Close()
		}
		stands(t, c, "flaps", elect.Options{ID: "flap-9", History: 100})
		time.Sleep(time.Second)
		v := visit(t, s, "")
		v.sees("all", func() bool { return v.ready && len(v.rows) == 5 })
		for name, want := range map[string]row{
			"gone":    {State: "nobody leads; last: gone-1", Mood: "bad"},
			"nightly": {State: "free; last: cron-1", Mood: "quiet"},
			"cold":    {State: "leads, not ready", Mood: "bad"},
			"well":    {State: "leads", Mood: "good"},
			"flaps":   {State: "flaps: 9 terms in 5 min", Mood: "bad"},
		} {
			if r := v.rows[name]; r.State != want.State || r.Mood != want.Mood {
				t.Errorf("%s is %q, %s; want %q, %s", name, r.State, r.Mood, want.State, want.Mood)
			}
		}
		v.sees("that it flaps no more", func() bool { return v.rows["flaps"].State == "leads" && v.rows["flaps"].Mood == "good" })
		if !strings.HasPrefix(v.rows["gone"].State, "nobody leads") {
			t.Errorf("gone is %q", v.rows["gone"].State)
		}
	})
}

// However many elections there are, a page has the coordinator asked a few times a second, where that can tell all at once.
func TestCost(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		b := c.Client("members")
		defer b.Close()
		session, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const elections, seconds, most = 200, 10, 5
		for i := range elections {
			if _, err := session.Join(t.Context(), fmt.Sprintf("jobs/%03d", i), "web", ""); err != nil {
				t.Fatal(err)
			}
		}
		v := visit(t, s, "jobs/001")
		v.sees("all", func() bool { return v.ready && len(v.rows) == elections && v.detail.Leader != nil })
		before := c.Requests()
		time.Sleep(seconds * time.Second)
		if n := c.Requests().Since(before).Of("page"); n > most*seconds {
			t.Errorf("a page of %d elections has asked %d times in %d s; want at most %d a second", elections, n, seconds, most)
		}
	})
}
