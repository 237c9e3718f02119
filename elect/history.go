package elect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/past"
)

// recorded returns the history with p in it, in the order of tokens. A term that is followed by
// another has ended, also if its leader did not write that.
func recorded(terms []past.Term, p past.Term) []past.Term {
	i, found := slices.BinarySearchFunc(terms, p.Token, func(t past.Term, token uint64) int { return cmp.Compare(t.Token, token) })
	if !found {
		terms = slices.Insert(terms, i, p)
	} else if terms[i].Why == "" && p.Why != "" { // the leader itself knows best how it ended
		terms[i] = p
	}
	for i := range len(terms) - 1 {
		if terms[i].Ended.IsZero() {
			terms[i].Ended = terms[i+1].Began
		}
	}
	return terms
}

// A chronicle writes one term into the history.
type chronicle struct {
	stop context.CancelFunc // of the writing
	done chan struct{}      // closed when nothing is written any more
}

// chronicle begins to write the term into the history, and writes its end when it ends. It does not
// block. It returns nil where no history is kept, as for shared members: these do not lead one
// after the other.
func (t *Term) chronicle() *chronicle {
	if t.e.o.History == 0 || t.m.Shared {
		return nil
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.ctx))
	c := &chronicle{stop, make(chan struct{})}
	begin, end := backoff.Apart(t.ctx), backoff.Apart(ctx)
	go func() {
		defer close(c.done)
		p := past.Term{ID: t.e.o.ID, Token: t.token, Began: now()}
		err := t.record(begin, p)
		if err == nil || begin.Err() != nil {
			<-t.ctx.Done()
			p.Ended, p.Why = now(), whyEnded(context.Cause(t.ctx))
			err = t.record(end, p)
		}
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.e.o.Logger.Warn("could not write the history", "token", t.token, "err", err)
		}
	}()
	return c
}

// lastWord is how long a term whose session has ended may go on to write its end when its work is
// over. The coordinator may be out of reach, and the process about to end.
const lastWord = time.Second

// close waits until the end of the term is written, or ctx ends. It does nothing where no history
// is kept.
func (c *chronicle) close(ctx context.Context, ended bool) {
	if c == nil {
		return
	}
	if ended {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lastWord)
		defer cancel()
	}
	defer context.AfterFunc(ctx, c.stop)()
	<-c.done
	c.stop()
}

// record writes p into the history, and tries until ctx ends or an error does not pass by itself.
func (t *Term) record(ctx context.Context, p past.Term) error {
	by := t.m
	return again.Until(ctx, passing, func() (done bool, err error) {
		err = t.recordOnce(ctx, p, by)
		switch {
		case errors.Is(err, backend.ErrNotMember) && p.Ended.IsZero():
			t.proves(err)
			return true, nil // the write at the end of the term says all of it
		case errors.Is(err, backend.ErrNotMember) && by != backend.Member{}:
			by = backend.Member{}
			return false, nil
		}
		return true, err
	})
}

// recordOnce writes p on condition that by stands: a guarded write goes with an election that moves
// to another coordinator. by is the zero Member for a term whose member has gone: such a term only
// adds what nobody else knows of it.
func (t *Term) recordOnce(ctx context.Context, p past.Term, by backend.Member) (err error) {
	s := t.s
	if s.Err() != nil || t.resigned.Load() {
		by = backend.Member{}
	}
	if s.Err() != nil {
		if s, err = t.e.b.Session(ctx); err != nil {
			return err
		}
	}
	name, err := past.Record(t.e.name)
	if err != nil {
		return err
	}
	r, err := s.Get(ctx, name)
	if err != nil {
		return err
	}
	terms, err := past.Parse(r)
	if err != nil {
		return err
	}
	value := past.Encode(recorded(terms, p), t.e.o.History)
	if bytes.Equal(value, r.Value) { // only the answer was lost
		return nil
	}
	_, err = s.Put(ctx, name, value, &backend.If{Version: r.Version, Member: by})
	return err
}

// now returns the present time with the precision of the history.
func now() time.Time { return clock.Believable(time.Now().UTC().Truncate(time.Millisecond)) }

// maxWhy is how many bytes of a cause the history keeps.
const maxWhy = 200

// whyEnded says why a term ended whose context has the given cause.
func whyEnded(cause error) string {
	if lost := (*LostError)(nil); errors.As(cause, &lost) {
		cause = lost.Err
	}
	text := cause.Error()
	if cause == context.Canceled {
		text = "stopped"
	}
	return cmp.Or(strings.ToValidUTF8(text[:min(len(text), maxWhy)], ""), "unknown")
}
