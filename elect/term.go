package elect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
	"github.com/succession-dev/succession/internal/clock"
	"github.com/succession-dev/succession/internal/header"
)

// A Term is one uninterrupted leadership, from winning to its end. An ended term
// never revives. It is safe for concurrent use.
type Term struct {
	e      *Election
	s      backend.Session
	m      backend.Member
	token  uint64
	margin time.Duration

	ctx    context.Context
	cancel context.CancelCauseFunc

	began time.Time
	alive atomic.Int64 // the newest Deadline while the session lived, from began on

	watching sync.WaitGroup
	ended    time.Time                  // when the end was told; to be read after watching.Wait
	overdue  atomic.Pointer[time.Timer] // until the next word about work that goes on
	resigned atomic.Bool                // Resign has been called
	left     chan struct{}              // closed when the first Resign is done
	leaveErr error
}

// newTerm begins the term of m, which stands first, and watches over its end. The
// context of the term is life until then.
func newTerm(life context.Context, e *Election, s backend.Session, m backend.Member, token uint64, margin time.Duration) *Term {
	t := &Term{e: e, s: s, m: m, token: token, margin: margin, began: time.Now(), left: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(life)
	e.o.Logger.Info("elected", "token", token)
	e.trace(Event{Kind: Elected, Member: m, Token: token})
	t.watching.Go(t.watchDeadline)
	member, record := backoff.Apart(t.ctx), backoff.Apart(t.ctx)
	t.watching.Go(func() { t.watchMember(member) })
	t.watching.Go(func() { t.watchRecord(record) })
	return t
}

// Context is cancelled when the term ends, and when the context given to
// [Election.Run] ends. Its cause is a [*LostError], [ErrResigned], or the cause of
// the latter. The work of the term is then to end, and no more is to begin.
//
// The place in line may stand on: after the end of Run's context, and where the leader was
// asked to resign, until [Term.Resign] or until the function of Run returns. Nobody else
// leads meanwhile, and [Term.Put] may still write down how far the work has come. Context
// does not block.
func (t *Term) Context() context.Context { return t.ctx }

// Token is the term's fencing number: larger than that of every earlier term of
// this election, whoever led. It does not block.
func (t *Term) Token() uint64 { return t.token }

// String names the term, for messages: its election and its token. It does not block.
func (t *Term) String() string { return fmt.Sprintf("term of %q with token %d", t.e.name, t.token) }

// Member is this leader's place in the line. It does not block.
func (t *Term) Member() backend.Member { return t.m }

// Deadline is when the term ends unless the coordinator confirms the session
// before that, on the clock of time.Now at the moment of the call: it moves ahead
// while all is well, so ask for it anew. Once the session has ended, it has passed.
// The zero time means that there is none. It does not block.
func (t *Term) Deadline() time.Time {
	end := t.s.Deadline()
	if end.IsZero() {
		return end
	}
	if d := end.Add(-t.margin); t.s.Err() == nil {
		t.alive.Store(int64(d.Sub(t.began)))
		return d
	}
	// The session may have ended before its time: then that is the term's end, too.
	if d := t.began.Add(time.Duration(t.alive.Load())); d.Before(end) {
		return d
	}
	return end
}

// SessionDeadline is when somebody else can lead at the earliest, unless the
// coordinator confirms the session before that: [Options] Margin after Deadline. What
// the end of Context does not end at once, such as another process, is to be ended by
// force before it. Otherwise it is like Deadline.
func (t *Term) SessionDeadline() time.Time { return t.s.Deadline() }

// Check returns nil while work may begin that only the leader may do, and the cause of
// Context's end from then on, also where the place stands on. It compares clocks at the
// moment of the call and does not block, so call it just before work that must not be done
// twice; it also notices a pause of the process that no timer has noticed yet.
func (t *Term) Check() error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	d := t.Deadline() // first: a session that ends has it pass
	if err := t.s.Err(); err != nil {
		t.lose(err)
	} else if !d.IsZero() && time.Until(d) <= 0 {
		t.lose(ErrDeadline)
	}
	return context.Cause(t.ctx)
}

// lose ends the term. Only the first end counts.
func (t *Term) lose(why error) {
	t.cancel(&LostError{Election: t.e.name, Token: t.token, Err: why})
}

// watchDeadline ends the term when its deadline comes or the session ends. It tells of the
// end, whatever brought that: nobody else does before the work has ended.
func (t *Term) watchDeadline() {
	defer t.tellEnd()
	timer := clock.NewTimer() // one of package time fires late after a suspension
	defer timer.Stop()
	for t.Check() == nil {
		now := clock.Now()
		if d := t.Deadline(); !d.IsZero() {
			timer.Reset(now, time.Until(d))
		}
		select {
		case <-t.ctx.Done():
			return
		case <-t.s.Done():
			t.lose(t.s.Err())
			return
		case <-timer.C:
		}
	}
}

// tellEnd tells that the term is over, and from time to time that its work goes on.
func (t *Term) tellEnd() {
	cause := context.Cause(t.ctx)
	t.ended = time.Now()
	t.e.o.Logger.Info("term ended", "token", t.token, "cause", cause)
	t.e.trace(Event{Kind: Ended, Member: t.m, Token: t.token, Err: cause})
	t.remind(max(t.margin, time.Second)) // the work may well take its margin
}

// remind says after a time, and less and less often, that work goes on which should have
// ended. Resign ends that.
func (t *Term) remind(after time.Duration) {
	t.overdue.Store(time.AfterFunc(after, func() {
		if t.resigned.Load() {
			return
		}
		t.e.o.Logger.Warn("the term has ended, and its work goes on", "token", t.token, "for", time.Since(t.ended), "cause", context.Cause(t.ctx))
		t.remind(2 * after)
	}))
}

// watchMember ends the term when the leader's own member is removed.
func (t *Term) watchMember(ctx context.Context) {
	t.retry(ctx, func(j backoff.Jitter) error {
		err := forAWhile(ctx, t.s, j, func(ctx context.Context) error { return t.s.Gone(ctx, t.m) })
		if err != nil {
			return err
		}
		// Gone may also return because the member was pinned.
		_, err = t.s.Ahead(ctx, t.m)
		return err
	})
}

// watchRecord ends the term when somebody asks for that in the election's record, which
// nobody can where the backend has no records.
func (t *Term) watchRecord(ctx context.Context) {
	seen := backend.Version(0)
	t.retry(ctx, func(j backoff.Jitter) error {
		var r backend.Record // of version 0 where no change came in time; the next Watch then reads
		err := forAWhile(ctx, t.s, j, func(ctx context.Context) (err error) {
			r, err = t.s.Watch(ctx, t.e.name, seen)
			return err
		})
		if err != nil {
			return err
		}
		seen = r.Version
		h, err := backend.ParseHeader(r.Value)
		if err != nil {
			return err
		}
		if h.Resign >= t.token {
			t.lose(ErrAsked)
		}
		return nil
	})
}

// retry calls watch again and again, until ctx ends with the term, or the backend cannot
// watch. It ends the term when watch says that the member has gone, or the election has moved.
func (t *Term) retry(ctx context.Context, watch func(backoff.Jitter) error) {
	wait := backoff.New(ctx)
	for ctx.Err() == nil {
		switch err := watch(wait.Jitter); {
		case err == nil:
			wait.Reset()
			continue
		case errors.Is(err, backend.ErrNotMember):
			t.lose(ErrRemoved)
			return
		case errors.Is(err, backend.ErrSessionEnded), errors.Is(err, backend.ErrSealed):
			t.lose(err)
			return
		case errors.Is(err, errors.ErrUnsupported):
			return // there is nothing to watch, and never will be
		}
		if wait.Sleep(ctx) != nil {
			return
		}
	}
}

// Acknowledge tells observers that this leader has taken up its work, as distinct
// from merely standing first in line. It writes the election's record, on
// condition that the member still stands; it blocks for about two round trips. A backend
// without records makes it fail with [errors.ErrUnsupported].
func (t *Term) Acknowledge(ctx context.Context) error {
	return header.Update(ctx, t.s, t.e.name, t.m, func(h *backend.Header) bool {
		done := h.Acknowledged == t.token
		h.Acknowledged = t.token
		return !done
	})
}

// Get returns a record of the coordinator; see [backend.Records]. It blocks for
// about one round trip.
func (t *Term) Get(ctx context.Context, record string) (backend.Record, error) {
	return t.s.Get(ctx, record)
}

// Put writes a record of the coordinator on condition that this term's member
// still stands, which the coordinator checks in the same atomic step: once anybody
// else can lead it fails with [backend.ErrNotMember] or [backend.ErrSessionEnded],
// whatever clocks do. It goes by the place alone: where that stands on after the end of
// [Term.Context], Put succeeds and Check fails. With a version other than 0 the record must also still have
// that version, [backend.Absent] for none. It blocks for about one round trip. A backend
// without records makes it fail with [errors.ErrUnsupported].
//
// A record E, E.fence or one below E/, where E is the election's name, is the election's
// own: what stands there may be taken for a member. It is refused with
// [backend.ErrInvalid]; choose a name beside it, such as E-position.
func (t *Term) Put(ctx context.Context, record string, value []byte, at backend.Version) (backend.Version, error) {
	if e := t.e.name; record == e || record == header.FenceRecord(e) || strings.HasPrefix(record, e+"/") {
		return 0, fmt.Errorf("elect: %w record %q: %s, %s%s and what is below %s/ are the election's own; choose a name beside them, such as %[3]s-position",
			backend.ErrInvalid, record, e, e, header.Suffix, e)
	}
	return t.s.Put(ctx, record, value, &backend.If{Version: at, Member: t.m})
}

// Resign ends the term and leaves the line, so that the next in line leads. Call
// it only when the work of the term has ended. It blocks until the coordinator
// has confirmed, at most for [Options] ResignTimeout, whether or not ctx has
// ended. It is also to be called for a term that was lost; calling it again
// returns the same result.
//
// In the function of [Election.Run] it need not be called. Where it is, in a defer or
// earlier, Run returns what the function returns, and campaigns no more, unless the term
// had been lost before.
//
// An error means that the member still stands. It is removed as soon as that is possible, in
// the background; whoever cannot wait closes the backend, and the coordinator ends the
// session of a process that has ended.
func (t *Term) Resign(ctx context.Context) error {
	if !t.resigned.CompareAndSwap(false, true) {
		<-t.left
		return t.leaveErr
	}
	defer close(t.left)
	t.cancel(ErrResigned)
	t.watching.Wait()
	t.overdue.Load().Stop()
	t.leaveErr = t.e.leave(ctx, t.s, t.m, time.Since(t.ended))
	return t.leaveErr
}
