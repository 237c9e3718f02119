package elect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/ending"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/unready"
	"github.com/succession-dev/succession/internal/value"
)

// Campaign joins the line and blocks until this candidate leads or ctx ends. The caller
// must call [Term.Resign] on every term that it gets, also after the term was lost.
//
// If ctx ends first, Campaign leaves the line, within [Options] ResignTimeout, and
// returns an error that wraps the cause of ctx. Its text has the last error that kept the candidate out of the line, if
// there was one, and it matches [backend.ErrUnavailable] if that did. If the deadline of ctx has passed, the error names the
// member that stood in front, which may be this process's own. Once there is a term, ctx has no effect on it.
//
// Campaign joins again, at the end of the line, if the session ends, if its member is
// removed, or if the coordinator cannot be reached. It returns other errors, such as
// [backend.ErrDenied], [backend.ErrSealed] or [backend.ErrReset].
func (e *Election) Campaign(ctx context.Context) (*Term, error) {
	return e.campaign(ctx, context.WithoutCancel(ctx), false, nil)
}

// TryCampaign is [Election.Campaign] for a candidate that does not wait behind another. It
// joins the line, and if somebody stands in front, it leaves the line again and returns
// [ErrNotFirst]. That can happen although nobody leads, if the member in front belongs to another
// TryCampaign.
//
// It blocks for one to four round trips, depending on how much the driver's Join tells, and for a few more
// once the fence was raised. While the coordinator cannot be reached, it tries on until ctx ends, as
// Campaign does.
func (e *Election) TryCampaign(ctx context.Context) (*Term, error) {
	return e.campaign(ctx, context.WithoutCancel(ctx), true, nil)
}

// campaign is Campaign, or TryCampaign if once is true, for a term whose context ends when
// life ends. If pause is not nil, campaign calls it before it joins; an error ends the campaign.
func (e *Election) campaign(ctx, life context.Context, once bool, pause func() error) (_ *Term, err error) {
	if err := e.valid(); err != nil {
		return nil, err
	}
	e.tellStarted()
	wait := backoff.New(ctx)
	yields := backoff.Backoff{Min: 100 * time.Millisecond, Max: 30 * time.Second, Jitter: backoff.JitterOf(ctx)}
	var yielded time.Time // the last time
	defer e.tellFailed(ctx, &err)
	if pause != nil {
		if err := pause(); err != nil {
			return nil, err
		}
	}
	for {
		t, err := e.attempt(ctx, life, &wait, once)
		if err == nil {
			return t, nil
		}
		if ctx.Err() != nil {
			return nil, wait.Cause(ctx)
		}
		if why := (*errYielded)(nil); errors.As(err, &why) {
			// To yield once is normal. If two candidates yield to each other again and again, the
			// pauses grow.
			if time.Since(yielded) > time.Minute {
				yields.Reset()
			} else if err := yields.After(ctx, err); err != nil {
				return nil, err
			}
			yielded = time.Now()
			continue
		}
		if !passing(err) {
			return nil, err
		}
		e.tellRetrying(err)
		if err := wait.After(ctx, err); err != nil {
			return nil, err
		}
	}
}

// tellStarted tells that a campaign begins. It and tellFailed are not inlined, to keep the stack
// small.
//
//go:noinline
func (e *Election) tellStarted() { e.trace(trace.Event{Kind: trace.Started}) }

// tellFailed tells that a campaign has ended without a term, if it has.
//
//go:noinline
func (e *Election) tellFailed(ctx context.Context, err *error) {
	e.forget(false)
	if *err != nil {
		e.trace(trace.Event{Kind: trace.Finished, Err: ending.Ended(ctx, *err)})
	}
}

// tellRetrying tells that the campaign goes on after err. It is not inlined, to keep the stack
// small.
//
//go:noinline
func (e *Election) tellRetrying(err error) {
	e.interrupted(err)
	e.trace(trace.Event{Kind: trace.Retrying, Err: err})
}

// attempt joins the line once, and waits until its member leads or something goes wrong.
// If it fails, or what is told of it panics, its member has left the line, or leaves it as soon as possible.
func (e *Election) attempt(ctx, life context.Context, wait *backoff.Backoff, once bool) (*Term, error) {
	if !once {
		if err := e.stayOut(ctx); err != nil {
			return nil, err
		}
	}
	s, err := e.b.Session(ctx)
	if err != nil {
		return nil, err
	}
	margin, err := e.margin(s)
	if err != nil {
		return nil, err
	}
	e.tellSession(s)
	ready := newReadiness(ctx, e.o.Ready)
	j, err := s.Join(ctx, e.name, e.o.value().String(), naming.OfElection(e.name, naming.Fence))
	if err != nil {
		return nil, err
	}
	st := &standing{e: e, s: s, m: j.Member, noted: &noNotes, ready: ready, margin: margin, once: once, wait: wait}
	leads := false
	defer func() {
		if !leads {
			st.leave(ctx)
		}
	}()
	e.restored()
	st.joined(ctx)
	p, err := st.stand(ctx, j.Place, j.Record)
	if err != nil {
		st.noteAhead(ctx)
		return nil, err
	}
	leads = true
	return newTerm(life, st, p), nil
}

// stand waits until m is first in its line and may lead, and returns its place. p is where m stands, and kept is the
// election's [naming.Fence] record. Each is nil if it is not known.
//
// It restores the fence while m waits, so that this takes no time on the way to
// leadership. If the answer to that is lost, it tries again, and m stays in line.
//
// A member that is first and cannot lead holds up everybody. After about a session time
// stand fails, so that m leaves the line.
//
// If m is first and a better member stands behind it, stand fails with an [errYielded].
func (st *standing) stand(ctx context.Context, p *backend.Place, kept *backend.Record) (*backend.Place, error) {
	s, first := st.s, turn{}
	st.unfenced = errors.New("unknown")
	if kept != nil && kept.Version == backend.Absent {
		st.unfenced = nil
	}
	looked := p != nil && st.unfenced == nil
	if !looked {
		p = new(backend.Place)
	}
	for waiting := false; ; waiting = !p.First {
		if st.unfenced != nil {
			st.unfenced = header.Restore(ctx, s, st.m)
			if err := st.unfenced; err != nil && !errors.Is(err, backend.ErrVersion) && !errors.Is(err, backend.ErrUnavailable) {
				return p, err
			}
		}
		var err error
		switch {
		case looked:
			looked = false // only once
		case !waiting:
			err = again.Ahead(ctx, s, st.m, p)
		case st.unfenced != nil:
			err = st.watchForAWhile(ctx, p)
		default: // here most candidates spend most of their time
			err = s.WatchPlace(ctx, st.m, p)
		}
		if ctx.Err() != nil { // also if its turn came at the same moment
			return p, context.Cause(ctx)
		}
		if err != nil {
			return p, err
		}
		if err := st.read(&p.Header); err != nil {
			return p, err
		}
		st.mark(ctx)
		switch {
		case p.First:
			if leads, err := st.takesTurn(ctx, &first); leads || err != nil {
				return p, err
			}
		case st.once:
			return p, st.notFirst(&p.Ahead)
		default:
			st.wait.Reset() // m waits in line: nothing is wrong any more
			st.tellAhead(p)
		}
	}
}

// watchForAWhile waits for another place than p for about a session time. It is not inlined, to keep the stack small.
//
//go:noinline
func (st *standing) watchForAWhile(ctx context.Context, p *backend.Place) error {
	now := *p // if the watch fails, now says nothing
	return again.ForAWhile(ctx, st.s, st.wait.Jitter, func(ctx context.Context) error {
		err := st.s.WatchPlace(ctx, st.m, &now)
		if err == nil {
			*p = now
		}
		return err
	})
}

// A turn is the state of a member that is first and may not lead yet.
type turn struct {
	looks  int       // how often it was found first and not able to lead
	enough time.Time // if it cannot lead until then, it leaves the line
}

// takesTurn reports whether m, which is first, leads. If not, it waits until that may have changed,
// and then returns false.
func (st *standing) takesTurn(ctx context.Context, t *turn) (bool, error) {
	began, why := time.Now(), st.cannotLead()
	if why == nil {
		switch may, err := st.mayLead(ctx); {
		case errors.Is(err, backend.ErrUnavailable):
			why = fmt.Errorf("the line cannot be looked at: %w", err)
		case err != nil:
			return false, err
		case !may:
			*t = turn{}
			return false, nil // it asks again where it stands
		default:
			why = st.cannotLead() // mayLead may have taken time
		}
	}
	if why == nil {
		return true, nil
	}
	switch t.looks++; {
	case t.looks == 1: // it may pass at once
		t.enough = began.Add(again.Interval(st.s, st.wait.Jitter))
	case time.Now().After(t.enough):
		return false, why
	case t.looks == 2:
		st.e.o.Logger.Warn("first in line, and cannot lead", "key", st.m.Key, "err", why)
		st.e.trace(trace.Event{Kind: trace.Retrying, Err: why})
	}
	return false, st.wait.After(ctx, why)
}

// tellAhead tells of the member that this one waits for, if it is another than before.
func (st *standing) tellAhead(p *backend.Place) {
	ahead, was := &p.Ahead, st.ahead
	if was.Pinned = ahead.Pinned; *ahead == was { // a driver may learn only later that it is pinned
		return
	}
	st.ahead = *ahead
	st.e.o.Logger.Info("waiting", "ahead", st.inFront())
	var why error
	if gate := st.noted.Choice.Gate; gate != 0 && (ahead.Position == gate || ahead.Position == 0) { // a driver may not read positions
		why = ErrPaused
	}
	st.e.trace(trace.Event{Kind: trace.Waiting, Member: st.m, Ahead: *ahead, Err: why})
}

// If the deadline of ctx has come, noteAhead notes which member the candidate has waited for. It
// and inFront are not inlined: their part of the stack would be kept as long as a candidate waits.
//
//go:noinline
func (st *standing) noteAhead(ctx context.Context) {
	if ctx.Err() == context.DeadlineExceeded && st.ahead.Key != "" {
		st.wait.Failed(fmt.Errorf("waiting behind %s", st.inFront()))
	}
}

//go:noinline
func (st *standing) notFirst(ahead *backend.Member) error {
	st.ahead = *ahead
	return fmt.Errorf("%w: %s stands in front in %s", ErrNotFirst, st.inFront(), st.e.name)
}

// inFront names the member that this one waits for, to people.
func (st *standing) inFront() string {
	if id := value.ID(st.ahead.Value); id != "" { // a driver may not read what members say
		return fmt.Sprintf("%s (%q)", st.ahead.Key, id)
	}
	return st.ahead.Key
}

// cannotLead returns why m, which is first in line, cannot lead yet, or nil if it can.
func (st *standing) cannotLead() error {
	if st.unfenced != nil { // perhaps only because somebody wrote the header at the same time
		return fmt.Errorf("the election's fence cannot be looked after: %w", st.unfenced)
	}
	// The term would end as it begins. The next heartbeat moves the deadline ahead, or the
	// session ends.
	if d := st.s.Deadline(); !d.IsZero() && time.Until(d) <= st.margin {
		return fmt.Errorf("%w: %v are left of the session, and the margin is %v", ErrDeadline, max(0, time.Until(d)), st.margin)
	}
	return nil
}

// leave removes the member of a candidate that has no term from the line, within ResignTimeout, also if ctx has ended.
func (st *standing) leave(ctx context.Context) {
	bounded, cancel := st.e.resignContext(ctx)
	defer cancel()
	_ = st.leaveWithin(bounded, 0)
}

// leaveWithin removes the member from the line before bounded ends; see [again.Leave]. worked is how long the work of
// its term went on after the end of the term.
func (st *standing) leaveWithin(bounded context.Context, worked time.Duration) error {
	e, s, m := st.e, st.s, st.m
	err := again.Leave(bounded, s, m, e.o.Logger)
	st.noteUnready()
	if st.stop != nil {
		st.stop()
	}
	if st.cancel != nil {
		st.cancel()
		st.asking.Wait()
		if st.recorded || st.doubt { // what is left, others sweep
			_ = s.Delete(bounded, unready.Record(e.name, m.Position), nil)
		}
	}
	st.tellLost()
	e.trace(trace.Event{Kind: trace.Left, Member: m, Worked: worked, Err: err})
	return err
}

func (e *Election) margin(s backend.Session) (time.Duration, error) {
	ttl := s.TTL()
	most := s.MaxMargin()
	switch {
	case ttl == 0:
		return 0, nil
	case e.o.Margin == 0:
		return min(ttl/10, most), nil
	case e.o.Margin > most:
		return 0, fmt.Errorf("elect: %w Margin %v: of a session of %v the backend can keep %v; give at most that, or ask for a longer session",
			backend.ErrInvalid, e.o.Margin, ttl, most)
	}
	return e.o.Margin, nil
}
