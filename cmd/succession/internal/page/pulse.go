package page

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
)

const (
	// beat is the time between an answer and the next small request.
	beat = 500 * time.Millisecond
	// silence is how long nothing may be heard before the page says so. It has room for a beat and for
	// an answer that is late.
	silence = 1250 * time.Millisecond
	// beatBound is how long a small request waits before another is sent: the connection that it went out
	// on may be dead.
	beatBound = 2 * time.Second
)

// errNoBeat is the cause of a context that beatBound ended.
var errNoBeat = fmt.Errorf("%w: no answer within %v", backend.ErrUnavailable, beatBound)

// A pulse says whether the coordinator is heard from. This is the one place that decides that. It needs requests
// of its own: a watch is silent when nothing changes, and also when the server has gone; and what a driver does when it
// is not answered, which is to ask again, tells nobody. It is safe for concurrent use.
type pulse struct {
	ask    func(context.Context) error // a request that needs a round trip
	turned bell                        // rings when it falls silent, and when it is heard from again

	mu     sync.Mutex
	last   time.Time   // when it was heard from last, or when somebody began to listen
	silent bool        // never while nobody listens
	aged   int         // how many times what was known has become old: when a silence has ended, and when nobody listens any more
	why    error       // why the newest request has failed, since last
	timer  *time.Timer // falls silent; nil while nobody listens
}

// listen asks until ctx ends.
func (p *pulse) listen(ctx context.Context) {
	p.mu.Lock()
	p.last, p.why = time.Now(), nil
	p.timer = time.AfterFunc(silence, p.fallSilent)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.timer.Stop()
		p.timer, p.silent = nil, false // nobody would turn that, and whoever waits for it would wait for ever
		p.aged++
		p.mu.Unlock()
		p.turned.ring()
	}()
	for ctx.Err() == nil {
		bounded, cancel := context.WithTimeoutCause(ctx, beatBound, errNoBeat)
		err := p.ask(bounded)
		cancel()
		if ctx.Err() == nil {
			p.note(err)
		}
		_ = backoff.Sleep(ctx, beat)
	}
}

// unanswered reports whether err says that no answer has come. All other errors are answers.
func unanswered(err error) bool {
	return errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrSessionEnded) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// note takes the outcome of a request, whosever it was.
func (p *pulse) note(err error) {
	p.mu.Lock()
	if unanswered(err) {
		p.why = err
		p.mu.Unlock()
		return
	}
	back := p.silent
	if back {
		p.aged++
	}
	p.last, p.silent, p.why = time.Now(), false, nil
	if p.timer != nil {
		p.timer.Reset(silence)
	}
	p.mu.Unlock()
	if back {
		p.turned.ring()
	}
}

func (p *pulse) fallSilent() {
	p.mu.Lock()
	fell := p.timer != nil && !p.silent && time.Since(p.last) >= silence
	p.silent = p.silent || fell
	p.mu.Unlock()
	if fell {
		p.turned.ring()
	}
}

// lost returns since when nothing has been heard, and why the newest request has failed; the zero time while the
// coordinator is heard from.
func (p *pulse) lost() (since time.Time, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.silent {
		return time.Time{}, nil
	}
	return p.last, p.why
}

// age returns how many times what was known has become old, and since when nothing has been heard, as lost does.
func (p *pulse) age() (aged int, lost time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent {
		lost = p.last
	}
	return p.aged, lost
}

// whileHeard waits until the coordinator is heard from, and calls f with a context that ends when that ends. So whoever
// looks begins anew at the moment that the coordinator is back, however long its last request would have waited, and however
// short the silence was.
func (p *pulse) whileHeard(ctx context.Context, f func(context.Context)) {
	var began int
	for {
		turned := p.turned.next()
		var lost time.Time
		if began, lost = p.age(); lost.IsZero() {
			break
		}
		select {
		case <-turned:
		case <-ctx.Done():
			return
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var judging sync.WaitGroup
	defer judging.Wait()
	defer cancel()
	judging.Go(func() {
		for {
			turned := p.turned.next()
			if aged, lost := p.age(); aged != began || !lost.IsZero() {
				cancel()
				return
			}
			select {
			case <-turned:
			case <-ctx.Done():
				return
			}
		}
	})
	f(ctx)
}
