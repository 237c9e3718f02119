package broken

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

var placeFlaws = []Flaw{
	{
		Name:    "the front alone",
		Breaks:  "L3: WatchPlace watches the member in front, and neither the member itself nor the header",
		Must:    "L3.place-removed L3.place-header",
		May:     "L3.place-sealed G7.removed G7.dropped G7.asked G8.waiter-removed G10.asked Run.sealed Fault.leader-removed Fault.dropped",
		session: func(_ *Backend, s backend.Session) backend.Session { return &frontAlone{s} },
	},
	{
		Name:    "yesterday's fence",
		Breaks:  "L3: WatchPlace says First with the header of the last look",
		Must:    "L3.place-fence",
		May:     "G2.fence",
		session: func(_ *Backend, s backend.Session) backend.Session { return &yesterdaysFence{s} },
	},
	{
		Name:    "place from now on",
		Breaks:  "L3: WatchPlace waits for a change after its call, whatever has changed before",
		Must:    "L3.place",
		session: func(_ *Backend, s backend.Session) backend.Session { return &placeFromNowOn{s} },
	},
	{
		Name:    "no word of the seal",
		Breaks:  "L3: WatchPlace does not see that the member in front was pinned",
		Must:    "L3.place-sealed",
		May:     "L3.place-removed G8.waiter-removed Run.sealed",
		session: func(_ *Backend, s backend.Session) backend.Session { return &noWordOfTheSeal{s} },
	},
	{
		Name:    "place on cancel",
		Breaks:  "L3: a cancelled WatchPlace returns the place that it was given, and no error",
		Must:    "L3.place-ends",
		session: func(_ *Backend, s backend.Session) backend.Session { return &placeOnCancel{s} },
	},
}

// watches is WatchPlace of the session without the flaw.
func watches(ctx context.Context, s backend.Session, m backend.Member, after backend.Place) (backend.Place, error) {
	return s.(backend.PlaceWatcher).WatchPlace(ctx, m, after)
}

type frontAlone struct{ backend.Session }

func (s *frontAlone) WatchPlace(ctx context.Context, m backend.Member, after backend.Place) (backend.Place, error) {
	if after.First {
		return backend.Place{}, never(ctx, s)
	}
	if err := s.Gone(ctx, after.Ahead); err != nil {
		return backend.Place{}, err
	}
	return s.Ahead(ctx, m)
}

type yesterdaysFence struct{ backend.Session }

func (s *yesterdaysFence) WatchPlace(ctx context.Context, m backend.Member, after backend.Place) (backend.Place, error) {
	p, err := watches(ctx, s.Session, m, after)
	if err == nil && p.First && !after.First {
		p.Header, p.Token = after.Header, after.Header.Fence+m.Position
	}
	return p, err
}

type placeFromNowOn struct{ backend.Session }

func (s *placeFromNowOn) WatchPlace(ctx context.Context, m backend.Member, _ backend.Place) (backend.Place, error) {
	p, err := s.Ahead(ctx, m)
	if err != nil {
		return p, err
	}
	return watches(ctx, s.Session, m, p)
}

type noWordOfTheSeal struct{ backend.Session }

func (s *noWordOfTheSeal) WatchPlace(ctx context.Context, m backend.Member, after backend.Place) (backend.Place, error) {
	if after.First {
		return watches(ctx, s.Session, m, after)
	}
	if err := s.Gone(ctx, after.Ahead); err != nil {
		return backend.Place{}, err
	}
	return s.Ahead(ctx, m)
}

type placeOnCancel struct{ backend.Session }

func (s *placeOnCancel) WatchPlace(ctx context.Context, m backend.Member, after backend.Place) (backend.Place, error) {
	p, err := watches(ctx, s.Session, m, after)
	if ctx.Err() != nil {
		return after, nil
	}
	return p, err
}
