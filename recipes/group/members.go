package group

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/value"
)

// A Member is one who is present.
type Member struct {
	ID string `json:"id"`
	// Value is what the member has set last or, before that, the Value of its Options.
	Value string `json:"value,omitempty"`
	// Token is that of its presence. It tells apart two members with the same ID.
	Token uint64 `json:"token"`
}

// Members returns who is present, in the order of joining, with their values. It does not join.
//
// It is the call for values that change often: ask for them from time to time. It costs one
// request for the line, one for the list of values, and one for each value that was set; these go
// out together, sixteen at a time, so that it blocks for about three round trips.
//
// It fails with [backend.ErrInvalid] if only others stand in the line, such as the candidates of
// an election.
func (g *Group) Members(ctx context.Context) ([]Member, error) {
	s, err := g.session(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	line, err := s.Line(ctx, g.line())
	if err != nil {
		return nil, err
	}
	return g.read(ctx, s, line)
}

// Follow yields who is present, at once, and then whenever a member has joined or gone, with the
// values as they then are. It does not join. Each step blocks until there is a change; [Presence.Set]
// is none.
//
// Follow never goes back to an earlier state. A slow consumer may miss states, but never the
// newest one. If the coordinator cannot be reached, it waits in silence, so what it yielded last
// may be out of date then.
//
// Whoever follows costs the coordinator one watch. A change costs each of them the reading of the
// line, and of the values as in [Group.Members].
//
// The sequence ends with an error: the cause of ctx, or an error that does not pass by itself.
func (g *Group) Follow(ctx context.Context) iter.Seq2[[]Member, error] {
	return func(yield func([]Member, error) bool) {
		enough := false
		err := g.follow(ctx, func(s backend.Session, line backend.Line) error {
			members, err := g.read(ctx, s, line)
			if err == nil && !yield(members, nil) {
				enough, err = true, errEnough
			}
			return err
		})
		if !enough {
			yield(nil, err)
		}
	}
}

// errEnough ends follow when the consumer has seen enough.
var errEnough = errors.New("enough was seen")

// follow calls tell with the line, and again with each later state of it. It returns when ctx
// ends, or with an error that does not pass by itself, also one of tell. If an error of tell may
// pass, tell is called again, with the line as it is then.
func (g *Group) follow(ctx context.Context, tell func(backend.Session, backend.Line) error) error {
	var seen state // the newest state that tell was told
	var doubted *backend.Line
	wait := backoff.New(ctx)
	for {
		s, line, err := g.look(ctx, seen, wait.Jitter)
		if err == nil {
			switch {
			case seen.known && line.SameMembers(seen.line):
				seen.session = s.Done()
				continue
			case seen.known && s.Done() != seen.session && seen.after(line) && (doubted == nil || !doubted.SameMembers(line)):
				// A server that lags behind may show the next session an earlier state. If the
				// next look shows the same again, it is true.
				doubted, err = &line, errEarlier
			default:
				if err = tell(s, line); err == nil {
					seen.sees(s, line)
					doubted = nil
					wait.Reset()
					continue
				}
			}
		}
		switch {
		case ctx.Err() != nil:
			return wait.Cause(ctx)
		case err != errEarlier && !again.Passing(err):
			return err
		}
		if err := wait.After(ctx, err); err != nil {
			return err
		}
	}
}

// errEarlier says why follow looks again.
var errEarlier = errors.New("the coordinator shows an earlier state than before")

// A state is that of the line, as it was seen.
type state struct {
	line    backend.Line
	known   bool            // there is one
	session <-chan struct{} // closed when the session has ended in which it was read
	newest  uint64          // the largest position that was ever seen
}

func (v *state) sees(s backend.Session, line backend.Line) {
	v.line, v.known, v.session = line, true, s.Done()
	v.newest = max(v.newest, newest(line))
}

// after reports whether line may be a state before v: one stands there again that had gone, or
// the newest of v does not stand there.
func (v *state) after(line backend.Line) bool {
	return newest(line) < newest(v.line) || slices.ContainsFunc(line.Members, func(m backend.Member) bool {
		stood := slices.ContainsFunc(v.line.Members, func(o backend.Member) bool { return o.Position == m.Position })
		return m.Position <= v.newest && !stood
	})
}

// newest returns the largest position of those who stand in the line, or 0 if nobody does.
func newest(line backend.Line) (position uint64) {
	for _, m := range line.Members {
		position = max(position, m.Position)
	}
	return position
}

// look returns the line, at once if it has not been seen before. Otherwise it waits for about a
// session time for another state of it. A watch may die unseen: so it then reads the line.
func (g *Group) look(ctx context.Context, seen state, j backoff.Jitter) (s backend.Session, line backend.Line, err error) {
	if s, err = g.session(ctx); err != nil {
		return s, line, err
	}
	changed := false
	if seen.known {
		err = again.ForAWhile(ctx, s, j, func(ctx context.Context) (err error) {
			line, err = s.WatchLine(ctx, g.line(), seen.line)
			changed = err == nil
			return err
		})
	}
	if err == nil && !changed {
		line, err = s.Line(ctx, g.line())
	}
	return s, line, err
}

// present returns the members of the group among those who stand in the line. Others, which have
// joined it by mistake, wait behind them for ever, and do no harm.
func (g *Group) present(line backend.Line) ([]backend.Member, error) {
	present := slices.DeleteFunc(slices.Clone(line.Members), func(m backend.Member) bool { return !m.Shared })
	if len(present) == 0 && len(line.Members) > 0 {
		return nil, g.misused(fmt.Errorf("%s stands there", line.Members[0].Key))
	}
	return present, nil
}

// memberOf returns m as it joined.
func memberOf(line backend.Line, m backend.Member) Member {
	says := value.Parse(m.Value)
	return Member{ID: says.ID, Value: says.Text, Token: line.Token(m)}
}

// read returns the members that stand in the line, with their values.
func (g *Group) read(ctx context.Context, s backend.Session, line backend.Line) ([]Member, error) {
	present, err := g.present(line)
	if err != nil {
		return nil, err
	}
	members := make([]Member, len(present))
	for i, m := range present {
		members[i] = memberOf(line, m)
	}
	set, err := s.List(ctx, g.values())
	if errors.Is(err, errors.ErrUnsupported) {
		return members, nil // nobody can have set one
	}
	if err != nil {
		return nil, err
	}
	err = atOnce(ctx, len(present), func(ctx context.Context, i int) error {
		name := g.value(present[i])
		if _, found := slices.BinarySearch(set, name); !found {
			return nil
		}
		r, err := s.Get(ctx, name)
		if err == nil && r.Version != backend.Absent { // it is absent if the member has left since
			members[i].Value = string(r.Value)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return members, nil
}

// atOnce calls f for each index below n, sixteen at a time. At the first error it ends ctx, and
// returns that error when all calls have returned.
func atOnce(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calls sync.WaitGroup
	free := make(chan struct{}, 16)
	for i := range n {
		free <- struct{}{}
		calls.Go(func() {
			defer func() { <-free }()
			if ctx.Err() != nil {
				return
			}
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	calls.Wait()
	return context.Cause(ctx)
}
