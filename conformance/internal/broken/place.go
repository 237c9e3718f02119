package broken

import (
	"context"
	"sync/atomic"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/again"
)

var placeFlaws = []Flaw{
	{
		Name:    "the front alone",
		Breaks:  "L3: WatchPlace watches the member in front, and neither the member itself nor the header",
		Must:    "L3.place-removed L3.place-header",
		May:     "L3.place-sealed L3.place-gate L3.place-late-gate G7.removed G7.dropped G7.asked G8.waiter-removed G10.asked Run.sealed Run.sealed-gate Fault.leader-removed Fault.dropped",
		session: func(_ *Backend, s backend.Session) backend.Session { return &frontAlone{s} },
		places:  true,
	},
	{
		Name:    "yesterday's fence",
		Breaks:  "L3: WatchPlace says First with the header of the last look",
		Must:    "L3.place-fence",
		May:     "G2.fence",
		session: func(_ *Backend, s backend.Session) backend.Session { return &yesterdaysFence{s} },
		places:  true,
	},
	{
		Name:    "place from now on",
		Breaks:  "L3: WatchPlace waits for a change after its call, whatever has changed before",
		Must:    "L3.place",
		May:     "L3.place-late G6 G8 G10 Run",
		session: func(_ *Backend, s backend.Session) backend.Session { return &placeFromNowOn{s} },
		places:  true,
	},
	{
		Name:    "late to the watch",
		Breaks:  "L3: the members of a session share a watch, and whoever comes to it late is told of what happens from then on",
		Must:    "L3.place-late L3.place-late-gate",
		May:     "L3 G6 G7 G8 G10 Run",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lateToTheWatch{Session: s} },
		places:  true,
	},
	{
		Name:    "no word of the seal",
		Breaks:  "L3: WatchPlace does not see that the member in front was pinned",
		Must:    "L3.place-sealed",
		May:     "L3.place-removed L3.place-gate L3.place-late-gate G8.waiter-removed Run.sealed Run.sealed-gate",
		session: func(_ *Backend, s backend.Session) backend.Session { return &noWordOfTheSeal{s} },
		places:  true,
	},
	{
		Name:    "deaf behind a gate",
		Breaks:  "L3: WatchPlace behind a pinned member waits for that to go, and does not watch the header",
		Must:    "L3.place-gate",
		May:     "L3.place-late-gate Run.sealed-gate",
		session: func(_ *Backend, s backend.Session) backend.Session { return &deafBehindAGate{s} },
		places:  true,
	},
	{
		Name:    "place on cancel",
		Breaks:  "L3: a cancelled WatchPlace leaves the place as it was given, and returns no error",
		Must:    "L3.place-ends",
		session: func(_ *Backend, s backend.Session) backend.Session { return &placeOnCancel{s} },
		places:  true,
	},
}

// watches is WatchPlace of the session without the flaw.
func watches(ctx context.Context, s backend.Session, m backend.Member, p *backend.Place) error {
	return s.WatchPlace(ctx, m, p)
}

type frontAlone struct{ backend.Session }

func (s *frontAlone) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	if p.First {
		return never(ctx, s)
	}
	if err := s.Gone(ctx, p.Ahead); err != nil {
		return err
	}
	return again.Ahead(ctx, s, m, p)
}

type yesterdaysFence struct{ backend.Session }

func (s *yesterdaysFence) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	after := *p
	err := watches(ctx, s.Session, m, p)
	if err == nil && p.First && !after.First {
		p.Header, p.Token = after.Header, after.Header.Fence+m.Position
	}
	return err
}

type placeFromNowOn struct{ backend.Session }

func (s *placeFromNowOn) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	if err := again.Ahead(ctx, s, m, p); err != nil {
		return err
	}
	return watches(ctx, s.Session, m, p)
}

type lateToTheWatch struct {
	backend.Session
	waiting atomic.Int64
}

func (s *lateToTheWatch) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) == 1 || p.First {
		return watches(ctx, s.Session, m, p)
	}
	there, err := stands(ctx, s.Session, p.Ahead)
	switch {
	case err != nil:
		return err
	case !there:
		return never(ctx, s)
	}
	if err := s.Gone(ctx, p.Ahead); err != nil {
		return err
	}
	return again.Ahead(ctx, s, m, p)
}

type noWordOfTheSeal struct{ backend.Session }

func (s *noWordOfTheSeal) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	if p.First {
		return watches(ctx, s.Session, m, p)
	}
	if err := s.Gone(ctx, p.Ahead); err != nil {
		return err
	}
	return again.Ahead(ctx, s, m, p)
}

type deafBehindAGate struct{ backend.Session }

func (s *deafBehindAGate) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	if !p.First && p.Ahead.Pinned {
		if err := s.Gone(ctx, p.Ahead); err != nil {
			return err
		}
		return again.Ahead(ctx, s, m, p)
	}
	return watches(ctx, s.Session, m, p)
}

type placeOnCancel struct{ backend.Session }

func (s *placeOnCancel) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	err := watches(ctx, s.Session, m, p)
	if ctx.Err() != nil {
		return nil
	}
	return err
}
