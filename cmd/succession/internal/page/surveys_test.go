package page_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
)

// surveyed has each survey take five seconds, and then fail if fails is set.
type surveyed struct {
	backend.Session
	fails *atomic.Bool
}

const surveyTakes = 5 * time.Second

func (s surveyed) Survey(ctx context.Context) (map[string]backend.Standing, error) {
	time.Sleep(surveyTakes)
	if s.fails.Load() {
		return nil, fmt.Errorf("%w: the disk is slow", backend.ErrUnavailable)
	}
	return s.Session.Survey(ctx)
}

// inSlowBubble is inBubble with a coordinator that takes long to tell which elections there are, or fails to, and answers all else.
func inSlowBubble(t *testing.T, f func(t *testing.T, c *memory.Coordinator, b *memory.Backend, s *page.Server, fails *atomic.Bool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(&memory.Options{TTL: time.Hour})
		b := c.Client("page")
		fails := new(atomic.Bool)
		s := page.New(view.Of(b, func(s backend.Session) backend.Session { return surveyed{s, fails} }), page.Options{})
		t.Cleanup(func() {
			s.Close()
			b.Close()
		})
		f(t, c, b, s, fails)
	})
}

// What was known before an outage is not told as if it were so now, before it was read again.
func TestNotReadyAfterAnOutage(t *testing.T) {
	inSlowBubble(t, func(t *testing.T, c *memory.Coordinator, b *memory.Backend, s *page.Server, _ *atomic.Bool) {
		leave := candidate(t, c, "reports", "web-1")
		v := visit(t, s, "")
		v.sees("the leader", func() bool { return v.ready && v.rows["reports"].Who == "web-1" })
		b.Cut()
		v.sees("the outage, and what was known then", func() bool { return v.lost != 0 && v.ready })
		leave()
		candidate(t, c, "reports", "web-2")
		time.Sleep(time.Minute)
		b.Heal()
		v.sees("that the coordinator is heard from", func() bool { return v.lost == 0 })
		v.sees("the next leader", func() bool {
			if v.ready && v.rows["reports"].Who == "web-1" {
				t.Fatal("who led before the outage is told as if it were so now")
			}
			return v.ready
		})
	})
}

// While the elections cannot be read, nothing newer is known than what was asked for last with success.
func TestNothingNewer(t *testing.T) {
	inSlowBubble(t, func(t *testing.T, c *memory.Coordinator, _ *memory.Backend, s *page.Server, fails *atomic.Bool) {
		candidate(t, c, "reports", "web-1")
		begin := time.Now()
		v := visit(t, s, "")
		v.sees("the leader", func() bool { return v.ready && v.rows["reports"].Who == "web-1" })
		fails.Store(true)
		v.sees("why nothing newer is known", func() bool { return v.err != "" })
		if since := time.UnixMilli(v.since); since.Sub(begin) >= surveyTakes {
			t.Errorf("nothing newer is said to be known since %v; what is known was asked for at %v", since, begin)
		}
		fails.Store(false)
		v.sees("that all is read again", func() bool { return v.err == "" && v.ready })
		fails.Store(true)
		late := time.Now()
		v.sees("why nothing newer is known", func() bool { return v.err != "" })
		if since := time.UnixMilli(v.since); since.After(late) || since.Sub(begin) < surveyTakes {
			t.Errorf("nothing newer is said to be known since %v; what is known was told at %v, and before at %v", since, late, begin)
		}
	})
}
