package lock_test

import (
	"testing"
	"testing/synctest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/lock"
)

// Holders of a lock are in its history, one after the other. Those who hold it together are not.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		b := c.Client("a")
		defer b.Close()
		m := lock.NewRWMutex(b, "file", &elect.Options{ID: "a", History: 5})
		hold := func(held *lock.Held, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if err := held.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
		hold(m.RLock(t.Context()))
		if r := c.Record("file.history"); r.Version != backend.Absent {
			t.Errorf("a reader has written %s", r.Value)
		}
		hold(m.Lock(t.Context()))
		terms, err := operate.New(b, "file", "").History(t.Context())
		if err != nil || len(terms) != 1 || terms[0].ID != "a" || terms[0].Why != "resigned" {
			t.Errorf("the history is %+v, %v", terms, err)
		}
	})
}
