package memory_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
)

func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, s := client(t, c, "a")
		join(t, s, "a")
		waiting := begin(func() error { return second(s.WatchLine(t.Context(), "other", backend.Line{})) })
		ok(t, "Close", b.Close())
		ok(t, "Close again", b.Close())
		wantLine(t, c)
		is(t, "WatchLine", waiting.returned(t, "WatchLine"), backend.ErrSessionEnded)
		_, err := b.Session(t.Context())
		is(t, "Session", err, backend.ErrClosed)
		if n := len(c.Sessions()); n != 0 {
			t.Fatalf("%d sessions after Close", n)
		}

		// Cut off, Close is bounded and says what stays behind.
		b, s = client(t, c, "b")
		join(t, s, "b")
		b.Cut()
		is(t, "Close of the session", s.Close(timeout(t, time.Second)), context.DeadlineExceeded)
		if !ended(s) {
			t.Fatal("the session has not ended here")
		}
		began := time.Now()
		is(t, "Close", b.Close(), backend.ErrUnavailable)
		if d := time.Since(began); d > time.Second {
			t.Fatalf("Close took %v", d)
		}
		wantLine(t, c, "b")
		b.Heal()
		time.Sleep(ttl)
		synctest.Wait()
		wantLine(t, c)

		// While a session is being opened, nothing of it stays.
		b = c.Client("c")
		b.Delay(time.Second/4, time.Second/4)
		opening := begin(func() error { _, err := b.Session(t.Context()); return err })
		time.Sleep(time.Second / 3)
		if n := len(c.Sessions()); n != 1 {
			t.Fatalf("%d sessions, want one whose answer is on its way", n)
		}
		ok(t, "Close", b.Close())
		is(t, "Session", opening.returned(t, "Session"), backend.ErrClosed)
		if n := len(c.Sessions()); n != 0 {
			t.Fatalf("%d sessions after Close", n)
		}
	})
}

// Many who ask at once get one session, and those who gave up do not spoil it.
func TestSessionIsShared(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := c.Client("")
		defer b.Close()
		b.Delay(time.Second, time.Second)
		hasty := begin(func() error { _, err := b.Session(timeout(t, time.Second)); return err })
		var calls []*pending
		for range 10 {
			calls = append(calls, begin(func() error { _, err := b.Session(t.Context()); return err }))
		}
		time.Sleep(2 * time.Second)
		is(t, "Session", hasty.returned(t, "Session"), context.DeadlineExceeded)
		for _, p := range calls {
			ok(t, "Session", p.returned(t, "Session"))
		}
		if n := c.Requests().Of(b.Name(), memory.OpOpen); n != 1 {
			t.Fatalf("%d requests to open a session, want 1", n)
		}
		if session(t, b) != session(t, b) {
			t.Fatal("two sessions at a time")
		}
	})
}
