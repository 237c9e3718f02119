package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
)

// A session is one session of the coordinator, with a zk.Conn of its own.
type session struct {
	backend *Backend
	options *Options
	link    *link
	conn    *zk.Conn
	events  <-chan zk.Event // closed when the library has come to rest

	// ctx ends with the session, as callers see it: with the link, or before
	// that, when Close begins. Its cause is Err.
	ctx    context.Context
	cancel context.CancelCauseFunc
	torn   chan struct{} // closed when nothing of the session is left
	wg     sync.WaitGroup
	jobs   sync.WaitGroup // joins and pins: what Close waits for before it clears up
	kick   chan struct{}  // wakes the keeper

	watches watches

	mu    sync.Mutex
	own   map[string]*own          // by path
	turns map[string]chan struct{} // by line: held by a Join
	down  bool                     // no goroutine may be started any more
}

var _ backend.Session = (*session)(nil)

// newSession returns a session that is about to be established. Its keeper runs
// until the link is dead and everything has been torn down.
func newSession(b *Backend) (*session, error) {
	s := &session{
		backend: b,
		options: b.options,
		link:    newLink(b.options, &b.zxids),
		torn:    make(chan struct{}),
		kick:    make(chan struct{}, 1),
		own:     make(map[string]*own),
		turns:   make(map[string]chan struct{}),
	}
	s.watches.armed = make(map[watchKey]*watch)
	s.ctx, s.cancel = context.WithCancelCause(s.link.ctx)
	var err error
	s.conn, s.events, err = zk.Connect(b.servers, b.options.SessionTimeout,
		zk.WithDialer(s.link.dial),
		zk.WithHostProvider(s.link),
		zk.WithEventCallback(s.link.event),
		zk.WithLogger(libraryLog{b.options.Logger}),
		// A member's value and an election's record, or a record and its path.
		zk.WithMaxConnBufferSize(backend.MaxRecord+64<<10),
	)
	if err != nil {
		s.link.kill(err)
		return nil, err
	}
	b.wg.Go(s.run)
	return s, nil
}

// run keeps the session, and tears it down when it has ended.
func (s *session) run() {
	defer close(s.torn)
	s.keep()
	<-s.link.ctx.Done()
	parked := s.link.parked
	for open := true; open; {
		select {
		case <-parked:
			parked = nil
			s.conn.Close()
		case _, open = <-s.events:
		}
	}
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	s.conn.Close() // wakes calls that the library has not answered
	s.wg.Wait()
}

// spawn runs f in a goroutine that the teardown waits for. It reports false when
// the session is past that.
func (s *session) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return false
	}
	s.wg.Go(f)
	return true
}

// wake makes the keeper look again at what is to be done.
func (s *session) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// bind returns ctx, ended also when the session ends.
func (s *session) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	return bind(ctx, s.ctx, nil)
}

// abandon ends the session without a word to its members, of which it has none.
// It does not block.
func (s *session) abandon(why error) {
	if s.link.isReady() {
		s.spawn(func() {
			s.conn.Close() // asks the server to end the session
			s.link.kill(why)
		})
		return
	}
	s.link.kill(why)
}

// TTL implements [backend.Session].
func (s *session) TTL() time.Duration {
	_, ttl := s.link.state()
	return ttl
}

// Done implements [backend.Session].
func (s *session) Done() <-chan struct{} { return s.ctx.Done() }

// Err implements [backend.Session].
func (s *session) Err() error { return context.Cause(s.ctx) }

var errClosedHere = fmt.Errorf("%w: it was closed", backend.ErrSessionEnded)

// Close implements [backend.Session]. The members go first, each by a delete of
// its own that is repeated until it is answered: a lost answer to the close
// request could not be told from one that was never carried out.
func (s *session) Close(ctx context.Context) error {
	s.cancel(errClosedHere)
	s.link.lease.End()
	if err := s.link.ended(); err != nil {
		return s.tornDown(ctx, err)
	}
	err := s.clear(ctx)
	closed := make(chan struct{})
	if !s.spawn(func() {
		defer close(closed)
		s.conn.Close()
	}) {
		close(closed)
	}
	select {
	case <-closed:
	case <-ctx.Done():
	}
	s.link.kill(errors.New("it was closed"))
	return s.tornDown(ctx, err)
}

// tornDown waits for the teardown and returns what Close has to say. why is why
// members may still stand; nil if they do not.
func (s *session) tornDown(ctx context.Context, why error) error {
	select {
	case <-s.torn:
	case <-ctx.Done():
	}
	s.mu.Lock()
	left := 0
	for _, o := range s.own {
		if !o.pinned {
			left++
		}
	}
	s.mu.Unlock()
	if why == nil || s.link.over.Load() || left == 0 && !errors.Is(why, errUnsettled) {
		return nil
	}
	return fail("close", "", fmt.Errorf("%w: members stand until the session's %v have passed: %w",
		backend.ErrUnavailable, s.TTL(), why))
}

var errUnsettled = errors.New("a join was not settled")

// clear removes the members that are not pinned.
func (s *session) clear(ctx context.Context) error {
	joined := make(chan struct{})
	s.spawn(func() {
		s.jobs.Wait()
		close(joined)
	})
	select {
	case <-joined:
	case <-ctx.Done():
		return errUnsettled
	case <-s.link.ctx.Done():
		return s.link.ended()
	}
	members := s.owned()
	errs := make(chan error, len(members))
	slots := make(chan struct{}, 16)
	for _, o := range members {
		if !s.spawn(func() {
			slots <- struct{}{}
			errs <- s.leave(ctx, o.path, o.member())
			<-slots
		}) {
			errs <- s.link.ended()
		}
	}
	var first error
	for range members {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// bind returns ctx, ended also when other ends, with why as the cause, or, if that
// is nil, with the cause of other.
func bind(ctx, other context.Context, why error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	end := func() {
		if why == nil {
			why = context.Cause(other)
		}
		cancel(why)
	}
	if other.Err() != nil {
		end()
		return ctx, func() {}
	}
	stop := context.AfterFunc(other, end)
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
