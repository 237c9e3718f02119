package recipes_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/group"
)

var present = recipe{
	processes: 2,
	process: func(w *world, p *process, worked func()) func(context.Context) error {
		g := group.New(p.b, "group", p.options())
		return func(ctx context.Context) error {
			for n := 0; ctx.Err() == nil; n++ {
				pr, err := g.Join(ctx)
				if err != nil {
					return err
				}
				value := fmt.Sprint(p.Name(), " ", n)
				if err := pr.Set(ctx, value); err == nil {
					members, err := g.Members(ctx)
					is := func(m group.Member) bool { return m.Token == pr.Token() && m.ID == p.Name() && m.Value == value }
					if err == nil && pr.Check() == nil && !w.excused(p) && !slices.ContainsFunc(members, is) {
						w.fail("%s is present with the value %q, and the group is %+v", p.Name(), value, members)
					}
					if err == nil {
						worked()
					}
				}
				w.works(pr.Context(), ctx, p)
				_ = pr.Leave(ctx) // it is tried on if it fails
				linger(ctx, 200*time.Millisecond)
			}
			return nil
		}
	},
	end: func(w *world) {
		last := w.c.Client("last")
		defer last.Close()
		if members, err := group.New(last, "group", nil).Members(context.Background()); err != nil || len(members) > 0 {
			w.fail("all have left, and the group is %+v, %v", members, err)
		}
	},
}

// sources are what the members of a group divide.
var sources = []string{"a", "b", "c", "d"}

var assigned = recipe{
	processes: 2,
	process: func(w *world, p *process, worked func()) func(context.Context) error {
		g := group.New(p.b, "group", p.options())
		return func(ctx context.Context) error {
			for ctx.Err() == nil {
				pr, err := g.Join(ctx)
				if err != nil {
					return err
				}
				go looks(ctx, g, pr, worked)
				err = pr.Assign(ctx, sources, func(ctx context.Context, item string, t *elect.Term) error {
					leave := w.enter(p, t, "the source "+item, 1)
					defer leave()
					<-ctx.Done()
					return nil
				})
				_ = pr.Leave(ctx) // it is tried on if it fails
				if err != nil && ctx.Err() == nil && !passes(err) {
					return err
				}
			}
			return nil
		}
	},
	calm: func(w *world) {
		for _, item := range sources {
			if n := w.holders("the source " + item); n != 1 {
				w.fail("%d have the source %s", n, item)
			}
		}
	},
}

// looks tells from time to time that the member is present, and can see the group.
func looks(ctx context.Context, g *group.Group, pr *group.Presence, worked func()) {
	for ctx.Err() == nil && pr.Check() == nil {
		if _, err := g.Members(ctx); err == nil {
			worked()
		}
		linger(ctx, time.Second)
	}
}

// alone sees nobody but the last in line.
type alone struct{ backend.Session }

func (s alone) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	if n := len(l.Members); n > 1 {
		l.Members = l.Members[:n-1]
	}
	return l, err
}
