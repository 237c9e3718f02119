package composite

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// closeBound is how long a session that has ended on one coordinator waits for the
// other one to confirm that it has ended there.
const closeBound = 5 * time.Second

// A session consists of two parts, a session with each coordinator. It ends when either part ends.
// Once all its candidacies are on To alone, it outlives the part with From (from.go).
type session struct {
	kit.NoShares
	kit.NoItems
	kit.NoImports
	kit.NoSurvey
	b       *Backend
	route   protocol.Route
	log     *slog.Logger
	fromErr error // why there is no part with From
	opening lock  // of another part with From

	mu          sync.Mutex
	parts       [2]backend.Session            // the part with To never changes; the part with From may be nil, and does not change while a candidacy needs it
	candidacies map[backend.Member]*candidacy // by the member as elect knows it
	moved       map[string]bool               // elections that are known to be on To
	tracers     map[*tracer]bool              // of heartbeats
	err         error
	ended       time.Time // when err was set

	// A part tells of its end under locks of its own, and is asked under mu. So what it tells takes no mu.
	fromNeeded atomic.Bool           // what needsFromLocked returns
	partEnd    atomic.Pointer[error] // why a part has ended that the session needs; it ends with it, whatever moves meanwhile

	kit.Ender
	done    chan struct{} // closed when the session has ended
	over    chan struct{} // closed when its watcher has closed the parts
	closing bool          // a caller of Close closes the parts, not the watcher
	closed  chan struct{} // closed when that caller has

	behind sync.WaitGroup // what goes on in the background
}

func newSession(b *Backend, parts [2]backend.Session, fromErr error) *session {
	s := &session{
		b:           b,
		route:       b.o.Route,
		log:         b.o.Log,
		parts:       parts,
		fromErr:     fromErr,
		opening:     newLock(),
		candidacies: make(map[backend.Member]*candidacy),
		moved:       make(map[string]bool),
		tracers:     make(map[*tracer]bool),
		done:        make(chan struct{}),
		over:        make(chan struct{}),
		closed:      make(chan struct{}),
	}
	s.fromNeeded.Store(true)
	if from := parts[protocol.From]; from != nil {
		s.watchFrom(from)
	}
	s.to().OnEnd(s.partEnded)
	go s.watch()
	return s
}

// watch ends the session when the part with To ends. When the session has ended, watch closes its
// parts, so that no member stays there. The backend's Close and the next Session wait for it.
func (s *session) watch() {
	defer close(s.over)
	defer s.behind.Wait()
	select {
	case <-s.done:
	case <-s.to().Done():
		s.alive()
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
	// If this fails, the members stand until the coordinator ends the session.
	_ = s.closeParts(ctx)
}

// closeParts closes both at the same time, so that a coordinator that cannot be reached
// does not hold up the other.
func (s *session) closeParts(ctx context.Context) error {
	var errs [2]error
	Both(func(sd protocol.Side) {
		if part := s.part(sd); part != nil {
			errs[sd] = part.Close(ctx)
		}
	})
	if errs[protocol.To] != nil {
		return errs[protocol.To]
	}
	return errs[protocol.From]
}

// partEnded ends all that depends on the session, before the coordinator hears that this part of it has ended (law L5).
func (s *session) partEnded(why error) {
	s.partEnd.CompareAndSwap(nil, &why)
	s.TellEnd(Wrap("session", "", why))
}

// end ends the session. Only the first end counts.
func (s *session) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(why)
}

func (s *session) endLocked(why error) (first bool) {
	if s.err != nil {
		return false
	}
	s.err, s.ended = why, time.Now()
	s.TellEnd(Wrap("session", "", why))
	close(s.done)
	return true
}

// endBy is end for a caller that closes the parts itself, with f; otherwise the watcher does. It
// returns what f returns.
func (s *session) endBy(why error, f func() error) error {
	s.mu.Lock()
	mine := s.endLocked(why)
	s.closing = s.closing || mine
	s.mu.Unlock()
	if mine {
		defer close(s.closed)
	}
	return f()
}

// alive returns nil while the session lives. It asks the parts themselves, because the watcher may
// not have noticed yet that a part has ended.
func (s *session) alive() error {
	s.mu.Lock()
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if why := s.partEnd.Load(); why != nil {
		err = *why
	} else if err = s.to().Err(); err == nil {
		err = s.fromLost()
	}
	if err != nil {
		s.end(err)
	}
	return err
}

// part returns the session with one coordinator; nil if it could not be opened.
func (s *session) part(sd protocol.Side) backend.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[sd]
}

// to returns the part with To, which never changes.
func (s *session) to() backend.Session { return s.parts[protocol.To] }

// use returns the part with one coordinator while the session lives. If there is no part with From,
// and no candidacy on To, the session is of no use: it ends, so that the next one tries From again.
func (s *session) use(sd protocol.Side) (backend.Session, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	part := s.part(sd)
	if part == nil {
		err := fmt.Errorf("%w: %s: %w", backend.ErrUnavailable, s.route.From, s.fromErr)
		if s.needsFrom() {
			err = kit.SessionEnded(err)
			s.end(err)
		}
		return nil, err
	}
	return part, nil
}

// told makes the error of a call the one that its caller gets: if the session has ended meanwhile,
// that is the error.
func (s *session) told(op, name string, err *error) {
	if *err == nil {
		return
	}
	if gone := s.alive(); gone != nil {
		*err = gone
	}
	*err = Wrap(op, name, *err)
}

// TTL returns the shortest of both parts; see [backend.Session]. Those that count at the moment are not enough, because the
// next candidacy may need the other one.
func (s *session) TTL() time.Duration { return s.shortest(backend.Session.TTL) }

// MaxMargin returns the shortest of both parts; see [backend.Session].
func (s *session) MaxMargin() time.Duration { return s.shortest(backend.Session.MaxMargin) }

// shortest returns the shortest duration of the parts that end by time. A part with From that has ended does not count.
func (s *session) shortest(of func(backend.Session) time.Duration) (d time.Duration) {
	any := false
	for _, sd := range []protocol.Side{protocol.From, protocol.To} {
		part := s.part(sd)
		if part == nil || sd == protocol.From && part.Err() != nil || part.TTL() == 0 {
			continue
		}
		if t := of(part); !any || t < d {
			any, d = true, t
		}
	}
	return d
}

// Deadline returns the earlier of the deadlines that count; see [session.counts] and [backend.Session].
func (s *session) Deadline() time.Time {
	var earliest time.Time
	for _, part := range s.counting() {
		if d := part.Deadline(); !d.IsZero() && (earliest.IsZero() || d.Before(earliest)) {
			earliest = d
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended.IsZero() && (earliest.IsZero() || s.ended.Before(earliest)) {
		return s.ended // the parts are closed later, and their members go then
	}
	return earliest
}

// counting returns the parts whose deadlines count.
func (s *session) counting() (parts []backend.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sd, counts := range s.counts() {
		if part := s.parts[sd]; counts && part != nil {
			parts = append(parts, part)
		}
	}
	return parts
}

// counts says which coordinators' deadlines count. If the session leads, these are the ones by
// which it leads, because a coordinator keeps no deadline ahead for members that are not in front.
// Otherwise they are the ones where it has members. The caller holds mu.
func (s *session) counts() [2]bool {
	var leads, stands [2]bool
	for _, c := range s.candidacies {
		for sd := range s.parts {
			leads[sd] = leads[sd] || c.st.leads[sd]
			stands[sd] = stands[sd] || c.st.at[sd].Key != "" && (protocol.Side(sd) == protocol.To || c.st.side() == protocol.From)
		}
	}
	switch none := [2]bool{}; {
	case leads != none:
		return leads
	case stands != none:
		return stands
	}
	return [2]bool{s.needsFromLocked(), true}
}

// Files returns the files of the coordinators on which m stands at the moment of the call; see
// [backend.Session].
func (s *session) Files(m backend.Member) (files []*os.File, err error) {
	defer func() { err = Wrap("files", m.Line, err) }()
	c := s.owned(m)
	if c == nil {
		return nil, backend.ErrNotMember
	}
	st := c.now()
	for sd, at := range st.at {
		if at.Key == "" || protocol.Side(sd) == protocol.From && st.side() == protocol.To {
			continue
		}
		held, err := s.part(protocol.Side(sd)).Files(at)
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, err
		}
		files = append(files, held...)
	}
	return files, nil
}

func (s *session) Done() <-chan struct{} { return s.done }

func (s *session) Err() error { return Wrap("session", "", s.alive()) }

// Close ends both parts, at the same time; see [backend.Session].
func (s *session) Close(ctx context.Context) error {
	return Wrap("close", "", s.endBy(fmt.Errorf("%w: it was closed", backend.ErrSessionEnded), func() error {
		return s.closeParts(ctx)
	}))
}

// setMoved remembers whether the election is known to be on To.
func (s *session) setMoved(line string, moved bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if moved {
		s.moved[line] = true
	} else {
		delete(s.moved, line)
	}
}

func (s *session) hasMoved(line string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moved[line]
}
