package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// A session is the client's side of a session; a lease is the coordinator's. It ends when its
// deadline passes, when the coordinator says so, or when it is closed, whichever is first.
type session struct {
	kit.NoImports
	kit.NoDates
	kit.NoFiles

	b  *Backend
	id uint64

	deadline time.Time
	expiry   *time.Timer // at the deadline
	next     *time.Timer // for the next heartbeat
	beating  *call       // the heartbeat without an answer, or nil

	numbered uint64         // the newest number of a call that must take effect only once
	polls    map[poll]*call // blocking calls without an answer
	tracers  map[*func(backend.Heartbeat)]bool

	kit.Ender
	done    chan struct{}
	err     error // why it has ended; nil while it lives
	closing *call // tells the coordinator; nil if the coordinator has ended the session
}

// newSession begins a session whose opening was sent at the given time.
func newSession(b *Backend, id uint64, sent time.Time) *session {
	s := &session{
		b:        b,
		id:       id,
		deadline: sent.Add(b.c.ttl),
		polls:    make(map[poll]*call),
		done:     make(chan struct{}),
	}
	s.expiry = time.AfterFunc(time.Until(s.deadline), func() {
		b.c.lock()
		defer b.c.unlock()
		if s.alive() == nil { // the deadline was extended while this timer was firing
			s.expiry.Reset(time.Until(s.deadline))
		}
	})
	s.next = time.AfterFunc(s.untilBeat(sent), func() {
		b.c.lock()
		defer b.c.unlock()
		if s.alive() == nil {
			s.beat()
		}
	})
	return s
}

// alive returns nil while the session lives, and otherwise why it has ended. It ends the
// session if the deadline has passed, so that law L6 does not depend on how soon a timer
// fires.
func (s *session) alive() error {
	if s.err == nil && !time.Now().Before(s.deadline) {
		s.end(fmt.Errorf("%w: no heartbeat was acknowledged for %v", backend.ErrSessionEnded, s.b.c.ttl), false)
	}
	return s.err
}

// end ends the session in the client. What was on its way under the session is dropped. If
// the coordinator does not know of the end, it is told as soon as it can be reached.
func (s *session) end(why error, known bool) {
	if s.err != nil {
		return
	}
	s.err = why
	if now := time.Now(); now.Before(s.deadline) {
		s.deadline = now
	}
	s.expiry.Stop()
	s.next.Stop()
	s.b.session = nil
	for _, cl := range slices.Clone(s.b.calls) {
		if cl.under == s {
			s.b.finish(cl, nil, why)
		}
	}
	clear(s.polls)
	s.TellEnd(driver.Wrap("session", "", why))
	if !known {
		s.b.hangUp()
		s.closing = s.b.release(s.id)
	}
	close(s.done)
}

// send sends a call of the session, whose f runs at the coordinator.
func (s *session) send(op Op, l lost, f func(*lease) (any, error)) *call {
	cl := &call{op: op, under: s, lost: l}
	oldest := uint64(0)
	if l == lostResolve {
		s.numbered++
		cl.n, oldest = s.numbered, s.oldest()
	}
	cl.apply = func() (any, error) {
		ls := s.b.c.leases[s.id]
		switch {
		case ls == nil:
			return nil, errNoSession
		case l == lostResolve:
			return ls.once(cl.n, oldest, f)
		default:
			return f(ls)
		}
	}
	s.b.send(cl)
	return cl
}

// oldest returns the smallest number of a call that has no answer yet, or the
// next number.
func (s *session) oldest() uint64 {
	n := s.numbered
	for _, cl := range s.b.calls {
		if cl.under == s && cl.n > 0 {
			n = min(n, cl.n)
		}
	}
	return n
}

// ask waits for the answer to the call that start returns. If the name, or as invalid says
// another argument, is not allowed, there is no call.
func ask[T any](ctx context.Context, s *session, op Op, name string, invalid error, start func() *call) (T, error) {
	err := cmp.Or(backend.CheckName(name), invalid)
	var v any
	if err == nil {
		v, err = s.ask(ctx, start)
	}
	if err != nil {
		var zero T
		return zero, driver.Wrap(string(op), name, err)
	}
	t, _ := v.(T)
	return t, nil
}

// ask runs start with the coordinator locked. Nothing is delivered before start returns.
func (s *session) ask(ctx context.Context, start func() *call) (any, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.b.c.lock()
	if err := s.alive(); err != nil {
		s.b.c.unlock()
		return nil, err
	}
	cl := start()
	s.b.c.unlock()
	return wait(ctx, s.b.c, cl)
}

// wait waits for the call's answer. If ctx ends first, it marks the call as abandoned.
func wait(ctx context.Context, c *Coordinator, cl *call) (any, error) {
	select {
	case <-cl.done:
	case <-ctx.Done():
		c.lock()
		defer c.unlock()
		if !cl.finished {
			cl.abandoned = true
			return nil, context.Cause(ctx)
		}
	}
	return cl.value, cl.err
}

// TTL returns the coordinator's session time; see [backend.Session].
func (s *session) TTL() time.Duration { return s.b.c.ttl }

func (s *session) Done() <-chan struct{} { return s.done }

func (s *session) Err() error {
	s.b.c.lock()
	defer s.b.c.unlock()
	return driver.Wrap("session", "", s.err)
}

// Close ends the session; see [backend.Session]. In the client it ends at once, whether or
// not the coordinator can be reached.
func (s *session) Close(ctx context.Context) error {
	s.b.c.lock()
	s.end(fmt.Errorf("%w: it was closed", backend.ErrSessionEnded), false)
	cl := s.closing
	s.b.c.unlock()
	if cl == nil {
		return nil
	}
	_, err := wait(ctx, s.b.c, cl)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errStands): // the backend was closed meanwhile
		return driver.Wrap(string(OpClose), "", err)
	default:
		return driver.Wrap(string(OpClose), "", fmt.Errorf("%w: %w", errStands, err))
	}
}
