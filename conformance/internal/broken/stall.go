package broken

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

var stallFlaws = []Flaw{
	{
		Name:     "heir polls",
		Breaks:   "G8: a waiter looks once in a session time instead of watching",
		Must:     "G8.resign G8.expire G8.removed",
		May:      "G7.released Pin.gate G1 G2 G3 G4 G8 G10.asked Run Fault",
		election: candidates(func(c *candidate) backend.Session { return &heirPolls{c} }),
	},
	{
		Name:     "waits out a lease",
		Breaks:   "G8: an heir that has seen the leader go waits for another session time before it leads",
		Must:     "G8.resign G8.close G8.expire G8.removed Fault.killed-candidate",
		Short:    true,
		May:      "Pin.gate G1 G2 G3 G4 G7.released G10.asked Run Fault",
		election: candidates(func(c *candidate) backend.Session { return &waitsOutALease{c} }),
	},
	{
		Name:     "never looks again",
		Breaks:   "G8: a waiter relies on its watch alone, which wakes it neither for its own removal nor for a seal",
		Must:     "G8.waiter-removed Run.sealed Run.sealed-gate",
		election: candidates(func(c *candidate) backend.Session { return &neverLooksAgain{c} }),
	},
	{
		Name:     "waits under a dead session",
		Breaks:   "G8: a waiter whose session has ended goes on waiting, and does not join again",
		Must:     "G8.waiter-expired G8.cut Fault.paused G9.blocked",
		May:      "Fault",
		election: candidates(func(c *candidate) backend.Session { return &waitsUnderADeadSession{c} }),
	},
	{
		Name:     "watch of a dead connection",
		Breaks:   "G8: watches die with their connection, and a waiter never looks again",
		Must:     "Fault.restarted Fault.rolling",
		May:      "G8.waiter-removed Run.sealed Run.sealed-gate Fault",
		session:  func(b *Backend, s backend.Session) backend.Session { return &watchOfADeadConnection{s, b} },
		election: candidates(func(c *candidate) backend.Session { return &neverLooksAgain{c} }),
	},
}

type heirPolls struct{ *candidate }

func (s *heirPolls) Gone(ctx context.Context, m backend.Member) error {
	if m == s.own {
		return s.Session.Gone(ctx, m)
	}
	return s.idle(ctx)
}

type waitsOutALease struct{ *candidate }

func (s *waitsOutALease) Gone(ctx context.Context, m backend.Member) error {
	err := s.Session.Gone(ctx, m)
	if err == nil && m != s.own {
		return sleep(s.campaign, s.TTL())
	}
	return err
}

type neverLooksAgain struct{ *candidate }

func (s *neverLooksAgain) Gone(ctx context.Context, m backend.Member) error {
	if m == s.own {
		return s.Session.Gone(ctx, m)
	}
	return s.Session.Gone(s.campaign, m)
}

type waitsUnderADeadSession struct{ *candidate }

func (s *waitsUnderADeadSession) Gone(ctx context.Context, m backend.Member) error {
	err := s.Session.Gone(ctx, m)
	if m == s.own {
		return err
	}
	return unlessEnded(s.campaign, err)
}

type watchOfADeadConnection struct {
	backend.Session
	b *Backend
}

func (s *watchOfADeadConnection) Gone(ctx context.Context, m backend.Member) error {
	broken := s.b.connected()
	err := s.Session.Gone(ctx, m)
	select {
	case <-broken:
	default:
		return err
	}
	if err == nil { // nothing has woken it
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return err
}
