package elect_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// An election whose record says that it went elsewhere has no leader here, not even one that
// led before.
func TestSealEndsATerm(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		term, err := elect.New(client(t, c, "a"), "reports", nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer term.Resign(t.Context())
		s, err := client(t, c, "operator").Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), "reports", backend.Header{Sealed: "etcd://h1"}.Encode(), nil); err != nil {
			t.Fatal(err)
		}
		select {
		case <-term.Context().Done():
		case <-time.After(ttl + ttl/4 + time.Second): // how often it looks
		}
		synctest.Wait()
		if err := term.Check(); !errors.Is(err, backend.ErrSealed) {
			t.Errorf("a session time and a quarter later the term says %v, want %v", err, backend.ErrSealed)
		}
	})
}
