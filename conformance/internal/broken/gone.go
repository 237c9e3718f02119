package broken

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

var goneFlaws = []Flaw{
	{
		Name:    "herd",
		Breaks:  "L3: Gone wakes for every departure from the line",
		Must:    "L3.alone G5.one Queue.woken Barrier.woken Lock.slots-woken",
		May:     "L2.churn L9",
		session: func(_ *Backend, s backend.Session) backend.Session { return &herd{s} },
	},
	{
		Name:    "late watch",
		Breaks:  "L3: Gone of a member that has gone waits for its departure",
		Must:    "L3.past L3.same-key",
		May:     "L2 L3 L4.dropped Pin G2 G4 G8 G10 Run L9 L10.ended L10.remove",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lateWatch{s} },
	},
	{
		Name:    "nil on cancel",
		Breaks:  "L3: a cancelled Gone returns nil, which means that the member has gone",
		Must:    "L3.cancel L3.again G9.ended-context",
		May:     "L3.many G9.cut-context",
		session: func(_ *Backend, s backend.Session) backend.Session { return &nilOnCancel{s} },
	},
	{
		Name:    "polls",
		Breaks:  "L3: Gone looks once in a TTL, and does not watch",
		Must:    "L3.leave L3.close L3.expire L3.removed L3.dropped",
		May:     "L2 L3 L5.queue L7.fence Pin G1 G2 G3 G4 G5 G7 G8 G10 Run Fault",
		session: func(_ *Backend, s backend.Session) backend.Session { return &polls{s} },
	},
	{
		Name:    "dead watch",
		Breaks:  "L3: a watch dies after a TTL and a half, and nobody asks whether it is alive",
		Must:    "L3.kill L3.cut",
		session: func(_ *Backend, s backend.Session) backend.Session { return &deadWatch{s} },
	},
	{
		Name:    "look, then watch",
		Breaks:  "L3: a departure between Gone's look at the line and the beginning of its watch is missed",
		Must:    "L3.race",
		May:     "L2 L3 Pin G4 G8 L9 L10.remove",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lookThenWatch{s} },
	},
	{
		Name:   "newest caller",
		Breaks: "L3: of several calls of Gone for one member only the newest wakes",
		Must:   "L3.many",
		May:    "L3.place",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &newestCaller{Session: s, calls: make(map[backend.Member]int)}
		},
	},
	{
		Name:    "each waiter asks",
		Breaks:  "L3: each Gone asks once in a TTL whether its watch is alive",
		Must:    "L3.idle",
		session: func(_ *Backend, s backend.Session) backend.Session { return &eachWaiterAsks{s} },
	},
	{
		Name:    "silent close",
		Breaks:  "L3: Close tells the coordinator nothing, which ends the session when its time is over",
		Must:    "L3.close",
		May:     "G5.bytes L5.close L6.ended Pin.version Pin.foreign G5.cost G9.cut-session",
		session: func(_ *Backend, s backend.Session) backend.Session { return &silentClose{s} },
	},
}

type herd struct{ backend.Session }

func (s *herd) Gone(ctx context.Context, m backend.Member) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	line, err := s.Session.Line(ctx, m.Line)
	if err != nil {
		return err
	}
	var waits sync.WaitGroup
	defer waits.Wait()
	defer cancel(nil)
	gone := make(chan error, len(line.Members)+1)
	for _, other := range append(line.Members, m) {
		waits.Go(func() { gone <- s.Session.Gone(ctx, other) })
	}
	return <-gone
}

type lateWatch struct{ backend.Session }

func (s *lateWatch) Gone(ctx context.Context, m backend.Member) error {
	there, err := stands(ctx, s.Session, m)
	if err != nil {
		return err
	}
	if there {
		return s.Session.Gone(ctx, m)
	}
	return never(ctx, s)
}

type nilOnCancel struct{ backend.Session }

func (s *nilOnCancel) Gone(ctx context.Context, m backend.Member) error {
	err := s.Session.Gone(ctx, m)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// stands reports whether a member stands under the key of m.
func stands(ctx context.Context, s backend.Session, m backend.Member) (bool, error) {
	line, err := s.Line(ctx, m.Line)
	return slices.ContainsFunc(line.Members, func(o backend.Member) bool { return o.Key == m.Key }), err
}

// never waits until ctx or the session ends.
func never(ctx context.Context, s backend.Session) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Done():
		return s.Err()
	}
}

type polls struct{ backend.Session }

func (s *polls) Gone(ctx context.Context, m backend.Member) error {
	tick := time.NewTicker(s.TTL())
	defer tick.Stop()
	for {
		if there, err := stands(ctx, s.Session, m); err != nil || !there {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.Done():
			return s.Err()
		}
	}
}

type deadWatch struct{ backend.Session }

func (s *deadWatch) Gone(ctx context.Context, m backend.Member) error {
	watch, cancel := context.WithTimeout(ctx, s.TTL()*3/2)
	defer cancel()
	err := s.Session.Gone(watch, m)
	if watch.Err() != nil {
		return never(ctx, s)
	}
	return err
}

type lookThenWatch struct{ backend.Session }

func (s *lookThenWatch) Gone(ctx context.Context, m backend.Member) error {
	if there, err := stands(ctx, s.Session, m); err != nil || !there {
		return err
	}
	there, err := stands(ctx, s.Session, m) // as of when the watch begins
	if err != nil {
		return err
	}
	if !there {
		return never(ctx, s)
	}
	return s.Session.Gone(ctx, m)
}

type newestCaller struct {
	backend.Session
	mu    sync.Mutex
	calls map[backend.Member]int
}

func (s *newestCaller) Gone(ctx context.Context, m backend.Member) error {
	s.mu.Lock()
	s.calls[m]++
	mine := s.calls[m]
	s.mu.Unlock()
	err := s.Session.Gone(ctx, m)
	s.mu.Lock()
	newest := s.calls[m] == mine
	s.mu.Unlock()
	if err == nil && !newest {
		return never(ctx, s)
	}
	return err
}

type eachWaiterAsks struct{ backend.Session }

func (s *eachWaiterAsks) Gone(ctx context.Context, m backend.Member) error {
	for {
		watch, cancel := context.WithTimeout(ctx, s.TTL())
		err := s.Session.Gone(watch, m)
		over := watch.Err() != nil && ctx.Err() == nil
		cancel()
		if !over {
			return err
		}
		if _, err := s.Get(ctx, m.Line); err != nil {
			return err
		}
	}
}

type silentClose struct{ backend.Session }

func (s *silentClose) Close(context.Context) error {
	time.AfterFunc(s.TTL(), func() { _ = s.Session.Close(context.Background()) })
	return nil
}
