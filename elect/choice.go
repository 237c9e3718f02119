package elect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect/internal/choice"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/unready"
	"github.com/succession-dev/succession/internal/value"
)

// errYielded says that a member that was first gives way.
type errYielded struct{ why string }

func (e *errYielded) Error() string { return e.why }

// yield tells that m gives way, and returns the error with which it leaves the line.
func (st *standing) yield(why string) error {
	err := &errYielded{why}
	st.e.o.Logger.Info("yielded, joining again at the end", "key", st.m.Key, "why", err)
	st.e.trace(trace.Event{Kind: trace.Yielded, Member: st.m, Err: err})
	return err
}

// chooses reports whether m, which is first, must look at its line before it leads. If neither this
// candidate nor its election uses readiness, rank, wish or pause, that costs a few comparisons.
func (st *standing) chooses() bool {
	c := st.noted.Choice
	if st.m.Shared { // several are first at once, some of them perhaps in front of a gate
		return c.Gate > st.m.Position
	}
	_, why := st.ready.now()
	return why != nil || c.Ranked || st.e.o.rank() != (value.Rank{}) || c.Gate != 0 || c.Wish.Position > st.m.Position && choice.Wished(c.Wish, time.Now())
}

// A view is what a member saw when it looked at its line.
type view struct {
	choice.View
	line   backend.Line // as it was read
	folder string       // the record of that name is the bell; "" if there is no bell
	bell   backend.Version
}

// look reads the line, and which of its members have said that they are not ready.
func (st *standing) look(ctx context.Context) (v view, err error) {
	// The bell is read first: a candidate that becomes ready deletes its record first, and then
	// rings the bell.
	if folder := unready.Folder(st.e.name); folder != "" && st.ready != nil {
		r, err := st.s.Get(ctx, folder)
		switch {
		case err == nil:
			v.folder, v.bell = folder, cmp.Or(r.Version, backend.Absent)
		case errors.Is(err, backend.ErrDenied): // List says whether a right is missing, or others made the folder
		case !errors.Is(err, errors.ErrUnsupported):
			return v, err
		}
	}
	if v.Unready, err = unready.Read(ctx, st.s, st.e.name); err != nil {
		return v, err
	}
	if v.line, err = st.s.Line(ctx, st.e.name); err != nil {
		return v, err
	}
	v.Unready.Sweep(ctx, st.s, st.e.name, v.line)
	v.Line, err = header.LineOf(v.line)
	v.At = time.Now()
	return v, err
}

// mayLead returns true if m, which is first, is the one to lead. It returns an [errYielded] if
// another member is. If m is not ready, and no member behind it may be, mayLead waits until that
// may have changed, and returns false.
func (st *standing) mayLead(ctx context.Context) (bool, error) {
	if !st.chooses() {
		return true, nil
	}
	v, err := st.look(ctx)
	if err != nil {
		return false, err
	}
	_, why := st.ready.now()
	switch is := v.Of(st.m, why == nil, st.e.o.rank()); {
	case is.Act == choice.Lead:
		return true, nil
	case is.Act == choice.Yield && st.once:
		return false, fmt.Errorf("%w: %s", ErrNotFirst, is.Why)
	case is.Act == choice.Yield && why != nil && st.newcomer(is.To):
		return false, backoff.Sleep(ctx, news)
	case is.Act == choice.Yield:
		return false, st.yield(is.Why)
	case st.once:
		return false, fmt.Errorf("%w: %w", ErrNotReady, why)
	}
	if !st.told {
		st.told = true
		st.e.o.Logger.Warn("first in line, and not ready", "key", st.m.Key, "err", why)
		st.e.trace(trace.Event{Kind: trace.Retrying, Err: fmt.Errorf("first in line, and nobody behind is ready either: %w: %w", ErrNotReady, why)})
	}
	return false, st.await(ctx, v)
}

// A newcomer has this long to say that it is not ready. Only then does an unready member, which knew of
// nobody to give way to, give way to it. Otherwise two unready candidates would yield to each other for ever.
const news = time.Second

// newcomer reports whether x has joined since the member found that nobody in line can lead
// instead. It reports that once for each x.
func (st *standing) newcomer(x backend.Member) bool {
	if st.newest == 0 || x.Position <= st.newest {
		return false
	}
	st.newest = x.Position
	return true
}

// await blocks until what v shows may have changed, or this candidate's readiness has. It also
// returns after about a session time, because a watch may die unseen.
func (st *standing) await(ctx context.Context, v view) error {
	for _, m := range v.line.Members {
		st.newest = max(st.newest, m.Position)
	}
	changed, _ := st.ready.now()
	return again.ForAWhile(ctx, st.s, backoff.JitterOf(ctx), func(ctx context.Context) error {
		return again.Either(ctx,
			func(ctx context.Context) error {
				select {
				case <-changed:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			},
			func(ctx context.Context) error {
				_, err := st.s.WatchLine(ctx, st.e.name, v.line)
				return err
			},
			again.Changed(st.s, st.e.name, v.line.Version),
			again.Changed(st.s, v.folder, v.bell))
	})
}

// mark notes in the header that the election has candidates with a rank or with Ready, if this
// candidate has and the header does not say so yet. Without the note others would not look at the
// line. If mark fails it is not tried again: the next candidate that joins does it.
func (st *standing) mark(ctx context.Context) {
	if st.marked {
		return
	}
	st.marked = true
	ranked := st.e.o.rank() != (value.Rank{})
	if (!ranked || st.noted.Choice.Ranked) && (st.ready == nil || st.noted.Choice.Readiness) {
		return
	}
	err := header.Update(ctx, st.s, st.e.name, st.m, func(h *header.Header) bool {
		was := h.Choice
		h.Choice.Ranked = h.Choice.Ranked || ranked
		h.Choice.Readiness = h.Choice.Readiness || st.ready != nil
		return h.Choice != was
	})
	if err != nil && ctx.Err() == nil {
		st.e.o.Logger.Warn("could not note that candidates differ; some may not yield", "err", err)
	}
}

// noteSite writes where the leader is, for those who choose the next one.
func (t *Term) noteSite(ctx context.Context) {
	err := header.Update(ctx, t.s, t.e.name, t.m, func(h *header.Header) bool {
		was := h.Choice.Site
		h.Choice.Site = t.e.o.Site
		return h.Choice.Site != was
	})
	if err != nil && !t.proves(err) && ctx.Err() == nil {
		t.e.o.Logger.Warn("could not note where the leader is", "err", err)
	}
}
