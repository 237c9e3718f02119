// Package again has what callers of a session need to wait and to ask again.
package again

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
)

// withoutTTL is the interval of the slow re-check if sessions have no session time. The
// coordinator is then this machine, and a re-check takes microseconds.
const withoutTTL = time.Second

// Interval returns how long to wait before the next look: about a session time, with jitter, so
// that many waiters do not ask at the same moment.
func Interval(s backend.Session, j backoff.Jitter) time.Duration {
	d := s.TTL()
	if d <= 0 {
		d = withoutTTL
	}
	return d + j.UpTo(d/4)
}

// ForAWhile calls watch with a context that ends after [Interval]. If that context ends, it returns
// nil, so that the caller looks again: a watch may die unseen. If ctx has ended too, it returns the
// cause of ctx. It never returns the error of watch's own context, of which the caller knows
// nothing.
func ForAWhile(ctx context.Context, s backend.Session, j backoff.Jitter, watch func(context.Context) error) error {
	again, cancel := context.WithTimeout(ctx, Interval(s, j))
	defer cancel()
	err := watch(again)
	switch {
	case err == nil || again.Err() == nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// Ahead sets p to where m stands; see [backend.Session]. It is not inlined: otherwise the place
// that the session returns would stay on the stack of each caller as long as that waits.
//
//go:noinline
func Ahead(ctx context.Context, s backend.Session, m backend.Member, p *backend.Place) (err error) {
	*p, err = s.Ahead(ctx, m)
	return err
}

// WatchPlace does what WatchPlace of [backend.Session] does, for a session that cannot watch
// places: it calls Gone, and then Ahead. Such a watch may die unseen, so it calls Ahead after about
// a session time in any case.
func WatchPlace(ctx context.Context, s backend.Session, m backend.Member, p *backend.Place) error {
	j := backoff.JitterOf(ctx)
	wait := func(ctx context.Context) error { return s.Gone(ctx, p.Ahead) }
	if p.First {
		wait = func(ctx context.Context) error { return s.Gone(ctx, m) }
		switch r, err := s.Watch(ctx, m.Line, 0); { // returns at once
		case err == nil:
			if h, err := backend.ParseHeader(r.Value); err != nil || h != p.Header {
				// The place may be the same: Ahead may return less of the header than the record
				// has.
				was := *p
				if err := Ahead(ctx, s, m, p); err != nil || *p != was {
					return err
				}
			}
			own := wait
			wait = func(ctx context.Context) error {
				return Either(ctx, own, Changed(s, m.Line, r.Version))
			}
		case !errors.Is(err, errors.ErrUnsupported): // there are records
			wait = func(context.Context) error { return err }
		}
	}
	err := ForAWhile(ctx, s, j, wait)
	if err != nil && !errors.Is(err, backend.ErrDenied) {
		return err
	}
	// What was denied may have been the header, and then nobody has asked for m. But a session that may not see a member of its own
	// is to find that out, and to end after a while.
	return cmp.Or(Ahead(ctx, s, m, p), err)
}

// First calls all at the same time, and returns the index and the error of the one that returns first. The context of
// the others then ends; First returns when all have returned.
func First(ctx context.Context, calls ...func(context.Context) error) (index int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		index int
		err   error
	}
	results := make(chan result, len(calls))
	for i, call := range calls {
		go func() { results <- result{i, call(ctx)} }()
	}
	first := <-results
	cancel()
	for range calls[1:] {
		<-results
	}
	return first.index, first.err
}

// Either is [First] for a caller to whom it is the same which call returns first.
func Either(ctx context.Context, calls ...func(context.Context) error) error {
	_, err := First(ctx, calls...)
	return err
}

// AtOnce calls f for each index below n, sixteen at a time. At the first error it ends ctx, and
// returns that error when all calls have returned.
func AtOnce(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calls sync.WaitGroup
	free := make(chan struct{}, 16)
	for i := range n {
		free <- struct{}{}
		calls.Go(func() {
			defer func() { <-free }()
			if ctx.Err() != nil {
				return
			}
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	calls.Wait()
	return context.Cause(ctx)
}

// Changed returns a call for [First] that waits until the record of that name has another version than after. If the record
// cannot exist, the call waits until its context ends.
func Changed(s backend.Session, name string, after backend.Version) func(context.Context) error {
	return func(ctx context.Context) error {
		err := errors.ErrUnsupported
		if name != "" {
			_, err = s.Watch(ctx, name, after)
		}
		if errors.Is(err, errors.ErrUnsupported) {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return err
	}
}

// Onward keeps one who follows something from going back: the server of the next session may lag behind what
// the last one has shown, deletions too. The zero value has been shown nothing.
type Onward struct {
	shown     <-chan struct{} // the Done of the session that has shown last
	refreshed <-chan struct{} // and of the one that was refreshed
}

// Shows reports whether the change that s has just shown is no step back. If it may be one, because s is new, or seemsBack
// says so, Shows refreshes s and returns false; the caller looks again. It does so once in a session.
func (o *Onward) Shows(ctx context.Context, s backend.Session, seemsBack bool) (bool, error) {
	if o.shown != nil && (seemsBack || o.shown != s.Done()) && o.refreshed != s.Done() {
		err := s.Refresh(ctx)
		if err == nil {
			o.refreshed = s.Done()
		}
		return false, err
	}
	o.shown = s.Done()
	return true, nil
}

// Until calls try until try is done, or fails with an error that does not pass by itself (passing
// returns false), or ctx ends. After an error that passes it pauses, longer each time until a call
// succeeds. If a call succeeds and is not done, the next one follows at once, because try has
// waited for something itself. If ctx ends, Until returns the cause of ctx, with the last error. It
// never returns an error that passes.
func Until(ctx context.Context, passing func(error) bool, try func() (done bool, err error)) error {
	wait := backoff.New(ctx)
	for {
		done, err := try()
		switch {
		case err == nil && done:
			return nil
		case err != nil && !passing(err) && !ended(ctx, err):
			return err // it says what has happened, whether ctx has ended or not
		case err == nil && ctx.Err() == nil:
			wait.Reset()
			continue
		}
		if err := After(ctx, &wait, err); err != nil {
			return err
		}
	}
}

// After is After of wait. But if ctx has ended and err says no more than that, the error says why the attempt before failed.
func After(ctx context.Context, wait *backoff.Backoff, err error) error {
	if ctx.Err() != nil && (err == nil || ended(ctx, err)) {
		return wait.Cause(ctx)
	}
	return wait.After(ctx, err)
}

// ended reports that err says no more than that ctx has ended.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// Try calls f until it succeeds, or fails with an error that does not pass, or ctx ends; see
// [Until]. An earlier call of f may have had its effect although it failed.
func Try(ctx context.Context, passing func(error) bool, f func() error) error {
	return Until(ctx, passing, func() (bool, error) { return true, f() })
}

// Passing reports whether the same call may succeed later, in the same session or in the next. The
// coordinator may come back; a new session and a new member replace those that were lost; another
// writer may have finished; a foreign client may remove the entry that has no order. All other
// errors need somebody to act.
func Passing(err error) bool {
	for _, passing := range []error{backend.ErrUnavailable, backend.ErrSessionEnded, backend.ErrNotMember, backend.ErrLine, backend.ErrVersion} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
