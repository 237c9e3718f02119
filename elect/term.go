package elect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
)

// A Term is one leadership without interruption. A term that has ended stays ended. It is
// safe for concurrent use.
type Term struct {
	st    *standing
	e     *Election
	s     backend.Session
	m     backend.Member
	token uint64

	ctx    context.Context
	cancel context.CancelCauseFunc

	began time.Time
	gate  uint64       // the gate in the header when the term began: it had gone by then
	alive atomic.Int64 // the newest Deadline while the session lived, as a time since began
	shown atomic.Pointer[shown]

	watching sync.WaitGroup
	deadline *clock.Timer // a time.Timer fires late after a suspension
	logging  sync.Once
	ended    time.Time                  // when logEnd was first called; read it after that
	overdue  atomic.Pointer[time.Timer] // of the next warning that the work goes on; nil if Resign came first
	resigned atomic.Bool                // Resign has been called
	left     chan struct{}              // closed when the first Resign is done
	leaveErr error
	history  *chronicle // nil where none is kept
}

// A shown is what others see as the token under a fence: a larger number than the term's if the fence was raised since it began.
type shown struct{ token, fence uint64 }

// newTerm begins the term of m, which is first, and starts what watches for its end. The
// term's context also ends when life ends.
func newTerm(life context.Context, st *standing, p *backend.Place) *Term {
	e, s, m := st.e, st.s, st.m
	t := &Term{st: st, e: e, s: s, m: m, token: p.Token, gate: st.noted.Choice.Gate, began: time.Now(), deadline: clock.NewTimer(), left: make(chan struct{})}
	t.shown.Store(&shown{p.Token, p.Header.Fence})
	t.ctx, t.cancel = context.WithCancelCause(life)
	begun, told := false, make(chan struct{})
	defer func() {
		if !begun { // who was told has panicked
			t.cancel(ErrResigned)
			e.present.CompareAndSwap(t, nil)
			st.leave(life)
		}
		close(told)
	}()
	e.o.Logger.Info("elected", "token", t.token)
	e.trace(trace.Event{Kind: trace.Elected, Member: m, Token: t.token})
	if st.ready != nil {
		ctx := backoff.Apart(t.ctx)
		t.watching.Go(func() { t.watchReady(ctx) })
	}
	if e.o.Site != "" && e.o.Site != st.noted.Choice.Site {
		ctx := backoff.Apart(t.ctx)
		t.watching.Go(func() { t.noteSite(ctx) })
	}
	t.history = t.chronicle()
	watching := backoff.Apart(t.ctx)
	t.watching.Go(func() { t.watchPlace(watching, p) })
	forget := s.OnEnd(t.lose)
	t.watching.Go(func() {
		defer forget()
		t.watchDeadline()
		go func() { // apart, because Resign waits for what watches
			if <-told; begun {
				t.tellEnd()
			}
		}()
	})
	e.begun(t) // last, because from here on others have the term, and may resign
	begun = true
	return t
}

// Context is cancelled when the term ends, and when the context given to [Election.Run]
// ends. Its cause is a [*LostError], [ErrResigned], or the cause of Run's context. The
// work must then end, and no more may begin.
//
// The member may still stand in line. After the end of Run's context, and after a request
// to resign, it stands until [Term.Resign], or until the function of Run returns. Nobody
// else leads meanwhile, and [Term.Put] can still note how far the work has come.
//
// Context does not block.
func (t *Term) Context() context.Context { return t.ctx }

// Token is the term's number. It is larger than that of every earlier term of this
// election, whoever led. Token does not block.
func (t *Term) Token() uint64 { return t.token }

// String names the term in messages, by its election and its token. It does not block.
func (t *Term) String() string { return fmt.Sprintf("term of %q with token %d", t.e.name, t.token) }

// Member is the leader's member. It does not block.
func (t *Term) Member() backend.Member { return t.m }

// Files returns files that hold the leader's place, for a process that does the leader's work
// ([os/exec.Cmd] ExtraFiles): even if this process dies, nobody else leads before the other one has closed
// them, or has ended. Only coordinators on which the kernel keeps the places have such files, as package
// local; on all others it returns none, and the work ends by SessionDeadline. The caller closes the
// files. It does not block. It fails with [backend.ErrNotMember] if files held a place that is lost.
func (t *Term) Files() ([]*os.File, error) { return t.s.Files(t.m) }

// Deadline is when the term ends if the coordinator does not confirm the session before,
// on the clock of time.Now at the moment of the call. It moves ahead while all is well,
// so do not keep it. Once the session has ended, Deadline has passed. The zero time means
// that there is no deadline. It does not block.
func (t *Term) Deadline() time.Time {
	end := t.s.Deadline()
	if end.IsZero() {
		return end
	}
	if d := end.Add(-t.st.margin); t.s.Err() == nil {
		t.alive.Store(int64(d.Sub(t.began)))
		return d
	}
	// If the session ended early, the term ended with it.
	if d := t.began.Add(time.Duration(t.alive.Load())); d.Before(end) {
		return d
	}
	return end
}

// SessionDeadline is when another can lead at the earliest, if the coordinator does not
// confirm the session before: [Options] Margin after Deadline. Before that instant, end by force
// any work that does not end with Context, such as another process. It is otherwise like Deadline.
func (t *Term) SessionDeadline() time.Time { return t.s.Deadline() }

// Check returns nil while the leader's work may begin, and afterwards the cause of the
// term's end, also if the member still stands. It compares clocks at the moment of the
// call, so it notices a pause of the process that no timer has noticed yet. Call it just
// before work that must not be done twice. It does not block. The nil that [Election.Term] returns says
// [ErrNotFirst].
func (t *Term) Check() error {
	if t == nil {
		return ErrNotFirst
	}
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	d := t.Deadline() // before Err: when a session ends, its deadline passes
	if err := t.s.Err(); err != nil {
		t.lose(err)
	} else if !d.IsZero() && time.Until(d) <= 0 {
		t.lose(ErrDeadline)
	}
	return context.Cause(t.ctx)
}

// lose ends the term. Only the first call counts.
func (t *Term) lose(why error) {
	t.cancel(&LostError{Election: t.e.name, Token: t.token, Err: why})
}

// watchDeadline ends the term when its deadline comes. It returns when the term has ended, whatever the cause.
func (t *Term) watchDeadline() {
	defer func() {
		if !t.resigned.Load() { // otherwise Resign does, after the member has left
			t.deadline.Stop()
		}
	}()
	for t.Check() == nil {
		now := clock.Now()
		if d := t.Deadline(); !d.IsZero() {
			t.deadline.Reset(now, time.Until(d))
		}
		select {
		case <-t.ctx.Done():
			return
		case <-t.deadline.C:
		}
	}
}

// tellEnd says that the term has ended.
func (t *Term) tellEnd() {
	t.e.over(t)
	t.logEnd()
}

// logEnd logs and traces that the term has ended, and then warns from time to time that the work goes
// on. Only the first call does; the others return when that is done.
func (t *Term) logEnd() { t.logging.Do(t.doLogEnd) }

func (t *Term) doLogEnd() {
	cause := context.Cause(t.ctx)
	t.ended = time.Now()
	t.e.o.Logger.Info("term ended", "token", t.token, "cause", cause)
	t.st.tellLost()
	t.e.trace(trace.Event{Kind: trace.Ended, Member: t.m, Token: t.token, Err: cause})
	if !t.resigned.Load() {
		t.remind(max(t.st.margin, time.Second)) // the margin is there for the work to end
	}
}

// remind warns that the work goes on: once after the given time, and then less and less
// often, until Resign.
func (t *Term) remind(after time.Duration) {
	t.overdue.Store(time.AfterFunc(after, func() {
		if t.resigned.Load() {
			return
		}
		worked := time.Since(t.ended)
		t.e.o.Logger.Warn("the term has ended, and its work goes on", "token", t.token, "for", worked, "cause", context.Cause(t.ctx))
		t.e.trace(trace.Event{Kind: trace.Working, Member: t.m, Token: t.token, Worked: worked})
		t.remind(2 * after)
	}))
}

// watchPlace ends the term when the leader's member is removed, when the election has moved, and when
// the header says that the leader is to resign. p is where the member stood when the term began.
func (t *Term) watchPlace(ctx context.Context, p *backend.Place) {
	_ = t.heed(p) // its notes could be read
	passing := func(err error) bool {
		if errors.Is(err, backend.ErrSealed) { // the election has moved
			t.lose(err)
			return false
		}
		return !t.proves(err)
	}
	_ = again.Until(ctx, passing, func() (over bool, err error) {
		now := *p
		if err := t.s.WatchPlace(ctx, t.m, &now); err != nil {
			return false, err
		}
		p.Token, p.Header = now.Token, now.Header
		return false, t.heed(p)
	})
}

// heed ends the term if the header asks the leader to resign, or says that the election is paused.
// The request names the leader by a token with the present fence, which may have been raised since
// the term began. A larger number names no leader, and heed ignores it: otherwise it would end this
// term and all later ones. heed fails if it cannot understand what the header notes.
func (t *Term) heed(p *backend.Place) error {
	if err := t.st.read(&p.Header); err != nil {
		t.e.o.Logger.Warn("the header cannot be understood: whoever asks to resign, or pauses, is not heard", "token", t.token, "err", err)
		return err
	}
	now := &shown{max(t.token, p.Token), p.Header.Fence}
	t.shown.Store(now)
	h := t.st.noted
	asked := t.token <= h.Resign && h.Resign <= now.token
	if t.m.Shared { // the tokens between are those of others that are first too
		asked = asked && (h.Resign == t.token || h.Resign == now.token)
	}
	if !asked && (h.Choice.Gate == 0 || h.Choice.Gate == t.gate) {
		return nil
	}
	if by := header.Asked(h); asked && by != "" {
		t.lose(fmt.Errorf("%w by %s", ErrAsked, by))
	} else {
		t.lose(ErrAsked)
	}
	return nil
}

// proves reports whether err proves that the member or its session has gone. If so, it ends the
// term. Every error of a call that is made for the term goes through it.
func (t *Term) proves(err error) bool {
	switch {
	case errors.Is(err, backend.ErrNotMember):
		t.lose(ErrRemoved)
	case errors.Is(err, backend.ErrSessionEnded):
		t.lose(err)
	default:
		return false
	}
	return true
}

// guarded returns the error of a call that succeeds only while the member stands.
func (t *Term) guarded(err error) error {
	var loss *LostError
	if t.proves(err) && errors.As(context.Cause(t.ctx), &loss) {
		return &refused{err, loss}
	}
	return err
}

// A refused is the error of a call that was refused because the leadership is lost. It also matches the loss, but not the reason of that.
type refused struct {
	error
	loss *LostError
}

func (r *refused) Unwrap() error        { return r.error }
func (r *refused) Is(target error) bool { return target == ErrLost }

func (r *refused) As(target any) bool {
	loss, ok := target.(**LostError)
	if ok {
		*loss = r.loss
	}
	return ok
}

// Acknowledge tells observers that this leader's work has begun: a leader that is only
// first in line has not said so. It writes the header, on condition that the member still
// stands. It fails, and then ends the term, as Put does. It blocks for about two round trips, and
// for one more if the fence has just been raised.
func (t *Term) Acknowledge(ctx context.Context) error {
	var unknown error
	err := header.Update(ctx, t.s, t.e.name, t.m, func(h *header.Header) bool {
		var token uint64
		if token, unknown = t.under(ctx, h.Fence); unknown != nil || h.Acknowledged == token {
			return false
		}
		h.Acknowledged = token
		return true
	})
	return t.guarded(cmp.Or(err, unknown))
}

// under returns what others see as the token under the fence. If that has just been raised, it asks.
func (t *Term) under(ctx context.Context, fence uint64) (uint64, error) {
	known := t.shown.Load()
	if known.fence == fence {
		return known.token, nil
	}
	p, err := t.s.Ahead(ctx, t.m)
	return max(known.token, p.Token), err
}

// Get returns a record of the coordinator; see [backend.Session]. It blocks for about one
// round trip.
func (t *Term) Get(ctx context.Context, record string) (backend.Record, error) {
	return t.s.Get(ctx, record)
}

// Put writes a record of the coordinator on condition that the leader's member still
// stands. The coordinator checks that in the same atomic step. So once another candidate can lead,
// Put fails with [backend.ErrNotMember] or [backend.ErrSessionEnded], whatever clocks do. Before
// Put returns such an error, it ends the term and so Context. If the leadership was lost, the error also matches [ErrLost],
// as that of Check does. Only the member counts: if it still stands after the end of [Term.Context], Put succeeds although Check
// fails.
//
// If Put fails with [backend.ErrUnavailable], or because ctx or the session has ended, a write that was under way may have happened.
//
// If at is not [backend.Any], the record must also still have that version; [backend.Absent] means
// that there must be no record. Put blocks for about one round trip, on ZooKeeper for two. Its
// error matches [errors.ErrUnsupported] if the backend has no records.
//
// Put fails with [backend.ErrInvalid] for names that belong to the election E itself: E, names below E/, where
// a record could be taken for a member, and those under which something of an election is kept, such as
// E.fence (docs/recipes.md has the table). Choose another name, such as E-position.
func (t *Term) Put(ctx context.Context, record string, value []byte, at backend.Version) (backend.Version, error) {
	if err := t.own(record); err != nil {
		return 0, err
	}
	v, err := t.s.Put(ctx, record, value, &backend.If{Version: at, Member: t.m})
	return v, t.guarded(err)
}

// own fails for the names that belong to an election itself.
func (t *Term) own(record string) error {
	if e := t.e.name; record == e || strings.HasPrefix(record, e+"/") {
		return fmt.Errorf("elect: %w record %q: %s and what is below it are the election's own; choose a name beside it, such as %[3]s-position", backend.ErrInvalid, record, e)
	}
	if of, by, kept := naming.Kept(record); kept {
		return fmt.Errorf("elect: %w record %q: something of %q (%s) is kept under that name; choose another, such as %s-position", backend.ErrInvalid, record, of, by, t.e.name)
	}
	return nil
}

// Remove removes an item, such as one of a queue, on condition that the leader's member still
// stands; see [backend.Session]. It fails as Put does, and blocks for about one round trip. Its error
// matches [errors.ErrUnsupported] if the backend has no items.
func (t *Term) Remove(ctx context.Context, item backend.Member) error {
	return t.guarded(t.s.Remove(ctx, item, t.m))
}

// Delete deletes a record of the coordinator on condition that the leader's member still stands;
// see [Term.Put].
func (t *Term) Delete(ctx context.Context, record string, at backend.Version) error {
	if err := t.own(record); err != nil {
		return err
	}
	return t.guarded(t.s.Delete(ctx, record, &backend.If{Version: at, Member: t.m}))
}

// Resign ends the term and leaves the line, so that the next in line leads. Call it when
// the work of the term has ended, and not before; call it also for a term that was lost.
// It blocks until the coordinator has confirmed, at most for [Options] ResignTimeout,
// whether ctx has ended or not. Calling it again returns the same result.
//
// The function of [Election.Run] need not call it. If it does, while leading, Run returns
// what the function returns, and does not campaign again.
//
// An error means that the member still stands. A goroutine removes it as soon as that is possible.
// If you cannot wait for that, close the backend. If the process ends, the coordinator ends the
// session.
func (t *Term) Resign(ctx context.Context) error {
	t.cancel(ErrResigned)
	t.e.over(t) // before anybody waits for this call: a listener that is told may resign too
	if !t.resigned.CompareAndSwap(false, true) {
		<-t.left
		return t.leaveErr
	}
	defer close(t.left)
	// Leaving does not wait for the goroutines that watched the term: their contexts have ended, so
	// they do nothing more that counts.
	t.logEnd()
	if overdue := t.overdue.Load(); overdue != nil {
		overdue.Stop()
	}
	bounded, cancel := t.e.resignContext(ctx) // for all that follows
	defer cancel()
	t.leaveErr = t.st.leaveWithin(bounded, time.Since(t.ended))
	t.e.trace(trace.Event{Kind: trace.Finished, Member: t.m})
	t.watching.Wait()
	t.deadline.Stop()
	t.history.close(bounded, t.s.Err() != nil)
	return t.leaveErr
}
