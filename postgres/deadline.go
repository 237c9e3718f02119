package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/clock"
)

// Deadline lies a TTL after the newest heartbeat that was acknowledged was sent; the package
// comment says why nobody ends the session before that. Every session keeps it in the future,
// whether it has a member in line or not.
func (s *session) Deadline() time.Time { return s.lease.Deadline() }

func (s *session) TTL() time.Duration { return s.b.o.TTL }

// MaxMargin leaves a quarter of the TTL between heartbeats, and another quarter for a slow answer;
// see [backend.Session].
func (s *session) MaxMargin() time.Duration { return s.b.o.TTL / 2 }

// over returns why the session is over once its deadline has passed, and nil before that.
func (s *session) over() error {
	if s.lease.Left() > 0 {
		return nil
	}
	why := fmt.Errorf("the database has acknowledged no heartbeat for %v", s.b.o.TTL)
	if problem := s.problem.Load(); problem != nil {
		why = fmt.Errorf("%w: %v", why, *problem)
	}
	return why
}

// run listens and sends heartbeats, on one connection, and on another when that is broken. It leaves the last one to release, if the server
// there has acknowledged the session.
func (s *session) run() {
	defer close(s.ran)
	c, heard, pause := s.main, true, s.b.o.backoff()
	defer func() {
		if s.main = c; c != nil && !heard {
			c.kill()
		}
	}()
	for s.Context().Err() == nil {
		if c != nil {
			before := s.number.Load()
			err := s.serve(c)
			heard = heard || s.number.Load() > before
			if s.Context().Err() != nil {
				s.listener.deaf()
				return
			}
			s.problem.Store(&err)
			c.kill()
			s.b.wire.broken()
			s.listener.deaf()
			s.b.o.Logger.Warn("the connection of the session is broken, connecting again", "session", s.id, "left", s.lease.Left(), "err", err)
			if heard {
				pause.Reset()
			} else { // a server that does not know the session would be asked again and again
				_ = pause.Sleep(s.Context())
			}
		}
		ctx, cancel := bounded(s.Context(), s.b.o.attempt())
		var err error
		heard = false
		if c, err = s.b.wire.dial(ctx, s.listener.tell); err != nil {
			c = nil
			s.problem.Store(&err)
			s.elsewhere()
			_ = pause.Sleep(s.Context())
		}
		cancel()
	}
}

// serve uses the connection until it is broken or the session has ended.
func (s *session) serve(c *conn) error {
	defer context.AfterFunc(s.Context(), s.listener.stir)()
	var sent time.Time
	beats := 0
	due := func() time.Time {
		wait := s.interval()
		if beats == 1 { // sessions that have connected together do not stay in step, or none would soon see what another sends after it
			wait = time.Duration(s.spread * float64(wait))
		}
		return sent.Add(wait)
	}
	for s.Context().Err() == nil {
		if err := s.listen(c); err != nil {
			return err
		}
		s.listener.work(c, due())
		if c.IsClosed() {
			return fmt.Errorf("%w: a request has broken it", backend.ErrUnavailable)
		}
		if s.listener.own.Swap(false) || !time.Now().Before(due()) {
			beats++
			sent = time.Now()
			if err := s.beat(c); err != nil {
				s.elsewhere()
				return err
			}
			s.b.wire.tidy(false)
		}
		var err error
		if s.listener.rest(c.Conn(), s.reap(due())) {
			err = c.WaitForNotification(context.Background())
		}
		switch over := s.listener.rise(c.Conn()); {
		case err == nil:
			s.listener.linger()
		case !over || c.IsClosed():
			return err
		}
	}
	return nil
}

// elsewhere has another host tried first, unless the next session may have found one already.
func (s *session) elsewhere() {
	if s.Context().Err() == nil {
		s.b.wire.turn.Add(1)
	}
}

// beat sends a heartbeat. If it fails, the connection is of no use any more.
func (s *session) beat(c *conn) error {
	ctx, cancel := bounded(s.Context(), s.b.o.TTL/4)
	defer cancel()
	before, sent := s.number.Load(), clock.Now()
	rows, err := c.query(ctx, s.b.call("beat", 2), s.id, s.observer.window())
	a, err := s.judge(c, rows, sent, err)
	if err != nil {
		return err
	}
	r := a.first()
	life, number, held, pid, others := r.text(), r.int(), r.int(), r.int(), r.text()
	if err := r.err(); err != nil {
		return err
	}
	if number <= before {
		s.End(fmt.Errorf("%w: its heartbeats are fewer than they were", backend.ErrReset))
		return s.Ended()
	}
	s.acknowledged(number, sent)
	c.direct = pid == c.pid
	if !c.direct { // a pooler stands between
		s.listener.poll()
	}
	s.observer.see(clock.Now(), s.b.o.TTL, life, others)
	if s.observer.over(clock.Now(), time.Duration(held)*time.Millisecond) && !s.observes.Load() {
		s.Go(func() { // the next heartbeat shows whether it worked
			err := s.tell(s.Context(), "confirm", life)
			s.observes.Store(errors.Is(err, backend.ErrDenied))
		})
	}
	return nil
}

// acknowledged notes a heartbeat, which was sent at that instant or later.
func (s *session) acknowledged(number int64, sent clock.Instant) {
	for old := s.number.Load(); number > old && !s.number.CompareAndSwap(old, number); old = s.number.Load() {
	}
	s.lease.Extend(sent, s.b.o.TTL)
	s.problem.Store(nil)
}
