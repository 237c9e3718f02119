package recipes_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/barrier"
)

// participants is how many pass a barrier together.
const participants = 2

// rounds are the calls that wait for a barrier, or have waited: when each began, and when it ended
// if it has.
type rounds struct {
	mu    sync.Mutex
	calls []*interval
}

type interval struct{ from, to time.Time }

func (r *rounds) begins() *interval {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := &interval{from: time.Now()}
	r.calls = append(r.calls, i)
	return i
}

// passes checks that others had called, and had not returned before this call began. Those that
// have died since may have been counted.
func (r *rounds) passes(w *world, p *process, mine *interval) {
	r.mu.Lock()
	defer r.mu.Unlock()
	mine.to = time.Now()
	n := 0
	for _, i := range r.calls {
		if i.to.IsZero() || !i.to.Before(mine.from) {
			n++
		}
	}
	if n < participants {
		w.fail("%s has passed the barrier, and %d were present of %d", p.Name(), n, participants)
	}
	// Nobody asks for those who returned long ago.
	r.calls = slices.DeleteFunc(r.calls, func(i *interval) bool { return !i.to.IsZero() && time.Since(i.to) > time.Hour })
}

func newBarrier() recipe {
	all := make(map[*world]*rounds)
	var mu sync.Mutex
	return recipe{
		processes: participants + 1,
		process: func(w *world, p *process, worked func()) func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if all[w] == nil {
				all[w] = new(rounds)
			}
			r := all[w]
			b := barrier.New(p.b, "start", participants, p.options())
			return func(ctx context.Context) error {
				for ctx.Err() == nil {
					mine := r.begins()
					if err := b.Wait(ctx); err != nil {
						return err
					}
					r.passes(w, p, mine)
					worked()
					linger(ctx, time.Second)
				}
				return nil
			}
		},
		end: func(w *world) {
			mu.Lock()
			defer mu.Unlock()
			delete(all, w)
		},
	}
}

var doubleBarrier = recipe{
	processes: participants,
	process: func(w *world, p *process, worked func()) func(context.Context) error {
		d := barrier.NewDouble(p.b, "start", participants, p.options())
		return func(ctx context.Context) error {
			for ctx.Err() == nil {
				in, err := d.Enter(ctx)
				if errors.Is(err, elect.ErrLost) {
					continue // it was counted, and its session had ended
				}
				if err != nil {
					return err
				}
				w.works(in.Context(), ctx, p)
				err = in.Leave(ctx)
				switch {
				case err == nil:
					worked()
				case ctx.Err() == nil && !errors.Is(err, elect.ErrLost) && !passes(err):
					return err
				}
				linger(ctx, 300*time.Millisecond)
			}
			return nil
		}
	},
}

// haunted shows a ghost behind everybody.
type haunted struct{ backend.Session }

func (s haunted) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	return withGhost(l), err
}

func (s haunted) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	after.Members = slices.Clone(after.Members[:max(0, len(after.Members)-1)])
	l, err := s.Session.WatchLine(ctx, line, after)
	return withGhost(l), err
}

func withGhost(l backend.Line) backend.Line {
	if n := len(l.Members); n > 0 {
		ghost := l.Members[n-1]
		ghost.Key, ghost.Value = "ghost", ghost.Value[:len(ghost.Value)-3]+"AAA" // another call
		l.Members = append(l.Members, ghost)
	}
	return l
}
