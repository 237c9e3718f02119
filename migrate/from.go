package migrate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

// From is not needed by places that are on To alone, and its session may end without
// theirs. What is still there, elections that have not moved or have come back, and
// records that no leader has written since, is reached by another session, which the
// first call opens that asks for it.

// openBound is how long a call waits for that.
const openBound = 5 * time.Second

// with returns the session with one coordinator; nil where it could not be opened.
func (s *session) with(sd side) backend.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sub[sd]
}

// fromOver returns, as ErrUnavailable, why there is no session with From. To the caller
// that is not the end of its own.
func (s *session) fromOver() error {
	why := s.fromErr
	if from := s.with(sideFrom); from != nil {
		why = from.Err()
	}
	if why == nil {
		return nil
	}
	return fmt.Errorf("%w: no session with %s, which keeps what has not moved: %v", backend.ErrUnavailable, s.b.o.From, why)
}

// openFrom opens another session with From where there is none and no place hangs on
// the one before. It reports whether there is a new one.
func (s *session) openFrom(ctx context.Context) (opened bool, err error) {
	if s.fromOver() == nil || s.needsFrom() {
		return false, nil
	}
	bound, cancel := context.WithTimeout(ctx, openBound)
	defer cancel()
	var from backend.Session
	if err = s.opening.lock(bound); err == nil {
		defer s.opening.unlock()
		if s.fromOver() == nil {
			return true, nil // somebody else was faster
		}
		from, err = s.b.sub[sideFrom].Session(bound)
	}
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case bound.Err() != nil && err != nil:
		return false, s.fromOver()
	case err != nil:
		return false, fmt.Errorf("no session with %s, which keeps what has not moved: %w", s.b.o.From, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false, s.err
	}
	if s.hangsOnFrom() { // on the one that has ended, and ends with it
		return false, nil
	}
	s.sub[sideFrom] = from
	s.watchFrom(from)
	return true, nil
}

// headers reads the election's record on both coordinators. Where that of To is enough,
// there may be none of From.
func (s *session) headers(ctx context.Context, line string) (h [2]backend.Header, errs [2]error) {
	for {
		h, errs = s.headersNow(ctx, line)
		if errs[sideFrom] == nil || errs[sideTo] != nil {
			return h, errs
		}
		if r, err := s.b.rule(backend.Header{}, h[sideTo]); err == nil && r.alone == sideTo && !r.both {
			return h, errs
		}
		opened, err := s.openFrom(ctx)
		if err != nil {
			errs[sideFrom] = err
		}
		if !opened {
			return h, errs
		}
	}
}

// headersNow is headers, at the same time and without a new session with From.
func (s *session) headersNow(ctx context.Context, line string) (h [2]backend.Header, errs [2]error) {
	var wg sync.WaitGroup
	for sd := range s.sub {
		wg.Go(func() {
			if side(sd) == sideFrom {
				if errs[sd] = s.fromOver(); errs[sd] != nil {
					return
				}
			}
			var r backend.Record
			if r, errs[sd] = s.with(side(sd)).Get(ctx, line); errs[sd] == nil {
				h[sd], errs[sd] = backend.ParseHeader(r.Value)
			}
		})
	}
	wg.Wait()
	return h, errs
}

// watchFrom ends the session when from does and a place hangs on it. The session's
// watcher waits for it. The caller holds the session's lock, or is the only one who has it.
func (s *session) watchFrom(from backend.Session) {
	s.behind.Go(func() {
		select {
		case <-from.Done():
			s.alive()
		case <-s.done:
		}
	})
}

// fromLost returns why the session with From has ended, where this one needs it.
func (s *session) fromLost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from := s.sub[sideFrom]; from != nil && (len(s.places) == 0 || s.hangsOnFrom()) {
		return from.Err()
	}
	return nil
}

// needsFrom reports whether any of the session's places hangs on From, or there are none.
func (s *session) needsFrom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.places) == 0 || s.hangsOnFrom()
}

func (s *session) hangsOnFrom() bool {
	for _, p := range s.places {
		if !p.onlyTo {
			return true
		}
	}
	return false
}
