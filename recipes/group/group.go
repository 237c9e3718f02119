package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/logs"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/recipes"
	"github.com/succession-dev/succession/recipes/internal/recipe"
)

var aGroup = recipe.Recipe{Package: "group", Owner: naming.Group, History: true}

// A Group is a process's handle on a group. It is safe for concurrent use.
type Group struct {
	b    backend.Backend
	name string
	o    elect.Options
	e    *elect.Election // in the line of the members
}

// New returns a handle on the group with the given name on b. It does not block and does not
// talk to the coordinator. If the name is not allowed, every call fails with
// [backend.ErrInvalid], and Join also if an option is not. The caller still has to close b.
//
// The options are those of an election: ID says who this member is, and Value is its value until it
// sets another one. Trace is told of the member and of each item that it stands in line for. Ready,
// Priority and Site must be left out, because members stand together. History is for the history of
// each item. An ID that stays the same when the process is started again lets [Presence.Assign] find
// the same items again; the default ID does not. o may be nil.
//
// The group uses the names NAME-members, NAME-values, NAME-owners, and those that begin with
// NAME-item-: choose a NAME for which nothing else uses these.
func New(b backend.Backend, name string, o *elect.Options) *Group {
	g := &Group{b: b, name: name, o: *aGroup.Options(name, o)}
	g.e = elect.New(view.Of(b, shared), g.line(), &g.o)
	g.o.ResignTimeout = cmp.Or(g.o.ResignTimeout, 5*time.Second)
	g.o.Logger = logs.Or(g.o.Logger)
	return g
}

func shared(s backend.Session) backend.Session {
	return view.Shared{Session: s, Instead: "a coordinator that has them, and no migration: a group does not go through one"}
}

// Name returns the group's name.
func (g *Group) Name() string { return g.name }

// line is where the members stand.
func (g *Group) line() string { return g.name + naming.Members }

// session returns the session, if the name of the group is allowed.
func (g *Group) session(ctx context.Context) (backend.Session, error) {
	if err := aGroup.CheckName(g.name); err != nil {
		return nil, err
	}
	return g.b.Session(ctx)
}

// Join makes this process a member of the group. The caller must call [Presence.Leave] on what it
// gets, also after the presence was lost. Once Join has returned, ctx has no effect on it. Each
// call joins as another member.
//
// Join blocks for about two round trips: one request to join, and one for the list of values. Where
// joining does not tell the place, it takes two more. If there are values, Join reads the line to
// see which of their members have died, and deletes up to sixteen values of such members, with a
// request for each. While the coordinator cannot be reached, or an operator has paused the line
// NAME-members, Join tries on until ctx ends.
//
// It fails with [backend.ErrInvalid] if others use the line for something else, such as an
// election, and with [errors.ErrUnsupported] where the backend has no shared members.
func (g *Group) Join(ctx context.Context) (*Presence, error) {
	if err := aGroup.Check(g.name, &g.o); err != nil {
		return nil, err
	}
	t, err := aGroup.Join(ctx, g.b, g.name, g.e)
	if err != nil {
		return nil, err
	}
	p := &Presence{Hold: recipes.NewHold(t), g: g}
	p.sweep(ctx)
	return p, nil
}

// A Presence is the time in which this process is a member of the group. It can be lost, and then
// does not come back: leave, and join again, as [Group.Run] does. Token is larger than that of
// every member that joined before. It is safe for concurrent use.
type Presence struct {
	recipes.Hold
	g   *Group
	set atomic.Bool // Set has been called, so there may be a value to delete
}

// Set changes this member's value, which has at most [backend.MaxValue] bytes of text. It wakes
// nobody: others see it the next time that they call [Group.Members].
//
// It is one request, guarded by the presence: it fails with [backend.ErrNotMember] or
// [backend.ErrSessionEnded] when the member has gone. After [backend.ErrUnavailable] the value
// may be set. The error matches [errors.ErrUnsupported] if the backend has no records.
func (p *Presence) Set(ctx context.Context, value string) error {
	if err := backend.CheckValue(value); err != nil {
		return fmt.Errorf("group: %w", err)
	}
	p.set.Store(true)
	_, err := p.Put(ctx, p.g.value(p.Term().Member()), []byte(value), 0)
	return recordless(err, "give the value in Options: it then does not change")
}

// Leave ends the presence: it deletes the member's value, if there is one, and leaves the line.
// These are two requests. Leave blocks until the coordinator has confirmed both, at most for
// [elect.Options] ResignTimeout each, whether ctx has ended or not. Calling it again returns the same
// result. Call it when Assign has returned: it does not wait for that.
//
// An error means that the member still stands; see [elect.Term.Resign].
func (p *Presence) Leave(ctx context.Context) error {
	if p.set.Swap(false) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.g.o.ResignTimeout)
		_ = p.Delete(bounded, p.g.value(p.Term().Member()), 0) // if it stays, the next member that joins sweeps it
		cancel()
	}
	return p.Term().Resign(ctx)
}

// values is where the values are, and value the record of a member's.
func (g *Group) values() string { return g.name + naming.Values }

func (g *Group) value(m backend.Member) string {
	return naming.At(g.name, naming.Values, m.Position)
}

// sweepMost is how many values one Join deletes at most. One would be enough, because each value
// that was left behind belongs to one join.
const sweepMost = 16

// sweep deletes values of members that died. Nobody can write them again: the coordinator refuses
// that, because the member has gone. It leaves the values of members that joined after this one,
// because these may stand although they are not in the line that was read. If it fails, the next
// join sweeps.
func (p *Presence) sweep(ctx context.Context) {
	s, err := p.g.b.Session(ctx)
	if err != nil {
		return
	}
	names, err := s.List(ctx, p.g.values())
	if err != nil {
		return
	}
	old := make(map[uint64]string)
	for _, name := range names {
		at, ok := naming.Position(strings.TrimPrefix(name, p.g.values()+"/"))
		if ok && at < p.Term().Member().Position {
			old[at] = name
		}
	}
	if len(old) == 0 {
		return
	}
	line, err := s.Line(ctx, p.g.line())
	if err != nil {
		return
	}
	for _, m := range line.Members {
		delete(old, m.Position)
	}
	deleted := 0
	for _, name := range old {
		if deleted++; deleted > sweepMost || p.Delete(ctx, name, 0) != nil {
			return
		}
	}
}

// recordless says what to do if the backend has no records.
func recordless(err error, instead string) error {
	if errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("group: this backend has no records; %s: %w", instead, err)
	}
	return err
}
