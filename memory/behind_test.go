package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
)

// A client that lags behind reads what was so, but nothing older than what it has been told.
func TestLag(t *testing.T) {
	const behind = time.Second
	setUp := func(t *testing.T) (a, b backend.Session, read func() string) {
		c := memory.New(nil)
		session := func(name string, lag time.Duration) backend.Session {
			client := c.Client(name)
			client.Lag(lag)
			t.Cleanup(func() { client.Close() })
			s, err := client.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		a, b = session("a", 0), session("b", behind)
		return a, b, func() string {
			t.Helper()
			r, err := b.Get(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			return string(r.Value)
		}
	}
	put := func(t *testing.T, s backend.Session, name, value string) {
		t.Helper()
		if _, err := s.Put(t.Context(), name, []byte(value), nil); err != nil {
			t.Fatal(err)
		}
	}
	for name, hears := range map[string]func(t *testing.T, b backend.Session) error{
		"in time":       func(*testing.T, backend.Session) error { time.Sleep(behind); return nil },
		"by Refresh":    func(t *testing.T, b backend.Session) error { return b.Refresh(t.Context()) },
		"by a write":    func(t *testing.T, b backend.Session) error { put(t, b, "other", ""); return nil },
		"by a watch":    func(t *testing.T, b backend.Session) error { _, err := b.Watch(t.Context(), "r", 1); return err },
		"by a new line": func(t *testing.T, b backend.Session) error { _, err := b.Join(t.Context(), "e", "x", ""); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, read := setUp(t)
				time.Sleep(2 * behind)
				put(t, a, "r", "one")
				time.Sleep(behind / 2)
				put(t, a, "r", "two")
				if got := read(); got != "" {
					t.Errorf("it reads %q, want what was so a second ago", got)
				}
				time.Sleep(behind / 2)
				if got := read(); got != "one" {
					t.Errorf("it reads %q, want what was so a second ago", got)
				}
				if err := hears(t, b); err != nil {
					t.Fatal(err)
				}
				if got := read(); got != "two" {
					t.Errorf("it reads %q, and has heard of more", got)
				}
			})
		})
	}
}
