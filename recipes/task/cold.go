package task

import (
	"context"
	"errors"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/recipes/internal/recipe"
)

// Cold looks for a started task that nobody runs, runs it, and then looks on, until ctx ends. The
// machine is bound to no task: it joins the line of one where nobody stands, and leaves it again if
// another was faster. The arguments and results of run, and the result of Cold, are as for
// [Standby.Hot].
//
// Of the machines that run nothing, only one looks. The others stand behind it, in a line of their
// own, and cost nothing. The machine that looks is woken when a task is started, or when the first
// in the line of a task goes; otherwise it looks again about once in a session time. A task that it
// does not get is run by a machine that was faster. A machine that is not ready ([elect.Options] Ready) looks on until it is.
func (s *Standby) Cold(ctx context.Context, run func(context.Context, *Run) error) error {
	if s.err != nil {
		return s.err
	}
	if run == nil {
		return errNoFunction("Cold")
	}
	for {
		turn, err := s.idle.Campaign(ctx)
		if err != nil {
			return err
		}
		looking, over := recipe.InTurn(ctx, turn)
		task, t, err := s.find(looking)
		lost := looking.Err() != nil
		over()
		if err != nil {
			if lost && ctx.Err() == nil { // the turn was lost, and another looks now
				continue
			}
			return err
		}
		if err := s.lead(ctx, t, task, false, run); err != nil {
			return err
		}
	}
}

// find returns a started task, and the term in which this machine is first in its line.
func (s *Standby) find(ctx context.Context) (task string, t *elect.Term, err error) {
	j := backoff.JitterOf(ctx)
	passing := func(err error) bool {
		return again.Passing(err) || errors.Is(err, elect.ErrNotFirst) || errors.Is(err, elect.ErrNotReady)
	}
	err = again.Until(ctx, passing, func() (found bool, err error) {
		task, t, err = s.look(ctx, j)
		return t != nil, err
	})
	return task, t, needsRecords(err)
}

// look looks at each task once. If all of them are run, look waits until that may have changed, and
// returns no term.
func (s *Standby) look(ctx context.Context, j backoff.Jitter) (string, *elect.Term, error) {
	se, err := s.b.Session(ctx)
	if err != nil {
		return "", nil, err
	}
	news, err := se.Get(ctx, s.news()) // before the tasks, so that no Start is missed
	if err != nil {
		return "", nil, err
	}
	waits := []func(context.Context) error{func(ctx context.Context) error {
		_, err := se.Watch(ctx, s.news(), news.Version)
		return err
	}}
	records, err := se.ReadAll(ctx, s.folder())
	if err != nil {
		return "", nil, err
	}
	for _, r := range records {
		if d, err := decode[definition](r); err != nil || d.State != Started {
			continue
		}
		task := strings.TrimPrefix(r.Name, s.folder()+"/")
		line, err := se.Head(ctx, s.line(task))
		switch {
		case err != nil:
			return "", nil, err
		case len(line.Members) == 0:
			t, err := s.election(task).TryCampaign(ctx)
			return task, t, err
		}
		waits = append(waits, goes(se, line.Members[0]))
	}
	return "", nil, again.ForAWhile(ctx, se, j, func(ctx context.Context) error { return again.Either(ctx, waits...) })
}

// goes returns a func that blocks until m has gone.
func goes(s backend.Session, m backend.Member) func(context.Context) error {
	return func(ctx context.Context) error { return s.Gone(ctx, m) }
}
