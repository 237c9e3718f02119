package barrier

import (
	"context"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/recipes"
)

// A DoubleBarrier is a process's handle on a barrier that n participants enter together and leave
// together. It is safe for concurrent use. Each call of Enter is a participant of its own.
//
// The next n can enter while others are inside, about 7,000 in all: they are another round, and leave
// together with each other.
type DoubleBarrier struct{ b *Barrier }

// NewDouble returns a handle on the double barrier with the given name on b, for n participants;
// see [New]. It is the same as the [Barrier] of that name, except in how participants leave it.
func NewDouble(b backend.Backend, name string, n int, o *elect.Options) *DoubleBarrier {
	return &DoubleBarrier{New(b, name, n, o)}
}

// Name returns the barrier's name.
func (d *DoubleBarrier) Name() string { return d.b.name }

// Enter blocks until n participants are present, this call among them; see [Barrier.Wait]. The
// caller must call [Inside.Leave] on what it gets.
//
// If the barrier opened with this call, and the session ended before Enter knew, Enter fails with
// [elect.ErrLost]: for the others this call has been inside and has left.
func (d *DoubleBarrier) Enter(ctx context.Context) (*Inside, error) {
	return d.b.enter(ctx)
}

// Inside is a participant that is inside a double barrier, or has been. It is lost when its session
// ends or somebody removes it from the line; for the others it has then left. It is safe for
// concurrent use.
type Inside struct {
	recipes.Hold
	b     backend.Backend
	round round // this participant and those that entered with it
}

// Leave says that this participant is done, and blocks until all of its round are: the n that
// entered together. A participant that has died, or is lost, has left. Leave returns nil only when
// none of the round stands in line. It may be called again.
//
// If ctx ends first, Leave leaves the line all the same, within [elect.Options] ResignTimeout, and
// returns the cause of ctx. If this participant was lost before, Leave still waits for the others;
// Check says that it was lost. While the coordinator cannot be reached, Leave waits.
func (in *Inside) Leave(ctx context.Context) error {
	defer in.Term().Resign(ctx) // unless the wait has failed, it has already left
	j := backoff.JitterOf(ctx)
	return again.Until(ctx, again.Passing, func() (left bool, err error) { return in.step(ctx, j) })
}

// step takes a step towards the exit, and reports whether all of the round have left. The first of
// the round stays until all others have gone, and waits for the last. Each of the others leaves
// when it is done, and waits for the first. So each exit wakes one participant, and that of the
// first wakes all.
func (in *Inside) step(ctx context.Context, j backoff.Jitter) (left bool, err error) {
	s, err := in.b.Session(ctx)
	if err != nil {
		return false, err
	}
	l, err := s.Line(ctx, in.Term().Member().Line)
	if err != nil {
		return false, err
	}
	here := slices.DeleteFunc(l.Members, func(m backend.Member) bool { return !in.round.has(m) })
	if len(here) == 0 {
		return true, nil
	}
	await, first := here[:1], here[0].Position == in.Term().Member().Position
	if first && len(here) > 1 {
		await = here[1:]
	} else if err := in.Term().Resign(ctx); first && err == nil {
		return true, nil
	}
	for _, m := range slices.Backward(await) {
		if err := again.ForAWhile(ctx, s, j, func(ctx context.Context) error { return s.Gone(ctx, m) }); err != nil {
			return false, err
		}
	}
	return false, nil
}
