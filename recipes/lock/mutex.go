package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes"
)

// ErrLocked says that somebody else holds the lock, or waits for it; see [Mutex.TryLock].
var ErrLocked = errors.New("locked by another")

// A Mutex is a process's handle on a lock that one process holds at a time. It is safe for
// concurrent use. Each call of Lock or TryLock asks for the lock by itself, so two goroutines of
// one process also wait for each other.
type Mutex struct{ e *elect.Election }

// NewMutex returns a handle on the lock with the given name on b. It does not block and does not
// talk to the coordinator. If the name or an option is not allowed, every call fails with
// [backend.ErrInvalid]. The caller still has to close b.
//
// The options are those of an election: ID says who this process is, to others who look at the line.
// o may be nil.
//
// The lock, the [RWMutex] and the election of the same name are the same: they stand in one line.
// No other recipe uses that line.
func NewMutex(b backend.Backend, name string, o *elect.Options) *Mutex {
	return &Mutex{elect.New(b, name, aLock.Options(name, o))}
}

// Name returns the lock's name.
func (m *Mutex) Name() string { return m.e.Name() }

// Lock blocks until this call holds the lock or ctx ends. The caller must call [Held.Unlock] on
// what it gets, also after the lock was lost.
//
// If ctx ends first, Lock leaves the line, within [elect.Options] ResignTimeout, and returns the cause
// of ctx. Once the lock is held, ctx has no effect on it. Lock waits on, at the end of the line,
// when the session ends or the coordinator cannot be reached. It returns other errors, such as
// [backend.ErrDenied] or [backend.ErrSealed].
func (m *Mutex) Lock(ctx context.Context) (*Held, error) {
	return held(m.e.Campaign(ctx))
}

// TryLock is [Mutex.Lock] that does not wait for others: if somebody holds the lock, or waits for
// it, TryLock returns [ErrLocked] after four round trips at most, or a few more once the fence was
// raised. If two calls try at the same moment, both may return it. While the coordinator cannot be
// reached TryLock tries on until ctx ends.
func (m *Mutex) TryLock(ctx context.Context) (*Held, error) {
	return try(ctx, m.e)
}

func try(ctx context.Context, e *elect.Election) (*Held, error) {
	h, err := held(e.TryCampaign(ctx))
	if errors.Is(err, elect.ErrNotFirst) {
		return nil, fmt.Errorf("lock: %s: %w: %w", e.Name(), ErrLocked, err)
	}
	return h, err
}

// A Held is a lock that this process holds, or has held: it can be lost. It is safe for concurrent use.
type Held struct{ recipes.Hold }

func held(t *elect.Term, err error) (*Held, error) {
	if err != nil {
		return nil, err
	}
	return &Held{recipes.NewHold(t)}, nil
}

// Unlock ends the work under the lock and hands it to the next in line. It blocks until the
// coordinator has confirmed, at most for [elect.Options] ResignTimeout, whether ctx has ended or not.
// Calling it again returns the same result. It is not an error that the lock was lost before.
//
// An error means that the lock is still held. A goroutine unlocks it as soon as that is possible,
// and the end of the session unlocks it in any case.
func (h *Held) Unlock(ctx context.Context) error { return h.Term().Resign(ctx) }
