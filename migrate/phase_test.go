package migrate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/migrate"
)

// A phase is how far the migration of every election has come before a rule uses it.
type phase string

const (
	unbegun phase = "unbegun" // nobody has done anything
	gated   phase = "gated"   // the gate stands
	between phase = "between" // a leader has sealed, and crashed before it took the gate away
	moved   phase = "moved"   // both steps are done
	aborted phase = "aborted"
)

// A stage brings elections to a phase when they are first used.
type stage struct {
	phase phase
	// open returns a composite that nothing disturbs, and its halves.
	open func(context.Context) (*migrate.Backend, [2]backend.Backend, error)

	mu       sync.Mutex
	prepared map[string]chan struct{}
}

// session returns the session of a client of the stage.
func (st *stage) session(ctx context.Context, b *migrate.Backend) (backend.Session, error) {
	s, err := b.Session(ctx)
	if err != nil {
		return nil, err
	}
	return staged{s, st}, nil
}

// staged is a session through which elections are prepared.
type staged struct {
	backend.Session
	st *stage
}

func (s staged) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	if err := s.st.prepare(ctx, line); err != nil {
		return backend.Joined{}, err
	}
	return s.Session.Join(ctx, line, value, record)
}

func (s staged) Line(ctx context.Context, line string) (backend.Line, error) {
	if err := s.st.prepare(ctx, line); err != nil {
		return backend.Line{}, err
	}
	return s.Session.Line(ctx, line)
}

// Head prepares nothing: whether a name is that of a line is asked of records too.
func (s staged) Head(ctx context.Context, line string) (backend.Line, error) {
	return s.Session.Head(ctx, line)
}

func (s staged) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	// A header, or the fence beside it, is written to an election which may not have been
	// used yet.
	if bytes.HasPrefix(value, []byte(`{"succession":`)) {
		if err := s.st.prepare(ctx, strings.TrimSuffix(name, ".fence")); err != nil {
			return 0, err
		}
	}
	return s.Session.Put(ctx, name, value, cond)
}

// prepare is called by whoever uses the election; the first one does it.
func (st *stage) prepare(ctx context.Context, line string) error {
	if backend.CheckName(line) != nil || ctx.Err() != nil {
		return nil // the call itself says what is wrong
	}
	st.mu.Lock()
	if st.prepared == nil {
		st.prepared = make(map[string]chan struct{})
	}
	if st.phase == unbegun {
		st.mu.Unlock()
		return nil
	}
	done, known := st.prepared[line]
	if !known {
		done = make(chan struct{})
		st.prepared[line] = done
	}
	st.mu.Unlock()
	if known {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer close(done)
	return st.bring(line)
}

// bring brings the election to the phase, with clients of its own, which end. It does
// not heed the context of a rule, which may have ended for the rule's own reasons.
func (st *stage) bring(line string) error {
	ctx := context.Background()
	op, _, err := st.open(ctx)
	if err != nil {
		return err
	}
	defer op.Close()
	begun, err := op.Begin(ctx, line)
	if err != nil || st.phase == gated {
		return err
	}
	if st.phase == aborted {
		_, err := op.Abort(ctx, line)
		return err
	}
	b, sub, err := st.open(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	s, err := b.Session(ctx)
	if err != nil {
		return err
	}
	m, err := s.Join(ctx, line, "leader", "")
	if err != nil {
		return err
	}
	if pl, err := s.Ahead(ctx, m.Member); err != nil || !pl.First {
		return fmt.Errorf("the leader of the preparation does not lead: %+v, %w", pl, err)
	}
	if st.phase == between {
		mig := header.Migration{ID: begun.ID, From: begun.From, To: begun.To, Step: "sealed"}
		return sealAndEnd(ctx, sub, m.Member, mig)
	}
	term, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Gone(term, m.Member) }()
	_, err = op.Cutover(ctx, line)
	stop()
	if gerr := <-done; err == nil && !errors.Is(gerr, context.Canceled) {
		err = gerr
	}
	if err == nil {
		err = s.Leave(ctx, m.Member)
	}
	return err
}

// sealAndEnd does the first step of the cutover and ends before the second.
func sealAndEnd(ctx context.Context, sub [2]backend.Backend, m backend.Member, mig header.Migration) error {
	old, err := sub[0].Session(ctx)
	if err != nil {
		return err
	}
	l, err := old.Line(ctx, m.Line)
	if err != nil {
		return err
	}
	h, err := header.Of(l.Header)
	if err != nil {
		return err
	}
	h.Sealed, h.Migration = mig.To, mig
	if err := old.Pin(ctx, m, h.Stored(), l.Version); err != nil {
		return err
	}
	for _, b := range sub {
		err = errors.Join(err, b.Close())
	}
	return err
}
