package consul

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/lease"
)

// A session is one session of Consul at a time. It ends when its deadline passes, when
// Consul says that there is no such session, or when it is closed, whichever is first.
type session struct {
	b     *Backend
	id    string // of its first session of Consul, which its members are named after
	lease lease.Lease

	// ctx ends with the session; its cause says why. Everything that runs for the
	// session runs in it.
	ctx    context.Context
	cancel context.CancelCauseFunc

	reletting chan struct{} // holds one while members are moved to another session of Consul
	destroyed chan struct{} // closed when Consul has been told of the end, or cannot be
	stands    error         // that it could not be told; to be read after destroyed

	mu      sync.Mutex
	tenancy tenancy
	err     error            // why it has ended
	refused error            // why the newest renewal that came back was not granted; nil when it was
	joins   map[string]int   // how many members it has joined, by line
	queries map[topic]*query // blocking queries, shared by all who wait for the same
	ghosts  ghosts
}

var _ backend.Session = (*session)(nil)

// newSession returns the session. A deadline that has passed is not revived: a member
// that waits in line may be believed dead as well.
func newSession(b *Backend, t tenancy) *session {
	s := &session{
		b:         b,
		id:        t.id,
		tenancy:   t,
		reletting: make(chan struct{}, 1),
		destroyed: make(chan struct{}),
		joins:     make(map[string]int),
		queries:   make(map[topic]*query),
		ghosts: ghosts{
			standing:  make(map[string]standing),
			doubtful:  make(map[string]bool),
			abandoned: make(map[string]bool),
			more:      make(chan struct{}, 1),
		},
	}
	s.ctx, s.cancel = context.WithCancelCause(b.life)
	s.lease.Extend(t.sent, b.o.TTL)
	s.lease.Hold(true)
	return s
}

// alive returns nil while the session lives, and else why it does not. It ends a
// session whose deadline has passed, so that the law does not hang on how soon a
// timer fires.
func (s *session) alive() error {
	s.mu.Lock()
	err, refused := s.err, s.refused
	s.mu.Unlock()
	if err == nil && s.lease.Left() <= 0 {
		why := fmt.Errorf("%w: Consul has confirmed it last more than %v ago", backend.ErrSessionEnded, s.b.o.TTL)
		if refused != nil {
			why = fmt.Errorf("%w (%v)", why, refused)
		}
		s.end(why, false)
		return s.Err()
	}
	return err
}

// unknown ends the session because Consul does not know the session of Consul, unless
// another one has taken over from that meanwhile.
func (s *session) unknown(id string) error {
	if s.present().id != id {
		return errUnsettled
	}
	s.end(fmt.Errorf("%w: Consul does not know session %s any more: it was destroyed, or catalog node %q was deregistered", backend.ErrSessionEnded, id, s.b.o.Node), true)
	return s.Err()
}

// end ends the session, once. Unless Consul knows, it is told, as soon as it can be
// reached: until then the members stand, and what was on its way may still arrive.
func (s *session) end(why error, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = fail("session", "", why)
	s.lease.End()
	s.cancel(why)
	s.b.o.Logger.Info("session ended", "session", s.tenancy.id, "why", why)
	if known {
		close(s.destroyed)
		return
	}
	s.b.wg.Go(s.destroy)
}

// destroy has Consul end the session, which is done at the latest when Consul does
// so by itself.
func (s *session) destroy() {
	ctx, cancel := context.WithTimeout(s.b.life, 2*s.b.o.TTL)
	defer cancel()
	s.reletting <- struct{}{} // whoever moves members has given up
	wait, now := s.b.o.backoff(), s.present()
	for {
		attempt, cancel := context.WithTimeout(ctx, s.b.o.attempt())
		var err error
		for _, id := range append([]string{now.id}, now.old...) { // in this order a late move fails
			err = errors.Join(err, s.b.c.destroy(attempt, id))
		}
		cancel()
		if err == nil {
			close(s.destroyed)
			return
		}
		if wait.Sleep(ctx) != nil {
			s.stands = s.errStands(err)
			close(s.destroyed)
			return
		}
	}
}

func (s *session) errStands(why error) error {
	return fmt.Errorf("%w: what session %s joined stands until Consul ends that by itself, at most %v after its last renewal (%v)",
		backend.ErrUnavailable, s.id, 2*s.b.o.TTL, why)
}

// awaitDestroyed blocks until Consul has confirmed the end of the session.
func (s *session) awaitDestroyed(ctx context.Context) error {
	select {
	case <-s.destroyed:
	case <-ctx.Done():
		if !s.isDestroyed() {
			return s.errStands(context.Cause(ctx))
		}
	}
	return s.stands
}

// isDestroyed reports whether Consul has confirmed the end, or has had so much time that
// it has ended the session by itself.
func (s *session) isDestroyed() bool {
	select {
	case <-s.destroyed:
		return true
	default:
		return false
	}
}

// bind returns a context that ends with ctx, and with the session.
func (s *session) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

// once runs one request, which takes at most the given time.
func (s *session) once(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	if err := s.possible(ctx); err != nil {
		return err
	}
	ctx, cancel := s.bind(ctx)
	defer cancel()
	attempt, done := context.WithTimeout(ctx, limit)
	defer done()
	id := s.present().id
	err := f(attempt)
	if errors.Is(err, backend.ErrSessionEnded) {
		err = s.unknown(id)
	}
	if s.alive() != nil { // an answer that comes too late is none
		return context.Cause(s.ctx)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// retry runs a request that may be repeated, until Consul answers it. It is bounded
// by ctx, and by the deadline of the session.
func (s *session) retry(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := s.bind(ctx)
	defer cancel()
	wait := s.b.o.backoff()
	for {
		err := s.once(ctx, s.b.o.attempt(), f)
		if err == nil || !errors.Is(err, backend.ErrUnavailable) {
			return err
		}
		if err := wait.Sleep(ctx); err != nil {
			return err
		}
	}
}

// check is possible, for a call about the election or record with that name.
func (s *session) check(ctx context.Context, name string) error {
	if err := s.possible(ctx); err != nil {
		return err
	}
	return checkName(name)
}

// path is possible, for a call about the member, whose key it returns.
func (s *session) path(ctx context.Context, m backend.Member) (string, error) {
	if err := s.possible(ctx); err != nil {
		return "", err
	}
	return s.b.o.memberPath(m)
}

// possible returns why nothing can be sent under ctx and the session.
func (s *session) possible(ctx context.Context) error {
	if err := s.alive(); err != nil {
		return context.Cause(s.ctx)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// TTL returns the TTL that was asked for, which is what the session's deadline goes
// by; Consul itself ends the session after twice that. See [backend.Session].
func (s *session) TTL() time.Duration { return s.b.o.TTL }

func (s *session) Done() <-chan struct{} { return s.ctx.Done() }

func (s *session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the session; see [backend.Session]. Here it ends at once, whether or
// not Consul can be reached.
func (s *session) Close(ctx context.Context) error {
	s.end(fmt.Errorf("%w: it was closed", backend.ErrSessionEnded), false)
	return fail("close", "", s.awaitDestroyed(ctx))
}
