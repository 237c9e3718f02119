package broken

import (
	"cmp"
	"context"

	"github.com/succession-dev/succession/backend"
)

var successionFlaws = []Flaw{
	{
		Name:   "by name",
		Breaks: "G4: candidates stand in the order of what they call themselves, and not in that of joining",
		Must:   "G4.order",
		May:    "Pin.gate G1 G7.released G8 G9.blocked G10.asked Run.sealed Fault",
		election: candidates(func(c *candidate) backend.Session {
			return &sorted{c, func(a, b backend.Member) int { return cmp.Compare(a.Value, b.Value) }}
		}),
	},
	{
		Name:     "woken is first",
		Breaks:   "G4: a waiter that is woken takes itself for the leader, and does not ask who is ahead now",
		Must:     "G4.middle G4.crash",
		May:      "Fault",
		election: candidates(func(c *candidate) backend.Session { return &wokenIsFirst{candidate: c} }),
	},
	{
		Name:    "reads all",
		Breaks:  "G5: Ahead reads what each member of the line says",
		Must:    "L2.cost G5.cost G5.bytes",
		session: func(_ *Backend, s backend.Session) backend.Session { return &readsAll{s} },
	},
	{
		Name:    "reads what all say",
		Breaks:  "G5: Ahead takes one request, whose answer has the values of the whole line",
		Must:    "G5.bytes",
		May:     "L2.cost G5.cost",
		session: func(_ *Backend, s backend.Session) backend.Session { return &readsValues{s} },
	},
	{
		Name:    "looks once more",
		Breaks:  "G5: who is told that it is first reads the line as well",
		Must:    "G5.handover",
		session: func(_ *Backend, s backend.Session) backend.Session { return &looksOnceMore{s} },
		places:  true,
	},
	{
		Name:    "observer reads all",
		Breaks:  "G5: an observer reads each member of the line whenever the first changes",
		Must:    "G5.observer",
		session: func(_ *Backend, s backend.Session) backend.Session { return &observesAll{s} },
	},
	{
		Name:     "each for itself",
		Breaks:   "G5: each of many candidates of a session makes sure by itself, once in a session time, that its watch lives",
		Must:     "G5.elections",
		election: candidates(func(c *candidate) backend.Session { return c }),
	},
	{
		Name:     "restless",
		Breaks:   "G5: a waiter asks for its place twenty times in a session time, although it would be woken",
		Must:     "G5.rest",
		election: candidates(func(c *candidate) backend.Session { return &restless{c} }),
	},
}

type wokenIsFirst struct {
	*candidate
	woken bool
}

func (s *wokenIsFirst) Gone(ctx context.Context, m backend.Member) error {
	err := s.Session.Gone(ctx, m)
	s.woken = s.woken || err == nil && m != s.own
	return err
}

func (s *wokenIsFirst) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.candidate.Ahead(ctx, m)
	if err == nil && s.woken && !p.First {
		return backend.Place{First: true, Token: m.Position}, nil
	}
	return p, err
}

type readsAll struct{ backend.Session }

func (s *readsAll) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	line, err := s.Line(ctx, m.Line)
	if err != nil {
		return backend.Place{}, err
	}
	for _, o := range line.Members {
		if _, err := s.Get(ctx, o.Line+"/"+o.Key); err != nil {
			return backend.Place{}, err
		}
	}
	return s.Session.Ahead(ctx, m)
}

type readsValues struct{ backend.Session }

func (s *readsValues) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	if _, err := s.Line(ctx, m.Line); err != nil {
		return backend.Place{}, err
	}
	return s.Session.Ahead(ctx, m)
}

type looksOnceMore struct{ backend.Session }

func (s *looksOnceMore) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	err := s.Session.WatchPlace(ctx, m, p)
	if err == nil && p.First {
		_, err = s.Line(ctx, m.Line)
	}
	return err
}

type observesAll struct{ backend.Session }

func (s *observesAll) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	if err != nil {
		return l, err
	}
	for _, m := range l.Members {
		if _, err := s.Get(ctx, line+"/"+m.Key); err != nil {
			return l, err
		}
	}
	return l, nil
}

type restless struct{ *candidate }

func (s *restless) Gone(ctx context.Context, m backend.Member) error {
	if m == s.own {
		return s.Session.Gone(ctx, m)
	}
	soon, cancel := context.WithTimeout(ctx, s.TTL()/20)
	defer cancel()
	err := s.Session.Gone(soon, m)
	if soon.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}
