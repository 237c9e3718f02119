package consul

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/lease"
)

// A session has one session of Consul at a time. It ends when its deadline passes, when
// Consul says that there is no such session, or when it is closed, whichever is first.
type session struct {
	kit.AlwaysFresh // every read is consistent
	*kit.Life
	kit.NoDates
	kit.NoFiles
	b     *Backend
	id    string // of its first session of Consul, after which its members are named
	lease lease.Lease

	lookout   kit.Lookout[backend.Line]
	backlog   kit.Backlog
	joining   kit.Joins[backend.Member]
	pins      kit.Pins
	leaving   kit.Leaves
	writes    chan struct{} // holds a value for each write under way that is sent only once
	reletting chan struct{} // holds a value while members are moved to another session of Consul

	mu      sync.Mutex
	tenancy tenancy
	known   bool                        // Consul has ended it, so the session need not do so
	refused error                       // why the newest answered renewal was not granted; nil if it was
	joins   int                         // how many members it has joined
	queries map[topic]*query            // blocking queries, shared by all waiters for the same topic
	queue   []*query                    // those of them that wait for their turn
	broken  time.Time                   // when one has broken; zero if a renewal has been answered since
	heads   map[string][]backend.Member // the first members of lines, as far as known; see [session.Head]
	waiters map[string][]*waiter        // by their own keys and those of the members that they wait for
	members map[string]standing         // those that the session has joined, by their keys
	ghosts  ghosts

	unheard chan struct{} // says that a query was [query].unheard
	queued  chan struct{} // receives a value when a query joins queue, or one in it may have its turn
	// doubted asks for a renewal at once. There are two causes: a leader's member was removed by
	// somebody else, so Consul may have ended the session; or the connection of a query has broken,
	// so the one for renewals may have broken, too.
	doubted chan struct{}
}

var _ backend.Session = (*session)(nil)

// newSession returns the session. Once its deadline has passed, it stays passed, also if all
// members only wait in line, because others may believe them dead, too.
func newSession(b *Backend, t tenancy) *session {
	s := &session{
		b:         b,
		id:        t.id,
		tenancy:   t,
		writes:    make(chan struct{}, maxWrites),
		reletting: make(chan struct{}, 1),
		queries:   make(map[topic]*query),
		heads:     make(map[string][]backend.Member),
		waiters:   make(map[string][]*waiter),
		unheard:   make(chan struct{}, 1),
		queued:    make(chan struct{}, 1),
		doubted:   make(chan struct{}, 1),
		members:   make(map[string]standing),
		ghosts: ghosts{
			abandoned: make(map[string]*ghost),
			more:      make(chan struct{}, 1),
		},
	}
	s.lease.Extend(t.sent, b.o.TTL)
	s.mu.Lock() // destroy may be called as soon as there is a life
	defer s.mu.Unlock()
	s.Life = b.sessions.NewLife(kit.Rules{Over: s.over, Left: s.lease.Left, Ending: s.lease.End, Release: s.destroy, Stands: s.stands})
	s.lookout.Life, s.lookout.Read = s.Life, func(line string) (backend.Line, error) { return s.Line(urgent(s.Context()), line) }
	s.joining = kit.Joins[backend.Member]{Go: s.Go, Ended: s.Ended, Backlog: &s.backlog, Undo: s.undo, End: s.End}
	s.leaving = kit.Leaves{Go: s.Go, Ended: s.Ended, Backlog: &s.backlog, Context: s.Context, Alone: s.leaveAlone, Together: s.leaveTogether}
	s.lease.Confirmed = s.Beat
	return s
}

// unknown ends the session because Consul does not know the given session of Consul,
// unless another one has taken over from that meanwhile.
func (s *session) unknown(id string) error {
	if s.present().id != id {
		return errUnsettled
	}
	s.mu.Lock()
	s.known = true
	s.mu.Unlock()
	s.End(fmt.Errorf("session %s is not known to Consul any more: it was destroyed, or catalog node %q was deregistered", id, s.b.o.Node))
	return s.Ended()
}

// destroy makes Consul end the session, unless Consul has done so already: until then the members
// stand, and requests under way may still arrive. Without destroy, Consul ends the session by
// itself later.
func (s *session) destroy(ctx context.Context) error {
	s.mu.Lock()
	known := s.known
	s.mu.Unlock()
	s.b.o.Logger.Info("session ended", "session", s.present().id, "why", s.Ended())
	ctx, cancel := context.WithTimeout(ctx, 2*s.b.o.TTL)
	defer cancel()
	s.reletting <- struct{}{} // the goroutine that moves members has given up
	wait, now := s.b.o.backoff(), s.present()
	all := append([]string{now.id}, now.old...) // in this order, so that a late move fails
	if known {
		all = now.old // members may not have been moved yet
	}
	for len(all) > 0 {
		attempt, cancel := context.WithTimeout(ctx, s.b.o.attempt())
		var err error
		for _, id := range all {
			err = errors.Join(err, s.b.c.destroy(attempt, id))
		}
		cancel()
		if err == nil || known || wait.Sleep(ctx) != nil {
			return err
		}
	}
	return nil
}

func (s *session) stands() string {
	return fmt.Sprintf("Consul ends session %s by itself, at most %v after its last renewal", s.present().id, 2*s.b.o.TTL)
}

// once runs one request of a call, bound to the session. The request may take as long as limit.
func (s *session) once(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	if err := s.Usable(ctx); err != nil {
		return err
	}
	attempt, done := context.WithTimeout(ctx, limit)
	defer done()
	id := s.present().id
	err := f(attempt)
	if errors.Is(err, backend.ErrSessionEnded) {
		err = s.unknown(id)
	}
	if ended := s.Alive(); ended != nil { // a late answer does not count
		return ended
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// write runs a request that is not repeated if its answer is lost, so it may take a whole TTL. The
// time until its turn does not count.
func (s *session) write(ctx context.Context, f func(ctx context.Context) error) error {
	if err := s.Usable(ctx); err != nil {
		return err
	}
	select {
	case s.writes <- struct{}{}:
		defer func() { <-s.writes }()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Context().Done():
		return s.Ended()
	}
	return s.once(ctx, s.b.o.TTL, f)
}

// retry runs a request that may be repeated, until Consul answers it. It ends with ctx,
// and with the deadline of the session.
func (s *session) retry(ctx context.Context, f func(ctx context.Context) error) error {
	_, err := kit.Retry(ctx, s.b.o.backoff(), isUnavailable, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.attempt(ctx, f)
	})
	return err
}

// attempt runs a request that may be repeated, once.
func (s *session) attempt(ctx context.Context, f func(ctx context.Context) error) error {
	return s.once(ctx, s.b.o.attempt(), f)
}

func isUnavailable(err error) bool { return errors.Is(err, backend.ErrUnavailable) }

// TTL returns the TTL that was asked for, from which the deadline is counted. Consul
// itself ends the session after twice that. See [backend.Session].
func (s *session) TTL() time.Duration { return s.b.o.TTL }
