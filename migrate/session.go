package migrate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

// closeBound is how long a session that has ended on one coordinator waits for the
// other one to confirm that it has ended there.
const closeBound = 5 * time.Second

// A session is one session with each coordinator. It ends when either ends; but it
// outlives that of From once all its places are on To alone; see from.go.
type session struct {
	b       *Backend
	fromErr error // why sub has none with From
	opening mutex // for who opens one

	mu     sync.Mutex
	sub    [2]backend.Session        // that of To never changes; that of From may be nil, and is constant while a place hangs on it
	places map[backend.Member]*place // the session's own, by the member as elect knows it
	moved  map[string]bool           // elections that are known to be on To
	err    error
	ended  time.Time // when err was set

	done    chan struct{} // closed when the session has ended
	over    chan struct{} // closed when its watcher has closed both halves
	closing bool          // a caller of Close closes the halves, not the watcher
	closed  chan struct{} // closed when it has

	behind sync.WaitGroup // what goes on behind the callers' backs
}

func newSession(b *Backend, sub [2]backend.Session, fromErr error) *session {
	s := &session{
		b:       b,
		sub:     sub,
		fromErr: fromErr,
		opening: make(mutex, 1),
		places:  make(map[backend.Member]*place),
		moved:   make(map[string]bool),
		done:    make(chan struct{}),
		over:    make(chan struct{}),
		closed:  make(chan struct{}),
	}
	if from := sub[sideFrom]; from != nil {
		s.watchFrom(from)
	}
	go s.watch()
	return s
}

// watch ends the session when that of To ends, and, when it has ended, both halves, so
// that no member stays there. The backend's Close and the next Session wait for it.
func (s *session) watch() {
	defer close(s.over)
	defer s.behind.Wait()
	select {
	case <-s.done:
	case <-s.sub[sideTo].Done():
		s.end(s.sub[sideTo].Err())
	}
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	if closing {
		<-s.closed
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeBound)
	defer cancel()
	// Where this fails, the members stand until the coordinator ends the session.
	_ = s.closeHalves(ctx)
}

// closeHalves ends both, that of To first; at the same time, so that one that cannot be
// reached does not hold up the other.
func (s *session) closeHalves(ctx context.Context) error {
	var errs [2]error
	var wg sync.WaitGroup
	for sd := range s.sub {
		if half := s.with(side(sd)); half != nil {
			wg.Go(func() { errs[sd] = half.Close(ctx) })
		}
	}
	wg.Wait()
	if errs[sideTo] != nil {
		return errs[sideTo]
	}
	return errs[sideFrom]
}

// end ends the session. Only the first end counts.
func (s *session) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err, s.ended = why, time.Now()
		close(s.done)
	}
}

// endBy is end, for a caller that closes both halves with f, rather than have the
// watcher do it. It returns what f returns.
func (s *session) endBy(why error, f func() error) error {
	s.mu.Lock()
	mine := s.err == nil
	s.closing = s.closing || mine
	if mine {
		s.err, s.ended = why, time.Now()
		close(s.done)
	}
	s.mu.Unlock()
	if mine {
		defer close(s.closed)
	}
	return f()
}

// alive returns nil while the session lives. It looks at the halves themselves, so that
// a call that follows one that failed is not ahead of the watcher.
func (s *session) alive() error {
	s.mu.Lock()
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := s.sub[sideTo].Err(); err != nil {
		s.end(err)
		return err
	}
	if err := s.fromLost(); err != nil {
		s.end(err)
		return err
	}
	return nil
}

// half returns the session with one coordinator. Without one, the composite session is
// of no use to anybody, unless somebody stands on To, and ends, so that the next one tries
// again.
func (s *session) half(sd side) (backend.Session, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	half := s.with(sd)
	if half == nil {
		err := fmt.Errorf("%w: %s: %w", backend.ErrUnavailable, s.b.o.From, s.fromErr)
		if s.needsFrom() {
			err = fmt.Errorf("%w: %w", backend.ErrSessionEnded, err)
			s.end(err)
		}
		return nil, err
	}
	return half, nil
}

// told returns err as the caller of a session gets it: when the session has ended
// meanwhile, that is the reason.
func (s *session) told(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if gone := s.alive(); gone != nil {
		err = gone
	}
	return wrap(op, name, err)
}

// TTL returns the shorter of both sessions' times, or that of the one that counts; see
// [session.Deadline] and [backend.Session].
func (s *session) TTL() time.Duration {
	var shortest time.Duration
	for _, half := range s.counting() {
		if half == nil {
			continue
		}
		if d := half.TTL(); d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}

// MaxMargin returns the shorter of those of the sessions whose time counts; see
// [backend.Session].
func (s *session) MaxMargin() time.Duration {
	var shortest time.Duration
	for _, half := range s.counting() {
		if half == nil || half.TTL() == 0 {
			continue
		}
		if d := half.MaxMargin(); shortest == 0 || d < shortest {
			shortest = d
		}
	}
	return shortest
}

// Deadline returns the earlier of both sessions' deadlines; see [backend.Session]. As long
// as the session leads, those count by which it does: a coordinator keeps no deadline
// ahead for who stands nowhere in front there. Before, those count where it stands.
func (s *session) Deadline() time.Time {
	var earliest time.Time
	for _, half := range s.counting() {
		if half == nil {
			continue
		}
		if d := half.Deadline(); !d.IsZero() && (earliest.IsZero() || d.Before(earliest)) {
			earliest = d
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended.IsZero() && (earliest.IsZero() || s.ended.Before(earliest)) {
		return s.ended // the halves are closed later, and their places are free then
	}
	return earliest
}

// counting returns the halves whose deadlines count, and nil for one whose does not.
func (s *session) counting() (halves [2]backend.Session) {
	for sd, counts := range s.counts() {
		if counts {
			halves[sd] = s.with(side(sd))
		}
	}
	return halves
}

// counts says which coordinators' deadlines count.
func (s *session) counts() [2]bool {
	var leads, stands [2]bool
	s.mu.Lock()
	for _, p := range s.places {
		p.mu.Lock()
		for sd := range s.sub {
			leads[sd] = leads[sd] || p.first[sd]
			stands[sd] = stands[sd] || p.at[sd].Key != "" && (side(sd) == sideTo || !p.onlyTo)
		}
		p.mu.Unlock()
	}
	s.mu.Unlock()
	switch none := [2]bool{}; {
	case leads != none:
		return leads
	case stands != none:
		return stands
	}
	return [2]bool{s.needsFrom(), true}
}

func (s *session) Done() <-chan struct{} { return s.done }

func (s *session) Err() error { return wrap("session", "", s.alive()) }

// Close ends both sessions, at the same time; see [backend.Session].
func (s *session) Close(ctx context.Context) error {
	return wrap("close", "", s.endBy(fmt.Errorf("%w: it was closed", backend.ErrSessionEnded), func() error {
		return s.closeHalves(ctx)
	}))
}

// setMoved remembers that the election is on To.
func (s *session) setMoved(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved[line] = true
}

func (s *session) hasMoved(line string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moved[line]
}

func (s *session) forgetMoved(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.moved, line)
}
