// Package bubble is what the tests of the recipes share: each test runs in a bubble of
// testing/synctest, in virtual time, against a coordinator of package memory.
package bubble

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// Ending runs a schedule in virtual time, and panics with what it is if it spins, so that virtual time stands still: a schedule needs some
// milliseconds, and gets a minute. While the process gets no processor, that does not pass: a tick that comes late is one tick.
func Ending(t *testing.T, what any, schedule func()) {
	t.Helper()
	const tick = 100 * time.Millisecond
	over := make(chan struct{})
	defer close(over)
	go func() {
		for range time.Minute / tick {
			select {
			case <-time.After(tick):
			case <-over:
				return
			}
		}
		panic(fmt.Sprintf("this schedule does not end:\n%+v", what))
	}()
	synctest.Test(t, func(*testing.T) { schedule() })
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

// A Lagging backend reads from a server that can lag behind: see [Lagging.Lag].
type Lagging struct {
	backend.Backend
	mu   sync.Mutex
	lags bool
	seen map[string]any // the newest results of reads
}

// Lags returns b with reads that lag behind after a call of [Lagging.Lag].
func Lags(b backend.Backend) *Lagging { return &Lagging{Backend: b, seen: make(map[string]any)} }

// Lag has each read of records, of a line or of the first free item that was done before return the same again. A Refresh
// ends that, and so does a write that was done, or refused for its version, as with ZooKeeper.
func (b *Lagging) Lag() { b.set(true) }

func (b *Lagging) set(lags bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lags = lags
}

func (b *Lagging) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return lagging{s, b}, err
}

type lagging struct {
	backend.Session
	b *Lagging
}

// A result is what a read has returned.
type result[T any] struct {
	v   T
	err error
}

func lag[T any](b *Lagging, what string, read func() (T, error)) (T, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old, ok := b.seen[what]; ok && b.lags {
		r := old.(result[T])
		return r.v, r.err
	}
	v, err := read()
	b.seen[what] = result[T]{v, err}
	return v, err
}

func (s lagging) Get(ctx context.Context, name string) (backend.Record, error) {
	return lag(s.b, "record "+name, func() (backend.Record, error) { return s.Session.Get(ctx, name) })
}

func (s lagging) Line(ctx context.Context, line string) (backend.Line, error) {
	return lag(s.b, "line "+line, func() (backend.Line, error) { return s.Session.Line(ctx, line) })
}

func (s lagging) Head(ctx context.Context, line string) (backend.Line, error) {
	return lag(s.b, "head "+line, func() (backend.Line, error) { return s.Session.Head(ctx, line) })
}

func (s lagging) List(ctx context.Context, dir string) ([]string, error) {
	return lag(s.b, "list "+dir, func() ([]string, error) { return s.Session.List(ctx, dir) })
}

func (s lagging) ReadAll(ctx context.Context, dir string) ([]backend.Record, error) {
	return lag(s.b, "all "+dir, func() ([]backend.Record, error) { return s.Session.ReadAll(ctx, dir) })
}

func (s lagging) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	return lag(s.b, "free "+items, func() (backend.Member, error) { return s.Session.Free(ctx, items, claims) })
}

func (s lagging) Refresh(ctx context.Context) error {
	s.b.set(false)
	return s.Session.Refresh(ctx)
}

func (s lagging) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	v, err := s.Session.Put(ctx, name, value, cond)
	s.wrote(err)
	return v, err
}

func (s lagging) Delete(ctx context.Context, name string, cond *backend.If) error {
	err := s.Session.Delete(ctx, name, cond)
	s.wrote(err)
	return err
}

func (s lagging) wrote(err error) {
	if err == nil || errors.Is(err, backend.ErrVersion) {
		s.b.set(false)
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
