package elect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect/internal/choice"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/again"
)

const (
	readyEvery   = time.Second     // between two questions
	readyTimeout = 5 * time.Second // for one answer
)

// A readiness is what a candidate last heard from its own [Options] Ready, while one of its members
// stands.
type readiness struct {
	ask func(context.Context) error

	mu      sync.Mutex
	why     error         // nil if ready
	changed chan struct{} // closed and made anew when a candidate becomes ready or unready
}

// newReadiness asks once. It returns nil for a candidate without Ready.
func newReadiness(ctx context.Context, ask func(context.Context) error) *readiness {
	if ask == nil {
		return nil
	}
	r := &readiness{ask: ask, changed: make(chan struct{})}
	r.look(ctx)
	return r
}

// now returns why the candidate is not ready, or nil if it is, and a channel that is closed when it
// becomes ready or unready. A candidate without Ready is always ready.
func (r *readiness) now() (changed <-chan struct{}, why error) {
	if r == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed, r.why
}

func (r *readiness) look(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	why := r.ask(bounded)
	if ctx.Err() != nil {
		return // ctx has ended: the answer may say only that
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if (why == nil) != (r.why == nil) {
		close(r.changed)
		r.changed = make(chan struct{})
	}
	r.why = why
}

// keepAsking asks until ctx ends.
func (r *readiness) keepAsking(ctx context.Context) {
	for backoff.Sleep(ctx, readyEvery) == nil {
		r.look(ctx)
	}
}

// watchReady ends the term when the leader is not ready and a member behind it may be.
func (t *Term) watchReady(ctx context.Context) {
	told := false // whether it has logged that it leads on
	passing := func(err error) bool { return !errors.Is(err, errors.ErrUnsupported) }
	_ = again.Until(ctx, passing, func() (over bool, err error) {
		changed, why := t.st.ready.now()
		if why == nil {
			told = false
			select {
			case <-changed:
			case <-ctx.Done():
			}
			return false, nil
		}
		v, err := t.st.look(ctx)
		if err != nil {
			return false, err
		}
		switch is := v.Of(t.m, false, t.e.o.rank()); {
		case is.Act == choice.Yield && t.st.newcomer(is.To):
			return false, backoff.Sleep(ctx, news)
		case is.Act == choice.Yield:
			t.lose(fmt.Errorf("%w: %w", ErrNotReady, why))
			return true, nil
		case !told:
			told = true
			t.e.o.Logger.Warn("not ready, and nobody behind is ready: leading on", "token", t.token, "err", why)
			t.e.trace(trace.Event{Kind: trace.Retrying, Err: fmt.Errorf("leading on, as nobody behind is ready: %w: %w", ErrNotReady, why)})
		}
		return false, t.st.await(ctx, v)
	})
}

// noteUnready notes that the member has left, if it was not ready.
func (st *standing) noteUnready() {
	if _, why := st.ready.now(); why == nil {
		return
	}
	st.e.mu.Lock()
	defer st.e.mu.Unlock()
	st.e.unready = time.Now()
}

// stayOut waits until those behind a member that has left, and was not ready, have had time to lead. They look at their line at once, and
// would give way to one that has joined again and comes before them, and that has not yet said that it is not ready.
func (e *Election) stayOut(ctx context.Context) error {
	e.mu.Lock()
	rest := time.Until(e.unready.Add(news))
	e.mu.Unlock()
	if rest <= 0 {
		return nil
	}
	return backoff.Sleep(ctx, rest)
}
