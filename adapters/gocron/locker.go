package gocron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/lock"
)

// LockerOptions are the optional settings of a [Locker]. Nil and the zero value mean the defaults.
type LockerOptions struct {
	// Lock are the options of the locks.
	Lock elect.Options
	// Hold is how long a lock is held at least, from when it was obtained: a scheduler whose
	// clock is behind by less does not run the job again. It must be shorter than the pause
	// between two runs of a job, or the next run is left out. Zero means a second; what is
	// negative means no longer than the job.
	Hold time.Duration
	// Wait is how long a job whose time has come waits for a coordinator that cannot be reached.
	// Zero means five seconds.
	Wait time.Duration
}

// A Locker locks jobs, each by its name: of the schedulers whose time for a job has come, the first
// runs it. It is safe for concurrent use.
type Locker struct {
	b      backend.Backend
	prefix string
	o      LockerOptions

	ctx     context.Context
	stop    context.CancelFunc
	holding sync.WaitGroup // locks that are held on after their jobs
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker on b. The lock of the job J is named prefix-J; bytes that no name can have
// are written as _ and two hexadecimal digits. It does not block and does not talk to the
// coordinator. The caller must call Close, and closes b after that.
//
// Give each job a name (gocron.WithName): the default one is that of its function.
func NewLocker(b backend.Backend, prefix string, o *LockerOptions) *Locker {
	l := &Locker{b: b, prefix: prefix}
	if o != nil {
		l.o = *o
	}
	l.o.Hold = cmp.Or(l.o.Hold, time.Second)
	l.o.Wait = cmp.Or(l.o.Wait, 5*time.Second)
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

var errWait = errors.New("the coordinator could not be reached in time")

// Lock obtains the lock of a job. It does not wait for others: if another holds the lock, it fails
// with [lock.ErrLocked], and gocron does not run the job here.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.o.Wait, errWait)
	defer cancel()
	h, err := lock.NewMutex(l.b, l.prefix+"-"+escape(key), &l.o.Lock).TryLock(ctx)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", key, err)
	}
	return &held{l, h, time.Now()}, nil
}

// Close lets go of the locks that are held on after their jobs. It blocks until the coordinator has
// confirmed, at most for the ResignTimeout of the locks. Shut the scheduler down before.
func (l *Locker) Close() error {
	l.stop()
	l.holding.Wait()
	return nil
}

// held is a lock while its job runs.
type held struct {
	l     *Locker
	h     *lock.Held
	since time.Time
}

// Unlock lets go of the lock, at once or when it was held for long enough: then it does not block.
func (h *held) Unlock(ctx context.Context) error {
	rest := h.l.o.Hold - time.Since(h.since)
	if rest <= 0 || h.l.ctx.Err() != nil {
		return h.h.Unlock(ctx)
	}
	h.l.holding.Go(func() {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-h.h.Context().Done():
		case <-h.l.ctx.Done():
		}
		_ = h.h.Unlock(context.WithoutCancel(ctx)) // if it fails, it is tried on, and the log says so
	})
	return nil
}

// escape makes any key a part of a name.
func escape(key string) string {
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}
