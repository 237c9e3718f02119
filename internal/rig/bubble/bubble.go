// Package bubble is what the tests of the recipes share: each test runs in a bubble of
// testing/synctest, in virtual time, against a coordinator of package memory.
package bubble

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/memory"
)

// TTL is the session time of the coordinators.
const TTL = 10 * time.Second

// Run runs f in virtual time against a coordinator of its own.
func Run(t *testing.T, f func(t *testing.T, c *memory.Coordinator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, memory.New(&memory.Options{TTL: TTL})) })
}

// Client returns a client of c, which is closed at the end of the test.
func Client(t *testing.T, c *memory.Coordinator, name string) *memory.Backend {
	t.Helper()
	b := c.Client(name)
	t.Cleanup(func() { b.Close() })
	return b
}

// Must returns a func that returns v, and ends the test if there is an error.
func Must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Want fails the test if err is not target; see [errors.Is].
func Want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("got %v, want %v", err, target)
	}
}

// NoShares returns s without shared members, NoItems without items, and NoRecords without records.
func NoShares(s backend.Session) backend.Session {
	return struct {
		kit.NoShares
		deeper
	}{deeper: deeper{deep{s}}}
}

func NoItems(s backend.Session) backend.Session {
	return struct {
		kit.NoItems
		deeper
	}{deeper: deeper{deep{s}}}
}

func NoRecords(s backend.Session) backend.Session {
	return struct {
		kit.NoRecords
		deeper
	}{deeper: deeper{deep{s}}}
}

// Of methods with the same name the one that is embedded less deeply counts.
type (
	deeper struct{ deep }
	deep   struct{ backend.Session }
)

// A Call is a call in the background. Value and Err are there once Done is closed.
type Call[T any] struct {
	Value T
	Err   error
	Done  chan struct{}
}

// Go begins a call in the background. When Go returns, the call has returned or waits for something.
func Go[T any](f func() (T, error)) *Call[T] {
	c := &Call[T]{Done: make(chan struct{})}
	go func() {
		c.Value, c.Err = f()
		close(c.Done)
	}()
	synctest.Wait()
	return c
}

// Returned reports whether the call has returned. It ends the test if that was with an error.
func (c *Call[T]) Returned(t *testing.T) bool {
	t.Helper()
	synctest.Wait()
	select {
	case <-c.Done:
		if c.Err != nil {
			t.Fatal(c.Err)
		}
		return true
	default:
		return false
	}
}
