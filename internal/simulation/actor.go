package simulation

import (
	"context"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
)

// An actor uses package elect: a candidate, an observer or an operator. It does the
// same whenever the plan is run: ctx has the seed of its jitter, and its calls have
// turns of their own, so that the order in which the coordinator gets what several
// send at one instant is not the scheduler's.
type actor struct {
	ctx context.Context
	nth time.Duration
}

// actor returns the next actor. The world makes them in one order.
func (w *world) actor() actor {
	w.actors++
	return actor{backoff.WithSeed(w.ctx, w.plan.Seed, w.actors), time.Duration(w.actors)}
}

// The turns of one actor: one for each call that may be sent while another of the
// same actor is.
const (
	turnLine = iota // the line: where one stands in it, and who has gone
	turnWatch
	turnOther // one after the other
	turns
)

// stride is the time in which each turn comes once, and chain the time that a
// few calls one after the other take. Steps, and what the world does by itself, are
// at whole strides, where no turn is.
const (
	stride = time.Microsecond
	chain  = 10 * stride
)

// wait waits for the next turn: one nanosecond in each stride. A call is never sent
// at the instant of what it follows from, so that this is over when its answer comes.
func (a actor) wait(turn time.Duration) {
	late := time.Duration(time.Now().Nanosecond()) - (a.nth*turns + turn)
	time.Sleep(stride - (late+stride)%stride)
}

// on returns b as the actor uses it.
func (a actor) on(b backend.Backend) backend.Backend { return actorsBackend{b, a} }

type actorsBackend struct {
	backend.Backend
	a actor
}

type actorsSession struct {
	backend.Session
	a actor
}

func (b actorsBackend) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	return actorsSession{s, b.a}, nil
}

func (s actorsSession) Join(ctx context.Context, line, value string) (backend.Member, error) {
	s.a.wait(turnOther)
	return s.Session.Join(ctx, line, value)
}

func (s actorsSession) Leave(ctx context.Context, m backend.Member) error {
	s.a.wait(turnOther)
	return s.Session.Leave(ctx, m)
}

func (s actorsSession) Get(ctx context.Context, name string) (backend.Record, error) {
	s.a.wait(turnOther)
	return s.Session.Get(ctx, name)
}

func (s actorsSession) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	s.a.wait(turnOther)
	return s.Session.Put(ctx, name, value, cond)
}

func (s actorsSession) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	s.a.wait(turnLine)
	return s.Session.Ahead(ctx, m)
}

func (s actorsSession) Line(ctx context.Context, line string) (backend.Line, error) {
	s.a.wait(turnLine)
	return s.Session.Line(ctx, line)
}

func (s actorsSession) Gone(ctx context.Context, m backend.Member) error {
	s.a.wait(turnLine)
	return s.Session.Gone(ctx, m)
}

func (s actorsSession) Joined(ctx context.Context, line string) error {
	s.a.wait(turnLine)
	return s.Session.Joined(ctx, line)
}

func (s actorsSession) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	s.a.wait(turnWatch)
	return s.Session.Watch(ctx, name, after)
}
