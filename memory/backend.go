package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
)

// closeBound is how long Close waits for the coordinator at most.
const closeBound = time.Second

// errLostAnswer is what becomes of a call whose effect nobody can know.
var errLostAnswer = fmt.Errorf("%w: the connection broke before the answer came; read again what the call was to change", backend.ErrUnavailable)

// A Backend is one client of a [Coordinator], with a connection of its own that
// faults can be put into: see [Backend.Cut] and its neighbours. It is safe for
// concurrent use. All its fields are guarded by the coordinator's lock, as the
// two live in one process; what it knows, it knows from answers alone.
type Backend struct {
	c    *Coordinator
	name string

	up, down pipe
	broken   bool    // the connection is dead: the client, cut off, does not know, or cannot make another
	gone     bool    // Close has hung up for good
	calls    []*call // unanswered, in the order of sending

	closed  bool
	session *session // the live one, or nil
	opening *opening // while one is being opened
	seen    uint64   // the highest index of the log in any answer

	loseRequest, loseAnswer losses

	rate  float64 // by which the coordinator's clock is faster; see Drift
	reset error   // for good: nobody knows how far the log had really got

	severed int         // requests that have broken a connection; 0 where none does
	again   *time.Timer // connects anew after that
	hidden  bool        // no connection can be made
}

var _ backend.Backend = (*Backend)(nil)

// Name returns the name that the client was made with.
func (b *Backend) Name() string { return b.name }

// An opening is a session on its way, shared by all who wait for it.
type opening struct {
	id    uint64
	call  *call
	timer *time.Timer
	done  chan struct{} // closed when session or err is set
	ended bool

	session *session
	err     error
}

// Session returns the live session and opens one where there is none; see
// [backend.Backend]. It blocks until the coordinator has answered, at most for a
// session time: then it fails with [backend.ErrUnavailable].
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.live(ctx)
	if err != nil {
		return nil, &backend.Error{Backend: scheme, Op: string(OpOpen), Err: err}
	}
	return s, nil
}

func (b *Backend) live(ctx context.Context) (*session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	b.c.lock()
	switch {
	case b.closed:
		b.c.unlock()
		return nil, backend.ErrClosed
	case b.reset != nil:
		b.c.unlock()
		return nil, b.reset
	case b.session != nil && b.session.alive() == nil:
		s := b.session
		b.c.unlock()
		return s, nil
	case b.opening == nil:
		b.open()
	}
	o := b.opening
	b.c.unlock()
	select {
	case <-o.done:
		return o.session, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// open asks for a new session. The client chooses its id, so that it can ask again,
// or take back, what it has had no answer to.
func (b *Backend) open() {
	id := b.c.newID()
	o := &opening{id: id, done: make(chan struct{})}
	o.call = &call{op: OpOpen}
	o.call.apply = func() (any, error) {
		b.c.grant(b, id)
		return b.c.store.index, nil
	}
	o.call.then = func(v any, err error) {
		switch {
		case err != nil || o.ended:
		case time.Since(o.call.sent) >= b.c.ttl:
			b.fail(o, b.tooLate())
		case v.(uint64) < b.seen:
			b.fail(o, b.wentBack(v.(uint64)))
		default:
			b.opened(o)
		}
	}
	o.timer = time.AfterFunc(b.c.ttl, func() {
		b.c.lock()
		defer b.c.unlock()
		b.fail(o, b.tooLate())
	})
	b.opening = o
	b.send(o.call)
}

func (b *Backend) tooLate() error {
	return fmt.Errorf("%w: no answer within %v; the client is cut off, or the coordinator stands still", backend.ErrUnavailable, b.c.ttl)
}

// wentBack notes that the log has gone back. No session is opened from then on, also
// when the log has come as far again: what it says then is not what it said before.
func (b *Backend) wentBack(index uint64) error {
	if b.reset == nil {
		b.reset = fmt.Errorf("%w: its log is at %d and was at %d; raise the fence of each election above every token that anybody holds, and then restart this process",
			backend.ErrReset, index, b.seen)
	}
	return b.reset
}

func (b *Backend) opened(o *opening) {
	o.ended = true
	o.timer.Stop()
	o.session = newSession(b, o.id, o.call.sent)
	b.opening, b.session = nil, o.session
	close(o.done)
}

// fail ends the opening, and takes the session back where the coordinator has
// granted it, or will.
func (b *Backend) fail(o *opening, err error) {
	if o.ended {
		return
	}
	b.abandon(o, err)
	b.hangUp()
	b.release(o.id)
}

// abandon ends the opening for those who wait for it.
func (b *Backend) abandon(o *opening, err error) {
	o.ended, o.err = true, err
	o.timer.Stop()
	b.opening = nil
	b.finish(o.call, nil, err)
	close(o.done)
}

// hangUp gives up the connection, with all that is on its way, for a new one.
func (b *Backend) hangUp() {
	b.discard()
	b.reconnect()
}

// release tells the coordinator that the session is over.
func (b *Backend) release(id uint64) *call {
	cl := &call{op: OpClose}
	cl.apply = func() (any, error) {
		if l := b.c.leases[id]; l != nil {
			b.c.release(l)
		}
		return nil, nil
	}
	b.send(cl)
	return cl
}

// receive takes an answer that has arrived.
func (b *Backend) receive(cl *call, v any, err error, index uint64) {
	if cl.finished {
		return
	}
	if s := cl.under; s != nil {
		if errors.Is(err, errNoSession) {
			b.told(s.id, fmt.Errorf("%w: the coordinator has ended it", backend.ErrSessionEnded), index)
			return
		}
		if s.alive() != nil { // its deadline has passed: the answer comes too late
			return
		}
	}
	if cl.under != nil && index < b.seen { // the session has come back with an earlier log
		cl.under.end(fmt.Errorf("%w: %w", backend.ErrSessionEnded, b.wentBack(index)), false)
		return
	}
	b.seen = max(b.seen, index)
	b.finish(cl, v, err)
}

// told takes the coordinator's word that it has ended the session.
func (b *Backend) told(id uint64, why error, index uint64) {
	if b.session == nil || b.session.id != id {
		return
	}
	if index < b.seen {
		why = fmt.Errorf("%w: %w", backend.ErrSessionEnded, b.wentBack(index))
	}
	b.session.end(why, true)
}

// Close ends the session, if there is one, and hangs up. It waits for the
// coordinator for a second at most, on the clock of package time; where that has
// not answered by then, the error says that the members stand until the
// coordinator ends the session. Closing twice is not an error.
func (b *Backend) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeBound)
	defer cancel()

	b.c.lock()
	b.closed = true
	if b.opening != nil {
		b.fail(b.opening, backend.ErrClosed)
	}
	if b.session != nil {
		b.session.end(fmt.Errorf("%w: the backend was closed", backend.ErrSessionEnded), false)
	}
	last := slices.Clone(b.calls) // releases of sessions: everything else has failed
	b.c.unlock()

	var err error
	for _, cl := range last {
		if _, err = wait(ctx, b.c, cl); err != nil {
			err = &backend.Error{Backend: scheme, Op: string(OpClose), Err: errStands}
			break
		}
	}
	b.retire()
	return err
}

// errStands is the error of closing without the coordinator's answer.
var errStands = fmt.Errorf("%w: what the session joined stands until the coordinator ends the session by itself", backend.ErrUnavailable)

// retire hangs up for good.
func (b *Backend) retire() {
	b.c.lock()
	defer b.c.unlock()
	b.vanish()
}

// vanish takes the client away without a word to the coordinator.
func (b *Backend) vanish() {
	b.gone = true
	b.discard()
	if b.again != nil {
		b.again.Stop()
	}
	for _, cl := range slices.Clone(b.calls) {
		b.finish(cl, nil, errStands)
	}
	b.c.clients = slices.DeleteFunc(b.c.clients, func(o *Backend) bool { return o == b })
}
