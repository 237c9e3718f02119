package composite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Candidacies that are on To alone do not need From: the part with From may end, and the session
// lives on. Elections that have not moved, or have come back, and records that no leader has
// written since, are still on From. The first call that asks for them opens another part with From.

// openBound is how long a call waits for that part.
const openBound = 5 * time.Second

// fromOver returns why there is no part with From, as ErrUnavailable, because the caller's own
// session has not ended.
func (s *session) fromOver() error {
	why := s.fromErr
	if from := s.part(protocol.From); from != nil {
		why = from.Err()
	}
	if why == nil {
		return nil
	}
	return fmt.Errorf("%w: no session with %s, which keeps what has not moved: %v", backend.ErrUnavailable, s.route.From, why)
}

// notEnded returns err, but as ErrUnavailable if a part with From has ended meanwhile: the
// candidacy leads by To alone, so its own session has not ended.
func (s *session) notEnded(err error) error {
	if errors.Is(err, backend.ErrSessionEnded) && s.to().Err() == nil {
		return fmt.Errorf("%w: %v", backend.ErrUnavailable, err)
	}
	return err
}

// openFrom opens another part with From if there is none, and if no candidacy needs the one before.
// It reports whether there is a new one.
func (s *session) openFrom(ctx context.Context) (opened bool, err error) {
	if s.fromOver() == nil || s.needsFrom() {
		return false, nil
	}
	bound, cancel := context.WithTimeout(ctx, openBound)
	defer cancel()
	var from backend.Session
	if err = s.opening.take(bound); err == nil {
		defer s.opening.release()
		if s.fromOver() == nil {
			return true, nil // somebody else was faster
		}
		from, err = s.b.subs[protocol.From].Session(bound)
	}
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case bound.Err() != nil && err != nil:
		return false, s.fromOver()
	case err != nil:
		return false, fmt.Errorf("no session with %s, which keeps what has not moved: %w", s.route.From, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false, s.err
	}
	if s.candidacyNeedsFrom() { // it needs the part that has ended, and ends with it
		return false, nil
	}
	s.parts[protocol.From] = from
	s.watchFrom(from)
	s.traceFrom()
	return true, nil
}

// headers reads the election's record on both coordinators. If To's record is enough, From's may be
// missing.
func (s *session) headers(ctx context.Context, line string) (h [2]header.Header, errs [2]error) {
	for {
		h, errs = s.headersNow(ctx, line)
		if errs[protocol.From] == nil || errs[protocol.To] != nil || s.route.MovedByTo(h[protocol.To]) {
			return h, errs
		}
		opened, err := s.openFrom(ctx)
		if err != nil {
			errs[protocol.From] = err
		}
		if !opened {
			return h, errs
		}
	}
}

// headersNow is headers without opening a part with From.
func (s *session) headersNow(ctx context.Context, line string) (h [2]header.Header, errs [2]error) {
	Both(func(sd protocol.Side) {
		if sd == protocol.From {
			if errs[sd] = s.fromOver(); errs[sd] != nil {
				return
			}
		}
		var r backend.Record
		if r, errs[sd] = s.part(sd).Get(ctx, line); errs[sd] == nil {
			h[sd], errs[sd] = header.Parse(r.Value)
		}
	})
	return h, errs
}

// watchFrom ends the session when from does and a candidacy needs it. The session's watcher
// waits for it. The caller holds the session's lock, or nobody else has the session yet.
func (s *session) watchFrom(from backend.Session) {
	from.OnEnd(func(why error) {
		if s.fromNeeded.Load() {
			s.partEnded(why)
		}
	})
	s.behind.Go(func() {
		select {
		case <-from.Done():
			s.alive()
		case <-s.done:
		}
	})
}

// fromLost returns why the part with From has ended, if the session needs it.
func (s *session) fromLost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from := s.parts[protocol.From]; from != nil && s.needsFromLocked() {
		return from.Err()
	}
	return nil
}

// needsFrom reports whether any of the session's candidacies needs From, or there are none.
func (s *session) needsFrom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.needsFromLocked()
}

// needsChanged must be called when the candidacies or their states have changed, by the caller that holds the session's lock.
func (s *session) needsChanged() { s.fromNeeded.Store(s.needsFromLocked()) }

func (s *session) needsFromLocked() bool { return len(s.candidacies) == 0 || s.candidacyNeedsFrom() }

func (s *session) candidacyNeedsFrom() bool {
	for _, c := range s.candidacies {
		if c.st.side() == protocol.From {
			return true
		}
	}
	return false
}
