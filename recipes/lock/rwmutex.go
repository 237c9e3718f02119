package lock

import (
	"context"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/recipes/internal/recipe"
)

// An RWMutex is a process's handle on a lock that any number of readers hold together, or one
// writer alone. It is safe for concurrent use. Each call asks for the lock by itself.
//
// All stand in one line, in the order in which they asked. A reader holds the lock as soon as no
// writer stands in front of it, and waits for the nearest writer alone. A writer waits for the
// member just in front. So nobody starves: a reader that asks after a writer does not pass it. The
// exit of a writer wakes the readers up to the next writer, and nobody else.
type RWMutex struct {
	write, read *elect.Election
	err         error // what is wrong with the options
}

var aLock = recipe.Recipe{Package: "lock", Owner: naming.Lock, History: true}

// NewRWMutex returns a handle on the lock with the given name on b; see [NewMutex]. Where the
// backend has no shared members, RLock fails with [errors.ErrUnsupported]. If Ready, Priority or
// Site is set, every call fails with [backend.ErrInvalid]. No history is kept of readers.
//
// The [Mutex] of the same name is the same lock, for writers only.
func NewRWMutex(b backend.Backend, name string, o *elect.Options) *RWMutex {
	made := aLock.Options(name, o)
	return &RWMutex{elect.New(b, name, made), elect.New(view.Of(b, shared), name, made), aLock.CheckOptions(name, o)}
}

// Name returns the lock's name.
func (m *RWMutex) Name() string { return m.write.Name() }

// Lock blocks until this call alone holds the lock, or ctx ends; see [Mutex.Lock].
func (m *RWMutex) Lock(ctx context.Context) (*Held, error) { return m.wait(ctx, m.write) }

// TryLock is [RWMutex.Lock] that does not wait for others; see [Mutex.TryLock].
func (m *RWMutex) TryLock(ctx context.Context) (*Held, error) { return m.try(ctx, m.write) }

// RLock blocks until this call holds the lock together with other readers, or ctx ends; see
// [Mutex.Lock]. Its token is larger than that of every writer that held the lock before it, and
// smaller than that of the next.
func (m *RWMutex) RLock(ctx context.Context) (*Held, error) { return m.wait(ctx, m.read) }

// TryRLock is [RWMutex.RLock] that does not wait for writers; see [Mutex.TryLock].
func (m *RWMutex) TryRLock(ctx context.Context) (*Held, error) { return m.try(ctx, m.read) }

func (m *RWMutex) wait(ctx context.Context, e *elect.Election) (*Held, error) {
	if m.err != nil {
		return nil, m.err
	}
	return held(e.Campaign(ctx))
}

func (m *RWMutex) try(ctx context.Context, e *elect.Election) (*Held, error) {
	if m.err != nil {
		return nil, m.err
	}
	return try(ctx, e)
}

// instead is what to use where there are no shared members.
const instead = "a Mutex, or another coordinator"

// shared returns s for a reader.
func shared(s backend.Session) backend.Session { return view.Shared{Session: s, Instead: instead} }
