package broken

import (
	"context"
	"errors"
	"time"

	"github.com/succession-dev/succession/backend"
)

var deadlineFlaws = []Flaw{
	{
		Name:    "late deadline",
		Breaks:  "L6: the deadline counts from when answers come, half a TTL late",
		Must:    "L6.bound L6.cut L6.late L6.gate L6.ended L6.old-answer",
		May:     "G7.margin",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lateDeadline{s} },
	},
	{
		Name:    "unaware",
		Breaks:  "L6, G1: a session that is cut off goes on for ever",
		Must:    "L5.done L6.cut L6.late L6.gate G1.cut G1.late G1.kill G1.pause G7.expired G7.cut Fault.cut Fault.mute Fault.deaf Fault.late Fault.severed Fault.hidden Fault.paused",
		May:     "L4.ended L5 L6 Pin.closed Pin.expired G1 G7 G8 G9 Run.lost Fault",
		session: func(_ *Backend, s backend.Session) backend.Session { return &unaware{s} },
	},
}

type lateDeadline struct{ backend.Session }

// Deadline is as late as it can become where an answer takes the half of TTL.
func (s *lateDeadline) Deadline() time.Time { return s.Session.Deadline().Add(s.TTL() / 2) }

type unaware struct{ backend.Session }

func (s *unaware) Deadline() time.Time   { return time.Now().Add(s.TTL()) }
func (s *unaware) Done() <-chan struct{} { return nil }
func (s *unaware) Err() error            { return nil }

func (s *unaware) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	return p, unlessEnded(ctx, err)
}

func (s *unaware) Gone(ctx context.Context, m backend.Member) error {
	return unlessEnded(ctx, s.Session.Gone(ctx, m))
}

func (s *unaware) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	r, err := s.Session.Watch(ctx, name, after)
	return r, unlessEnded(ctx, err)
}

// unlessEnded returns err, and waits for the end of ctx where it is that of the session.
func unlessEnded(ctx context.Context, err error) error {
	if errors.Is(err, backend.ErrSessionEnded) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return err
}
