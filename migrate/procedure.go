package migrate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/value"
	"github.com/succession-dev/succession/migrate/internal/composite"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// A decision is what a step does next, as the lines are that it has read.
type decision func(protocol.Lines) (protocol.Request, error)

// unlessPaused is d for an election that nobody has paused. Otherwise it refuses: a paused election has no
// leader that could follow, and what pauses it would be left behind.
func unlessPaused(d decision) decision {
	return func(l protocol.Lines) (protocol.Request, error) {
		for _, line := range l {
			if gate, paused := line.Paused(); paused {
				by := value.Parse(gate.Value)
				return protocol.Request{}, fmt.Errorf("%w: the election is paused by %s: %s; resume it first", ErrRefused, by.ID, by.Text)
			}
		}
		return d(l)
	}
}

// step reads both lines and does what is decided, again and again until the step is done,
// is refused, or ctx ends, at whatever moment: its error says then why the attempts before
// did not do it.
func (b *Backend) step(ctx context.Context, op, election string, try func(v view) (done bool, err error)) (Status, error) {
	wait := backoff.New(ctx)
	var last error
	for {
		v, err := b.look(ctx, election)
		done := false
		if err == nil {
			done, err = try(v)
		}
		if err == nil && done {
			return b.Status(ctx, election)
		}
		if err == nil || errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrVersion) {
			last, err = err, wait.Sleep(ctx)
		}
		if err != nil {
			if last != nil && ctx.Err() != nil {
				err = fmt.Errorf("%w; last: %w", err, last)
			}
			return Status{}, composite.Wrap(op, election, err)
		}
	}
}

// try decides once, and does it. It reports whether the step is done.
func (b *Backend) try(ctx context.Context, election string, v view, decide decision) (done bool, err error) {
	r, err := decide(v.line)
	if err == nil && r.Begins() {
		err = b.distinct(ctx, election, v.on)
	}
	if err == nil {
		err = b.perform(ctx, election, v, r)
	}
	return r.Act == protocol.Nothing || r.Last, err
}

// perform does what was decided by the view.
func (b *Backend) perform(ctx context.Context, election string, v view, r protocol.Request) error {
	to := v.on[protocol.To]
	switch r.Act {
	case protocol.Write:
		return write(ctx, v.on[r.Side], election, r.Header, v.line[r.Side].Version)
	case protocol.PutGate:
		return b.putGate(ctx, to, election, v.line[protocol.To], r.Header)
	case protocol.OpenGate:
		return v.on[r.Side].Leave(ctx, r.Gate)
	case protocol.Reopen:
		if err := write(ctx, to, election, v.line[protocol.To].Header, v.line[protocol.To].Version); err != nil {
			return err
		}
		return write(ctx, v.on[protocol.From], election, r.Header, v.line[protocol.From].Version)
	case protocol.EndMove:
		return composite.EndMove(ctx, composite.Move{Election: election, From: v.on[protocol.From], To: to, Sealed: v.line[protocol.From].Header, Log: b.log})
	case protocol.Touch:
		return b.touch(ctx, election, v)
	}
	return nil
}

// write replaces the election's record, where it still has the version.
func write(ctx context.Context, s backend.Session, election string, h backend.Header, at backend.Version) error {
	_, err := s.Put(ctx, election, h.Encode(), &backend.If{Version: at})
	return err
}

// giveUpBound is how long putGate goes on when its context has ended.
const giveUpBound = 5 * time.Second

// putGate joins To's line, in which nobody stood, and makes its member the gate.
func (b *Backend) putGate(ctx context.Context, to backend.Session, election string, before backend.Line, h backend.Header) error {
	m, err := to.Join(ctx, election, protocol.GateValue+h.Migration.ID, "")
	if err != nil {
		return err
	}
	// Who gives up now must not leave a member that may yet become the gate.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpBound)
	defer cancel()
	now, err := to.Line(ctx, election)
	if err == nil {
		err = b.route.MayPin(m.Member, before, now)
	}
	if err == nil {
		h.Migration.Gate = m.Position
		err = to.Pin(ctx, m.Member, h, before.Version)
		if err == nil {
			return nil
		}
		if !errors.Is(err, backend.ErrVersion) && !errors.Is(err, backend.ErrNotMember) && !errors.Is(err, backend.ErrDenied) {
			// Perhaps it is the gate by now. With its session it goes if it is not.
			return errors.Join(err, to.Close(ctx))
		}
	}
	if lerr := to.Leave(ctx, m.Member); lerr != nil {
		return errors.Join(err, to.Close(ctx))
	}
	return err
}

// touch writes From's record as it is, after which no seal can be set that was sent
// before, and then the end of the abort to To's.
func (b *Backend) touch(ctx context.Context, election string, v view) error {
	from := v.on[protocol.From]
	r, err := from.Get(ctx, election)
	if err != nil {
		return err
	}
	now, err := backend.ParseHeader(r.Value)
	if err != nil {
		return err
	}
	l := v.line[protocol.To]
	h, goes := b.route.AbortedOf(now, l.Header)
	if !goes {
		return nil // look again: too late, or the opposite migration has begun
	}
	if r.Version == backend.Absent {
		r.Value = now.Encode()
	}
	if _, err := from.Put(ctx, election, r.Value, &backend.If{Version: r.Version}); err != nil {
		return err
	}
	return write(ctx, v.on[protocol.To], election, h, l.Version)
}

// Begin puts a gate at the head of the election's line on To, so that processes may
// be restarted with both coordinators. A seal that stands there, from an earlier
// migration away from To, becomes the gate. Begin is done already where the gate
// stands. It refuses with [ErrRefused] where anybody else stands on To, or the election
// is not on From. It blocks for a few round trips to each coordinator.
func (b *Backend) Begin(ctx context.Context, election string) (Status, error) {
	begin := b.begin()
	return b.step(ctx, "begin", election, func(v view) (bool, error) { return b.try(ctx, election, v, begin) })
}

// begin begins a migration with an ID that no other one has: what it carries over is noted
// under its ID.
func (b *Backend) begin() decision {
	id := strings.ToLower(rand.Text()[:8])
	if b.route.ID != "" {
		id = b.route.ID + "-" + id
	}
	return unlessPaused(func(l protocol.Lines) (protocol.Request, error) { return b.route.Begin(id, l) })
}

// beginToJoin begins the migration that nobody has begun, as why says, for a process that
// joins. It refuses where the election seems to be on To: such a process may
// have been started with the two exchanged.
func (b *Backend) beginToJoin(ctx context.Context, election string, why error) error {
	begin := b.begin()
	for wait := backoff.New(ctx); ; {
		v, err := b.look(ctx, election)
		if err != nil {
			return err
		}
		from, to := v.line[protocol.From], v.line[protocol.To]
		if to.Version != backend.Absent && !protocol.Gated(to.Header) && from.Version == backend.Absent && len(from.Members) == 0 {
			return fmt.Errorf("%w; it is not begun from here, as %s knows the election and %s does not: are they exchanged?", why, b.route.To, b.route.From)
		}
		done, err := b.try(ctx, election, v, begin)
		switch {
		case errors.Is(err, ErrRefused):
			return fmt.Errorf("%w; it cannot be begun from here: %w", why, err)
		case errors.Is(err, backend.ErrVersion): // somebody else was faster
			if err := wait.Sleep(ctx); err != nil {
				return err
			}
		case err != nil:
			return err
		case done:
			b.log.Info("began the migration", "election", election, "from", b.route.From, "to", b.route.To)
			return nil
		}
	}
}

// Cutover asks the leader, who must have a member on both coordinators, to seal the
// election on From and to lead on by To alone, and blocks until that has happened, or
// ctx ends. Then the request stands, and the next leader who can will follow it; Abort
// takes it back. Its error says what it waited for. It refuses with [ErrRefused], before it asks, where
// records stand beside the election of which nobody knows whether they go with it; see [Options]
// Carry and Leave.
func (b *Backend) Cutover(ctx context.Context, election string) (Status, error) {
	wait := backoff.JitterOf(ctx)
	var asked Status // as last seen to wait; empty before the request stands, and once it is followed
	for {
		s, err := b.step(ctx, "cutover", election, func(v view) (bool, error) {
			if p, _ := b.phase(v); p == protocol.Begun {
				if err := b.unclear(ctx, election, v, false); err != nil {
					return false, err
				}
				if err := b.adopt(ctx, election, v); err != nil {
					return false, err
				}
			}
			done, err := b.try(ctx, election, v, unlessPaused(b.route.Cutover))
			if p, _ := b.phase(v); p != protocol.Asked {
				asked = Status{}
				return done, err
			}
			return true, err
		})
		switch {
		case err != nil && ctx.Err() != nil && asked.Phase == Asked:
			return asked, composite.Wrap("cutover", election, fmt.Errorf("%w: asked, and not seen to be done: %s: %w", ErrRefused, waitsFor(asked), context.Cause(ctx)))
		case err != nil || s.Phase == Moved:
			return s, err
		}
		// Where it is not Asked, it went on between two looks: the seal is there, say, and
		// the gate too.
		if asked = s; s.Phase == Asked {
			b.awaitChange(ctx, election, wait)
		}
	}
}

// awaitChange blocks until the election's record on To changes or ctx ends, at most for
// a moment: what else matters, such as who leads, is looked at again.
func (b *Backend) awaitChange(ctx context.Context, election string, wait backoff.Jitter) {
	ctx, cancel := context.WithTimeout(ctx, time.Second+wait.UpTo(time.Second/4))
	defer cancel()
	on, errs := b.sessions(ctx, election)
	err := errs[protocol.To]
	if err == nil {
		var r backend.Record
		if r, err = on[protocol.To].Get(ctx, election); err == nil {
			_, err = on[protocol.To].Watch(ctx, election, r.Version)
		}
	}
	if err != nil {
		<-ctx.Done() // who looks again sees it
	}
}

// Finish says whether From is needed no more: it completes a cutover that was
// interrupted, and refuses with [ErrRefused] before one, and as long as anybody stands on
// From behind the seal. It carries over what a cutover has left behind, and refuses where that cannot be
// done, or where other records stand beside the election on From alone, unless [Options] Leave says
// that they may. Those who still run with both coordinators do no harm, and need
// From no more: [Status] names them. It blocks for a few round trips.
func (b *Backend) Finish(ctx context.Context, election string) (Status, error) {
	return b.step(ctx, "finish", election, func(v view) (bool, error) {
		done, err := b.try(ctx, election, v, b.route.Finish)
		if done && err == nil {
			if err = b.nobodyLeft(ctx, election, v); err == nil {
				err = b.carryLeft(ctx, election, v)
			}
		}
		return done, err
	})
}

// nobodyLeft returns nil if nobody stands on From behind the seal.
func (b *Backend) nobodyLeft(ctx context.Context, election string, v view) error {
	if v.fromErr != nil {
		return fmt.Errorf("who stands on %s cannot be seen: %w", b.route.From, v.fromErr)
	}
	both, err := v.marked(ctx, election)
	if err != nil {
		return err
	}
	left := candidates(v.line[protocol.From], OldOnly, both[protocol.From])
	if moving := with(Both, left); len(left) > 0 && len(moving) == len(left) {
		return fmt.Errorf("%w: on %s these still stand, and move to %s by themselves within a session time: %s; finish again then", ErrRefused, b.route.From, b.route.To, named(moving))
	}
	if len(left) > 0 {
		return fmt.Errorf("%w: on %s these wait behind the seal: %s; restart them with %s", ErrRefused, b.route.From, named(left), b.route.To)
	}
	return nil
}

// Abort ends a migration that has not been cut over: the election stays on From, and
// To's record says so. It blocks until nobody stands behind the gate, which it then takes
// away, or ctx ends: leaders with a member on both go on by From alone by themselves. It
// refuses with [ErrRefused] where the cutover was faster. A gate that was a seal becomes
// one again. Where the election is sealed on both, towards each other, as after a backup was restored, it
// stays on From too, whose seal is taken away.
func (b *Backend) Abort(ctx context.Context, election string) (Status, error) {
	return b.step(ctx, "abort", election, func(v view) (bool, error) { return b.try(ctx, election, v, unlessPaused(b.route.Abort)) })
}
