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
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/value"
	"github.com/succession-dev/succession/migrate/internal/composite"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// A decision says what a step does next, from the lines that it has read.
type decision func(protocol.Lines) (protocol.Request, error)

// unlessPaused is d for an election that is not paused. If it is paused, unlessPaused fails: no
// leader could do the cutover, and the gate of the pause would be left behind.
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

// step reads both lines and does what try decides, again and again until the step is done, is
// refused, or ctx ends. If ctx ends, the error says why the earlier attempts failed.
func (b *Backend) step(ctx context.Context, op, election string, try func(v view) (done bool, err error)) (Status, error) {
	passing := func(err error) bool {
		return errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrVersion)
	}
	err := again.Until(ctx, passing, func() (done bool, err error) {
		v, err := b.look(ctx, election)
		if err != nil {
			return false, err
		}
		return try(v)
	})
	if err != nil {
		return Status{}, composite.Wrap(op, election, err)
	}
	return b.Status(ctx, election)
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
func write(ctx context.Context, s backend.Session, election string, h header.Header, at backend.Version) error {
	_, err := s.Put(ctx, election, h.Encode(), &backend.If{Version: at})
	return err
}

// giveUpBound is how long putGate goes on when its context has ended.
const giveUpBound = 5 * time.Second

// putGate joins To's line, which was empty, and makes its member the gate.
func (b *Backend) putGate(ctx context.Context, to backend.Session, election string, before header.Line, h header.Header) error {
	m, err := to.Join(ctx, election, value.Of{ID: protocol.GateValue + h.Migration.ID, Gate: true}.String(), "")
	if err != nil {
		return err
	}
	// If the caller gives up now, it must not leave a member that may yet become the gate.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpBound)
	defer cancel()
	now, err := composite.LineOn(ctx, to, election)
	if err == nil {
		err = b.route.MayPin(m.Member, before, now)
	}
	if err == nil {
		h.Migration.Gate = m.Position
		err = to.Pin(ctx, m.Member, h.Stored(), before.Version)
		if err == nil {
			return nil
		}
		if !errors.Is(err, backend.ErrVersion) && !errors.Is(err, backend.ErrNotMember) && !errors.Is(err, backend.ErrDenied) {
			// It may be the gate by now. If it is not, it goes with its session.
			return errors.Join(err, to.Close(ctx))
		}
	}
	if lerr := to.Leave(ctx, m.Member); lerr != nil {
		return errors.Join(err, to.Close(ctx))
	}
	return err
}

// touch writes From's record as it is, so that no seal that was sent before can be set. Then it
// writes the end of the abort to To's record.
func (b *Backend) touch(ctx context.Context, election string, v view) error {
	from := v.on[protocol.From]
	r, err := from.Get(ctx, election)
	if err != nil {
		return err
	}
	now, err := header.Parse(r.Value)
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
// be restarted with both coordinators. A seal that stands there, from an earlier migration away
// from To, becomes the gate. If the gate stands already, Begin does nothing. It fails with
// [ErrRefused] if another member stands on To. If nobody stands on From, it also fails if only To has a record of
// the election, or if To's says that the election has moved there: From and To may be exchanged. It blocks for a
// few round trips to each coordinator.
func (b *Backend) Begin(ctx context.Context, election string) (Status, error) {
	begin := b.begin()
	return b.step(ctx, "begin", election, func(v view) (bool, error) { return b.try(ctx, election, v, begin) })
}

// begin begins a migration with an ID that no other migration has, because the notes of carried
// records name it.
func (b *Backend) begin() decision {
	id := strings.ToLower(rand.Text()[:8])
	if b.route.ID != "" {
		id = b.route.ID + "-" + id
	}
	return unlessPaused(func(l protocol.Lines) (protocol.Request, error) { return b.route.Begin(id, l) })
}

// beginToJoin begins a migration for a process that joins, if nobody has begun one, as why says.
func (b *Backend) beginToJoin(ctx context.Context, election string, why error) error {
	begin := b.begin()
	for wait := backoff.New(ctx); ; {
		v, err := b.look(ctx, election)
		if err != nil {
			return err
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
// ctx ends. If ctx ends, the request stands, and the next leader that can will follow it; Abort
// takes it back. The error says what Cutover waited for, or that it is not known whether the leader was
// asked. Before it asks, Cutover fails with [ErrRefused] if it is not known whether records beside the election go with it; see [Options]
// Carry and Leave. Records of Carry are carried over also if an earlier call has asked; if one cannot be,
// Cutover fails when the election has moved.
func (b *Backend) Cutover(ctx context.Context, election string) (Status, error) {
	wait := backoff.JitterOf(ctx)
	var asked Status // the last status that waited; empty before one has, and once a leader has followed the request
	var seen Phase   // Begun if the request may stand, Asked if it does
	for {
		s, err := b.step(ctx, "cutover", election, func(v view) (bool, error) {
			p, _ := b.phase(v)
			if p == protocol.Begun || p == protocol.Asked || p == protocol.Sealed {
				if err := b.chosen(ctx, v); err != nil {
					return false, err
				}
				if p == protocol.Begun {
					if err := b.unclear(ctx, election, v, false); err != nil {
						return false, err
					}
				}
				if err := b.adopt(ctx, election, v); err != nil {
					return false, err
				}
			}
			seen = Phase(p)
			done, err := b.try(ctx, election, v, unlessPaused(b.route.Cutover))
			if seen == Begun && err == nil {
				seen = Asked
			}
			if p != protocol.Asked {
				asked = Status{}
				return done, err
			}
			if errors.Is(err, ErrRefused) { // it was paused meanwhile
				err = fmt.Errorf("%w. The request to cut over stands, and the next leader follows it", err)
			}
			return true, err
		})
		switch {
		case err != nil && ctx.Err() != nil && seen == Begun:
			return s, composite.Wrap("cutover", election, fmt.Errorf("it is not known whether the leader was asked; look at the status: %w", errors.Unwrap(err)))
		case err != nil && ctx.Err() != nil && seen == Asked:
			why := "look at the status"
			if asked.Phase == Asked {
				why = waitsFor(asked)
			}
			return asked, composite.Wrap("cutover", election, fmt.Errorf("%w: asked, and not seen to be done: %s: %w", ErrRefused, why, errors.Unwrap(err)))
		case err != nil:
			return s, err
		case s.Phase == Moved && len(b.carry) > 0: // it may have moved before they were in the list
			return b.step(ctx, "cutover", election, func(v view) (bool, error) {
				done, err := b.try(ctx, election, v, b.route.Finish)
				if done && err == nil {
					err = b.carryLeft(ctx, election, v, nil)
				}
				return done, err
			})
		case s.Phase == Moved:
			return s, nil
		}
		// If it is not Asked, it went on between two looks: for example, the seal is there, and the
		// gate too.
		asked, seen = s, s.Phase
		if s.Phase == Asked {
			b.awaitChange(ctx, election, wait)
		}
	}
}

// awaitChange blocks until the election's record on To changes or ctx ends, but only for a moment,
// because other things matter too, such as which member leads.
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

// Finish returns without an error when From is no longer needed. It completes a cutover that was
// interrupted, and carries over records that a cutover has left behind. It fails with [ErrRefused]
// before a cutover; while any member stands on From behind the seal; if a record cannot be carried
// over; and, without [Options] Leave, while other records beside the election are on From alone.
// Processes that still run with both coordinators do no harm, and lead without From: [Status] names
// them. While From is out of reach, they cannot list records, nor read or make those that have not
// moved. It blocks for a few round trips.
func (b *Backend) Finish(ctx context.Context, election string) (Status, error) {
	return b.step(ctx, "finish", election, func(v view) (bool, error) {
		done, err := b.try(ctx, election, v, b.route.Finish)
		if done && err == nil {
			err = b.nobodyLeft(ctx, election, v)
		}
		if done && err == nil {
			err = b.carryLeft(ctx, election, v, b.carry)
		}
		if done && err == nil {
			err = b.unclear(ctx, election, v, true)
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
// To's record says so. It blocks until nobody stands behind the gate, and then takes the gate away,
// or until ctx ends. Leaders with a member on both go on by From alone by themselves. If the
// cutover was faster, Abort fails with [ErrRefused]. A gate that was a seal becomes a seal again.
// After a backup was restored, the election may be sealed on both coordinators, towards each other:
// then it stays on From too, and Abort takes From's seal away.
func (b *Backend) Abort(ctx context.Context, election string) (Status, error) {
	return b.step(ctx, "abort", election, func(v view) (bool, error) { return b.try(ctx, election, v, unlessPaused(b.route.Abort)) })
}
