package broken

import (
	"context"
	"math"
	"slices"
	"sync/atomic"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/header"
)

var choiceFlaws = []Flaw{
	{
		Name:     "does not ask whether it is ready",
		Breaks:   "Choice: a candidate leads although it is not ready",
		Must:     "Choice.ready Choice.unready-leader",
		election: withOptions(func(o *elect.Options) { o.Ready = nil }),
	},
	{
		Name:   "ready once, ready for ever",
		Breaks: "Choice: a leader does not ask any more whether it is ready",
		Must:   "Choice.unready-leader",
		election: withOptions(func(o *elect.Options) {
			ready, before := o.Ready, o.Trace
			if ready == nil {
				return
			}
			var leads atomic.Bool
			o.Trace = trace.Tee(before, func(ev trace.Event) {
				if ev.Kind == trace.Elected {
					leads.Store(true)
				}
			})
			o.Ready = func(ctx context.Context) error {
				if leads.Load() {
					return nil
				}
				return ready(ctx)
			}
		}),
	},
	{
		Name:     "all alike",
		Breaks:   "Choice: candidates say nothing of their priority",
		Must:     "Choice.priority",
		election: withOptions(func(o *elect.Options) { o.Priority = 0 }),
	},
	{
		Name:     "at home everywhere",
		Breaks:   "Choice: a candidate leads although one in the site of the last leader stands behind it",
		Must:     "Choice.site",
		election: candidates(func(c *candidate) backend.Session { return &atHomeEverywhere{c} }),
	},
	{
		Name:     "deaf to wishes",
		Breaks:   "Choice: a candidate leads although another is wished for",
		Must:     "Choice.wish Choice.foreign",
		election: candidates(func(c *candidate) backend.Session { return &deafToWishes{c} }),
	},
	{
		Name:     "waits for who has gone",
		Breaks:   "Choice: a candidate gives way to one that has left the line",
		Must:     "Choice.wish-lapses",
		May:      "Choice.wish Choice.foreign",
		election: candidates(func(c *candidate) backend.Session { return &waitsForWhoHasGone{c} }),
	},
	{
		Name:     "pushes to the front",
		Breaks:   "Choice: one that is wished for leads before it is first",
		Must:     "Choice.foreign",
		May:      "Choice.wish G8.waiter-removed", // a waiting candidate asks often
		election: candidates(func(c *candidate) backend.Session { return &pushesToTheFront{c} }),
	},
	{
		Name:     "paused in name only",
		Breaks:   "Choice: a pause has the leader resign, and nothing keeps the next one from leading",
		Must:     "Choice.pause",
		election: elections(func(e election.Election, _ backend.Backend, _ string) election.Election { return &pausedInName{e} }),
	},
	{
		Name:     "whoever leads",
		Breaks:   "Choice: a request to resign goes to whoever leads when it comes",
		Must:     "Choice.token",
		election: elections(func(e election.Election, _ backend.Backend, _ string) election.Election { return &whoeverLeads{e} }),
	},
}

// withOptions makes elections with other options.
func withOptions(change func(*elect.Options)) election.Maker {
	return func(b backend.Backend, name string, o *elect.Options) election.Election {
		var changed elect.Options
		if o != nil {
			changed = *o
		}
		change(&changed)
		return election.New(b, name, &changed)
	}
}

type atHomeEverywhere struct{ *candidate }

func (s *atHomeEverywhere) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.candidate.Line(ctx, line)
	noted(&l.Header, func(h *header.Header) { h.Choice.Site = "" })
	return l, err
}

type deafToWishes struct{ *candidate }

func (s *deafToWishes) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.candidate.Ahead(ctx, m)
	noted(&p.Header, func(h *header.Header) { h.Choice.Wish = header.Wish{} })
	return p, err
}

func (s *deafToWishes) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.candidate.Line(ctx, line)
	noted(&l.Header, func(h *header.Header) { h.Choice.Wish = header.Wish{} })
	return l, err
}

// waitsForWhoHasGone shows the member of a wish at the end of the line, although it has gone.
type waitsForWhoHasGone struct{ *candidate }

func (s *waitsForWhoHasGone) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.candidate.Ahead(ctx, m)
	noted(&p.Header, func(h *header.Header) {
		if w := &h.Choice.Wish; w.Position != 0 {
			w.Position = math.MaxUint64
		}
	})
	return p, err
}

func (s *waitsForWhoHasGone) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.candidate.Line(ctx, line)
	noted(&l.Header, func(h *header.Header) {
		if w := &h.Choice.Wish; w.Position != 0 {
			w.Position = math.MaxUint64
			l.Members = append(slices.Clip(l.Members), backend.Member{Line: line, Key: w.Key, Position: w.Position})
		}
	})
	return l, err
}

type pushesToTheFront struct{ *candidate }

func (s *pushesToTheFront) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.candidate.Ahead(ctx, m)
	if h, herr := header.Of(p.Header); err == nil && herr == nil && h.Choice.Wish.Position == m.Position {
		p.First, p.Token = true, h.Fence+m.Position
	}
	return p, err
}

// Gone does not wait for long, so that it looks often whether it is wished for.
func (s *pushesToTheFront) Gone(ctx context.Context, m backend.Member) error {
	return sleep(ctx, s.TTL()/50)
}

type pausedInName struct{ election.Election }

func (e *pausedInName) Pause(ctx context.Context, _ string) (elect.Candidate, error) {
	l, err := e.AskToResign(ctx, nil)
	return l.Candidate, err
}

type whoeverLeads struct{ election.Election }

func (e *whoeverLeads) AskToResign(ctx context.Context, o *operate.ResignOptions) (elect.Leader, error) {
	if o != nil && o.Token != 0 {
		o = &operate.ResignOptions{To: o.To, Within: o.Within}
	}
	return e.Election.AskToResign(ctx, o)
}
