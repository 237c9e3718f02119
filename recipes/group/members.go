package group

import (
	"context"
	"errors"
	"iter"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/value"
	"github.com/succession-dev/succession/recipes/internal/recipe"
)

// A Member is a member that is present.
type Member struct {
	ID string `json:"id"`
	// Value is the Value of the Options with which the member joined. In the answer of Members it
	// is the value that the member has set last, if it has set one.
	Value string `json:"value,omitempty"`
	// Token is the token of the member's presence. It tells apart two members with the same ID.
	Token uint64 `json:"token"`
}

// Members returns who is present, in the order of joining, with their values. It does not join.
//
// It is the call for values that change often: ask for them from time to time. It costs one
// request for the line, and one for the values; on ZooKeeper, which has no such requests, one for each member
// and one for each value.
//
// Nobody is present while an operator has paused the line. Members fails with [backend.ErrInvalid]
// if only others stand in the line, such as the candidates of an election.
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
	records, err := s.ReadAll(ctx, g.values())
	if err != nil && !errors.Is(err, errors.ErrUnsupported) { // without records no member can have set a value
		return nil, err
	}
	set := make(map[string]backend.Record, len(records))
	for _, r := range records {
		set[r.Name] = r
	}
	return g.present(line, set)
}

// Follow yields who is present, at once, and then whenever a member has joined or gone, each with the
// value with which it joined. It does not join. Each step blocks until there is a change.
// [Presence.Set] is not such a change, and Follow does not yield what was set: ask [Group.Members]
// for that.
//
// Follow never goes back to an earlier state. A slow consumer may miss states, but never the
// newest one. If the coordinator cannot be reached, it waits in silence, so what it yielded last
// may be out of date then.
//
// Each follower costs the coordinator one watch. After a change each follower reads the line, which
// takes no more requests for a long line than for a short one.
//
// The sequence ends with an error: the cause of ctx, or an error that does not pass by itself.
func (g *Group) Follow(ctx context.Context) iter.Seq2[[]Member, error] {
	return func(yield func([]Member, error) bool) {
		enough := false
		err := g.follow(ctx, func(line backend.Line) error {
			members, err := g.present(line, nil)
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

// follow calls tell with the line, and again with each later state of it. It returns when ctx ends,
// or with an error, its own or tell's, that does not pass by itself. If an error of tell may pass,
// follow calls tell again, with the line as it then is.
func (g *Group) follow(ctx context.Context, tell func(backend.Line) error) error {
	var seen *backend.Line // the newest state that tell was told
	var onward again.Onward
	j := backoff.JitterOf(ctx)
	return again.Until(ctx, again.Passing, func() (bool, error) {
		s, line, err := g.look(ctx, seen, j)
		if err != nil || seen != nil && kit.SameMembers(line, *seen) {
			return false, err
		}
		if ok, err := onward.Shows(ctx, s, false); !ok {
			return false, err
		}
		if err = tell(line); err == nil {
			seen = &line
		}
		return false, err
	})
}

// look returns the line, at once if it has not been seen before. Otherwise it waits for about a
// session time for another state of it. Then it reads the line in any case, because a watch may die
// unseen.
func (g *Group) look(ctx context.Context, seen *backend.Line, j backoff.Jitter) (s backend.Session, line backend.Line, err error) {
	if s, err = g.session(ctx); err != nil {
		return s, line, err
	}
	changed := false
	if seen != nil {
		err = again.ForAWhile(ctx, s, j, func(ctx context.Context) (err error) {
			line, err = s.WatchLine(ctx, g.line(), *seen)
			changed = err == nil
			return err
		})
	}
	if err == nil && !changed {
		line, err = s.Line(ctx, g.line())
	}
	return s, line, err
}

// present returns the members of the group that stand in the line. Each has its value from the
// records set, or if there is none the value that it joined with. A member that is not of the group
// has joined the line by mistake: it waits for ever, and so do those behind it.
func (g *Group) present(line backend.Line, set map[string]backend.Record) ([]Member, error) {
	in, other := recipe.In(line)
	if len(in) == 0 && other != nil && !recipe.Paused(line, other) {
		return nil, aGroup.Misused(g.name, other)
	}
	members := []Member{} // never nil, which would be null as JSON
	for _, m := range in {
		says := value.Parse(m.Value)
		member := Member{ID: says.ID, Value: says.Text, Token: line.Token(m)}
		if r, ok := set[g.value(m)]; ok {
			member.Value = string(r.Value)
		}
		members = append(members, member)
	}
	return members, nil
}
