package migrate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
)

// step runs one attempt of a step after the other until it is done, refuses, or ctx
// ends, at whatever moment: its error says then why the attempts before did not do it.
// try returns again when somebody else was faster.
func (b *Backend) step(ctx context.Context, op, election string, try func(k look) (again bool, err error)) (Status, error) {
	wait := backoff.New(ctx)
	var last error
	for {
		k, err := b.look(ctx, election)
		again := false
		if err == nil {
			again, err = try(k)
		}
		if err == nil && !again {
			return b.Status(ctx, election)
		}
		if err == nil || passing(err) {
			last, err = err, wait.Sleep(ctx)
		}
		if err != nil {
			if last != nil && ctx.Err() != nil {
				err = fmt.Errorf("%w; last: %w", err, last)
			}
			return Status{}, wrap(op, election, err)
		}
	}
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// Begin puts a gate at the head of the election's line on To, so that processes may
// be restarted with both coordinators. A seal that stands there, from an earlier
// migration away from To, becomes the gate. Begin is done already where the gate
// stands. It refuses with [ErrRefused] where anybody else stands on To, or the election
// is not on From. It blocks for a few round trips to each coordinator.
func (b *Backend) Begin(ctx context.Context, election string) (Status, error) {
	id := b.newID()
	return b.step(ctx, "begin", election, func(k look) (bool, error) { return b.begin(ctx, election, id, k) })
}

// newID returns what a migration that begins now is called. No other one is called so:
// what it carries over is noted under its ID.
func (b *Backend) newID() string {
	id := strings.ToLower(rand.Text()[:8])
	if b.o.ID != "" {
		id = b.o.ID + "-" + id
	}
	return id
}

func (b *Backend) begin(ctx context.Context, election, id string, k look) (again bool, err error) {
	to, l := k.half[sideTo], k.line[sideTo]
	from := k.line[sideFrom].Header
	mig := l.Header.Migration
	g, stands := gate(l)
	r, err := b.rule(from, l.Header)
	var sealed *backend.SealedError
	switch {
	case errors.Is(err, errConflict):
		return false, err
	case gated(from):
		return false, refused("migration %s from %s to %s has not ended; finish or abort that", from.Migration.ID, from.Migration.From, from.Migration.To)
	case err == nil && r.alone == sideTo && !r.both:
		return false, refused("it is on %s already", b.o.To)
	case err == nil && r.both && stands:
		return false, nil // begun already
	case err == nil && r.both:
		id = mig.ID // the gate was removed by hand
	case errors.As(err, &sealed) && from.Sealed == "":
		// From To it went to a third coordinator, and perhaps from there to From. To is
		// sealed in any case; that From is the right one can be seen only from its traces.
		if l := k.line[sideFrom]; l.Version == backend.Absent && len(l.Members) == 0 {
			return false, refused("from %s it went to %s, and on %s nobody knows it", b.o.To, sealed.To, b.o.From)
		}
	case err != nil && !errors.Is(err, ErrNotBegun):
		return false, err
	}
	if stands && !mig.Seal && mig.Step == stepAborted {
		// The request of an abort that takes it away may still be on its way: it is no gate.
		if len(l.Members) > 1 {
			return false, onTo(b.o.To, l.Members[1:])
		}
		return true, to.Leave(ctx, g)
	}
	h := l.Header
	h.Sealed = ""
	h.Migration = backend.Migration{ID: id, From: b.o.From, To: b.o.To, Step: stepBegun}
	if l.Header.Sealed != "" && len(l.Members) > 0 && l.Members[0].Pinned {
		if len(l.Members) > 1 {
			return false, refused("on %s these wait behind the seal: %s; stop them", b.o.To, names(l.Members[1:]))
		}
		h.Migration.Gate, h.Migration.Seal = l.Members[0].Position, true
		_, err := to.Put(ctx, election, h.Encode(), &backend.If{Version: l.Version})
		return err == nil, err // look again
	}
	if others, _ := besides(l, backend.Member{}); len(others) > 0 {
		return false, onTo(b.o.To, others)
	}
	return b.putGate(ctx, to, l, h, election)
}

func onTo(to string, others []backend.Member) error {
	return refused("on %s these stand in line: %s; stop them, as nobody may lead there before the cutover", to, names(others))
}

// gateValue is what the value of a member begins with that is, or is about to be, a gate.
const gateValue = "gate of migration "

// besides returns who stands in the line besides m and others that are about to be a
// gate, and whether m is the first of all.
func besides(l backend.Line, m backend.Member) (others []backend.Member, first bool) {
	for _, o := range l.Members {
		if !same(o, m) && (o.Pinned || !strings.HasPrefix(o.Value, gateValue)) {
			others = append(others, o)
		}
	}
	return others, index(l, m) == 0
}

// putGate joins To's line, in which nobody stood, and makes its member the gate. Of several
// that do so at the same moment the first in line does.
func (b *Backend) putGate(ctx context.Context, to backend.Session, l backend.Line, h backend.Header, election string) (again bool, err error) {
	m, err := to.Join(ctx, election, gateValue+h.Migration.ID)
	if err != nil {
		return false, err
	}
	// Who gives up now must not leave a member that may yet become the gate.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
	defer cancel()
	now, err := to.Line(ctx, election)
	if err == nil && now.Version != l.Version {
		err = backend.ErrVersion
	}
	if err == nil {
		others, first := besides(now, m)
		switch {
		case len(others) > 0:
			err = onTo(b.o.To, others)
		case !first:
			err = backend.ErrVersion
		}
	}
	if err == nil {
		h.Migration.Gate = m.Position
		err = to.Pin(ctx, m, h, l.Version)
		if err == nil {
			return true, nil // look again
		}
		if !errors.Is(err, backend.ErrVersion) && !errors.Is(err, backend.ErrNotMember) && !errors.Is(err, backend.ErrDenied) {
			// Perhaps it is the gate by now. With its session it goes if it is not.
			return true, errors.Join(err, to.Close(ctx))
		}
	}
	if lerr := to.Leave(ctx, m); lerr != nil {
		return true, errors.Join(err, to.Close(ctx))
	}
	return false, err
}

// Cutover asks the leader, who must hold a place on both coordinators, to seal the
// election on From and to lead on by To alone, and blocks until that has happened, or
// ctx ends. Then the request stands, and the next leader who can will follow it; Abort
// takes it back. Its error says what it waited for.
func (b *Backend) Cutover(ctx context.Context, election string) (Status, error) {
	wait := backoff.JitterOf(ctx)
	var asked Status // as last seen to wait; empty before the request stands, and once it is followed
	for {
		s, err := b.step(ctx, "cutover", election, func(k look) (bool, error) {
			again, err := b.cutover(ctx, election, k)
			if p, _ := b.phase(k); p != Asked {
				asked = Status{}
			} else if again {
				return false, nil
			}
			return again, err
		})
		switch {
		case err != nil && ctx.Err() != nil && asked.Phase == Asked:
			return asked, wrap("cutover", election, fmt.Errorf("%w: asked, and not seen to be done: %s: %w", ErrRefused, waitsFor(asked), context.Cause(ctx)))
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

func (b *Backend) cutover(ctx context.Context, election string, k look) (again bool, err error) {
	from, to := k.line[sideFrom].Header, k.line[sideTo]
	r, err := b.rule(from, to.Header)
	switch {
	case err != nil:
		return false, err
	case r.half:
		return true, b.finish(ctx, k.half[sideTo], election, from)
	case !r.both && r.alone == sideTo:
		return false, nil
	case !r.both:
		return false, refused("the migration was aborted; begin again")
	}
	switch to.Header.Migration.Step {
	case stepAborting:
		return false, refused("an abort is under way; abort again to finish it")
	case stepAsked:
		return true, nil
	}
	if _, stands := gate(to); !stands {
		return false, refused("the gate on %s is gone; begin again", b.o.To)
	}
	h := to.Header
	h.Migration.Step = stepAsked
	_, err = k.half[sideTo].Put(ctx, election, h.Encode(), &backend.If{Version: to.Version})
	return true, err
}

// awaitChange blocks until the election's record on To changes or ctx ends, at most for
// a moment: what else matters, such as who leads, is looked at again.
func (b *Backend) awaitChange(ctx context.Context, election string, wait backoff.Jitter) {
	ctx, cancel := context.WithTimeout(ctx, time.Second+wait.UpTo(time.Second/4))
	defer cancel()
	half, errs := b.sessions(ctx, election)
	err := errs[sideTo]
	if err == nil {
		var r backend.Record
		if r, err = half[sideTo].Get(ctx, election); err == nil {
			_, err = half[sideTo].Watch(ctx, election, r.Version)
		}
	}
	if err != nil {
		<-ctx.Done() // who looks again sees it
	}
}

// Finish says whether From is needed no more: it completes a cutover that was
// interrupted, and refuses with [ErrRefused] before one, and as long as anybody stands on
// From behind the seal. Those who still run with both coordinators do no harm, and need
// From no more: [Status] names them. It blocks for a few round trips.
func (b *Backend) Finish(ctx context.Context, election string) (Status, error) {
	return b.step(ctx, "finish", election, func(k look) (bool, error) { return b.ended(ctx, election, k) })
}

func (b *Backend) ended(ctx context.Context, election string, k look) (again bool, err error) {
	from := k.line[sideFrom]
	r, err := b.rule(from.Header, k.line[sideTo].Header)
	switch {
	case err != nil:
		return false, err
	case r.half:
		return true, b.finish(ctx, k.half[sideTo], election, from.Header)
	case r.both || r.alone != sideTo:
		return false, refused("it has not moved: cut over first")
	case k.fromErr != nil:
		return false, fmt.Errorf("who stands on %s cannot be seen: %w", b.o.From, k.fromErr)
	}
	both, err := k.marked(ctx, election)
	if err != nil {
		return false, err
	}
	left := candidates(from, OldOnly, both[sideFrom])
	if moving := with(Both, left); len(left) > 0 && len(moving) == len(left) {
		return false, refused("on %s these still stand, and move to %s by themselves within a session time: %s; finish again then", b.o.From, b.o.To, named(moving))
	}
	if len(left) > 0 {
		return false, refused("on %s these wait behind the seal: %s; restart them with %s", b.o.From, named(left), b.o.To)
	}
	return false, nil
}

// Abort ends a migration that has not been cut over: the election stays on From, and
// To's record says so. It blocks until nobody stands behind the gate, which it then takes
// away, or ctx ends: leaders with a place on both go on by From alone by themselves. It
// refuses with [ErrRefused] where the cutover was faster. A gate that was a seal becomes
// one again.
func (b *Backend) Abort(ctx context.Context, election string) (Status, error) {
	return b.step(ctx, "abort", election, func(k look) (bool, error) { return b.abort(ctx, election, k) })
}

func (b *Backend) abort(ctx context.Context, election string, k look) (again bool, err error) {
	from, to := k.half[sideFrom], k.half[sideTo]
	source, l := k.line[sideFrom].Header, k.line[sideTo]
	r, err := b.rule(source, l.Header)
	if b.outrun(source, l.Header) {
		r, err = ruling{alone: sideFrom, both: gated(l.Header)}, nil
	}
	switch {
	case errors.Is(err, errConflict):
		return b.withdraw(ctx, election, k)
	case err != nil:
		return false, err
	case r.half:
		if err := b.finish(ctx, to, election, source); err != nil {
			return false, err
		}
		return false, refused("too late: it has moved to %s; the way back is a migration from there", b.o.To)
	case !r.both && r.alone == sideTo:
		return false, refused("too late: it has moved to %s; the way back is a migration from there", b.o.To)
	case !r.both:
		g, stands := gate(l)
		if !stands || l.Header.Migration.Seal || l.Header.Migration.Step != stepAborted {
			return false, nil
		}
		if len(l.Members) > 1 {
			return true, fmt.Errorf("%w: on %s these stand behind the gate: %s; stop those that run with it alone", backend.ErrUnavailable, b.o.To, names(l.Members[1:]))
		}
		return true, to.Leave(ctx, g)
	}
	h := l.Header
	if h.Migration.Step != stepAborting {
		h.Migration.Step = stepAborting
		_, err := to.Put(ctx, election, h.Encode(), &backend.If{Version: l.Version})
		return true, err
	}
	// A seal names the version of From's record that it replaces. When that has
	// changed, after the step above, no seal that is under way can be set any more.
	rec, err := from.Get(ctx, election)
	if err != nil {
		return false, err
	}
	now, err := backend.ParseHeader(rec.Value)
	if err != nil {
		return false, err
	}
	if now.Sealed != "" && !b.outrun(now, h) || gated(now) {
		return true, nil // look again: too late, or the opposite migration has begun
	}
	if rec.Version == backend.Absent {
		rec.Value = now.Encode()
	}
	if _, err := from.Put(ctx, election, rec.Value, &backend.If{Version: rec.Version}); err != nil {
		return false, err
	}
	h.Migration.Step, h.Sealed = stepAborted, cmpOr(now.Sealed, h.Migration.From)
	_, err = to.Put(ctx, election, h.Encode(), &backend.If{Version: l.Version})
	return true, err
}

// outrun reports whether the election was moved from From by another migration than this
// one, which can only be aborted then.
func (b *Backend) outrun(from, to backend.Header) bool {
	m := to.Migration
	return from.Sealed != "" && !sameAddress(from.Sealed, b.o.To) && (gated(to) || m.Step == stepAborted) && b.ours(m)
}
