package simulation

import (
	"context"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
)

// An actor uses package elect: a candidate, an observer or an operator. It does the
// same whenever the plan is run: ctx has the seed of its jitter and its number, by which
// its calls have turns of their own ([turns]), so that the order in which the coordinator
// gets what several send at one instant is not the scheduler's.
type actor struct {
	ctx context.Context
	nth time.Duration
}

type nthKey struct{}

// actor returns the next actor. The world makes them in one order.
func (w *world) actor() actor {
	w.actors++
	nth := time.Duration(w.actors)
	ctx := backoff.WithSeed(w.ctx, w.plan.Seed, w.actors)
	return actor{context.WithValue(ctx, nthKey{}, nth), nth}
}

// The turns of one actor: one for each call that may be sent while another of the
// same actor is.
const (
	turnLine = iota // the line: where one stands in it, and who has gone
	turnWatch
	turnLeave // which is tried on while its candidate campaigns again
	turnOther // one after the other
	turnsEach
)

// stride is the time in which each turn comes once, and chain the time that calls one
// after the other take, such as those of a composite that takes its places. Steps, and
// what the world does by itself, are at whole strides, where no turn is.
const (
	stride = time.Microsecond
	chain  = 60 * stride
)

// turns is a client whose calls wait for the turns of who calls; those that nobody
// calls, such as what a composite does behind its callers' backs, for its own.
type turns struct {
	backend.Backend
	own time.Duration
}

type turnsSession struct {
	backend.Session
	own time.Duration
}

// wait waits for the next turn: one nanosecond in each stride. A call is never sent
// at the instant of what it follows from, so that this is over when its answer comes.
func wait(ctx context.Context, own, turn time.Duration) {
	nth, ok := ctx.Value(nthKey{}).(time.Duration)
	if !ok {
		nth = own
	}
	late := time.Duration(time.Now().Nanosecond()) - (nth*turnsEach + turn)
	time.Sleep(stride - (late%stride+stride)%stride)
}

// An entrance is where candidates and observers come into their process: of several that
// need a session at one instant the same one opens it.
type entrance struct{ backend.Backend }

func (e entrance) Session(ctx context.Context) (backend.Session, error) {
	wait(ctx, 0, turnOther)
	return e.Backend.Session(ctx)
}

func (b turns) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	return turnsSession{s, b.own}, nil
}

func (s turnsSession) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	wait(ctx, s.own, turnOther)
	return s.Session.Join(ctx, line, value, record)
}

func (s turnsSession) Leave(ctx context.Context, m backend.Member) error {
	// What a composite gives up behind its callers' backs may be several places at once.
	wait(ctx, s.own+time.Duration(m.Position), turnLeave)
	return s.Session.Leave(ctx, m)
}

func (s turnsSession) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	wait(ctx, s.own, turnOther)
	return s.Session.Pin(ctx, m, h, at)
}

func (s turnsSession) Get(ctx context.Context, name string) (backend.Record, error) {
	wait(ctx, s.own, turnOther)
	return s.Session.Get(ctx, name)
}

func (s turnsSession) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	wait(ctx, s.own, turnOther)
	return s.Session.Put(ctx, name, value, cond)
}

func (s turnsSession) Delete(ctx context.Context, name string, cond *backend.If) error {
	wait(ctx, s.own, turnOther)
	return s.Session.Delete(ctx, name, cond)
}

func (s turnsSession) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	wait(ctx, s.own, turnLine)
	return s.Session.Ahead(ctx, m)
}

func (s turnsSession) Line(ctx context.Context, line string) (backend.Line, error) {
	wait(ctx, s.own, turnLine)
	return s.Session.Line(ctx, line)
}

func (s turnsSession) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	wait(ctx, s.own, turnLine)
	return s.Session.WatchPlace(ctx, m, p)
}

func (s turnsSession) Head(ctx context.Context, line string) (backend.Line, error) {
	wait(ctx, s.own, turnLine)
	return s.Session.Head(ctx, line)
}

func (s turnsSession) Gone(ctx context.Context, m backend.Member) error {
	wait(ctx, s.own, turnLine)
	return s.Session.Gone(ctx, m)
}

func (s turnsSession) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	wait(ctx, s.own, turnLine)
	return s.Session.WatchLine(ctx, line, after)
}

func (s turnsSession) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	wait(ctx, s.own, turnWatch)
	return s.Session.Watch(ctx, name, after)
}
