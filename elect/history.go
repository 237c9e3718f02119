package elect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/naming"
)

// A Past is one term in the history of an election. Its times are those of the wall clock of the
// process that wrote them, so a term can seem to end before it began. One before 1970 is read as
// the beginning of 1970, and one after 2199 as its end.
type Past struct {
	ID    string    `json:"id"`    // of the leader
	Token uint64    `json:"token"` // of the term
	Began time.Time `json:"began"`
	// Ended is when the term ended; its work may have gone on longer. It is zero for the newest
	// term while that lasts. If the leader did not write its end, it stays zero until the next term
	// is written.
	Ended time.Time `json:"ended,omitzero"`
	// Why says why the term ended, as the cause of its context does. It is empty for a term
	// that has ended without saying why: its process was killed, or was cut off from the
	// coordinator. Ended is then when the next term began.
	Why string `json:"why,omitempty"`
}

// History returns the newest terms, in the order of their tokens. Each leader with [Options]
// History writes its own terms. So terms of foreign leaders and of candidates without History are
// missing, and terms whose leader was killed or cut off before it had written. Leadership does not
// wait for the history: a leader writes that a term has begun, or has ended, soon afterwards.
//
// The newest term may have ended although Ended is zero: it lasts if its token is that of
// [Election.Leader].
//
// History blocks for about one round trip, or two where [backend.Refresher] takes one. Its error
// matches [errors.ErrUnsupported] if the backend has no records. The history is the record
// E.history, for an election named E. A deleted election keeps it.
func (e *Election) History(ctx context.Context) ([]Past, error) {
	s, err := e.fresh(ctx)
	if err != nil {
		return nil, err
	}
	name, err := e.historyRecord()
	if err != nil {
		return nil, err
	}
	r, err := s.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return parseHistory(r)
}

// HistoryOf returns the terms in the record of a history, as [Election.History] does. It is for
// callers that have read the record from the backend.
func HistoryOf(r backend.Record) ([]Past, error) { return parseHistory(r) }

func (e *Election) historyRecord() (string, error) {
	name := naming.OfElection(e.name, naming.History)
	if name == "" {
		return "", fmt.Errorf("elect: %w name %.32q...: it is too long to have a history; at most %d bytes are possible",
			backend.ErrInvalid, e.name, backend.MaxName-len(naming.History))
	}
	return name, nil
}

// errNoHistory says that the record with the name of the history holds something else.
var errNoHistory = errors.New("it is no history of an election; is it a record of your own? Then rename it")

// A storedHistory is the record. Its first field tells it from records of others.
type storedHistory struct {
	Format int    `json:"history"`
	Terms  []Past `json:"terms"`
}

func parseHistory(r backend.Record) ([]Past, error) {
	if r.Version == backend.Absent {
		return nil, nil
	}
	bad := func(why any) error { return fmt.Errorf("elect: record %s: %w (%v)", r.Name, errNoHistory, why) }
	if !bytes.HasPrefix(r.Value, []byte(`{"history":`)) {
		return nil, bad("it begins otherwise")
	}
	var s storedHistory
	if err := json.Unmarshal(r.Value, &s); err != nil {
		return nil, bad(err)
	}
	if s.Format != 1 {
		return nil, bad(fmt.Sprintf("format %d, this version reads format 1", s.Format))
	}
	for i := range s.Terms {
		p := &s.Terms[i]
		p.Began, p.Ended = clock.Believable(p.Began), clock.Believable(p.Ended)
	}
	return s.Terms, nil
}

// encodeHistory returns the record of at most the newest n terms, and of fewer if they would be too
// long for a record.
func encodeHistory(terms []Past, n int) []byte {
	for terms = terms[max(0, len(terms)-n):]; ; terms = terms[1:] {
		b, err := json.Marshal(storedHistory{1, terms})
		if err != nil {
			panic(err) // numbers, strings and times of this century always marshal
		}
		if len(b) <= backend.MaxRecord {
			return b
		}
	}
}

// recorded returns the history with p in it, in the order of tokens. A term that is followed by
// another has ended, also if its leader did not write that.
func recorded(terms []Past, p Past) []Past {
	i, found := slices.BinarySearchFunc(terms, p.Token, func(t Past, token uint64) int { return cmp.Compare(t.Token, token) })
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
		p := Past{ID: t.e.o.ID, Token: t.token, Began: now()}
		err := t.record(begin, p)
		<-t.ctx.Done()
		if err == nil || begin.Err() != nil {
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
func (t *Term) record(ctx context.Context, p Past) error {
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
func (t *Term) recordOnce(ctx context.Context, p Past, by backend.Member) (err error) {
	s := t.s
	if s.Err() != nil || t.resigned.Load() {
		by = backend.Member{}
	}
	if s.Err() != nil {
		if s, err = t.e.b.Session(ctx); err != nil {
			return err
		}
	}
	name, err := t.e.historyRecord()
	if err != nil {
		return err
	}
	r, err := s.Get(ctx, name)
	if err != nil {
		return err
	}
	terms, err := parseHistory(r)
	if err != nil {
		return err
	}
	value := encodeHistory(recorded(terms, p), t.e.o.History)
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
