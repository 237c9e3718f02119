package elect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/value"
)

// Pause closes the election: from then on nobody leads until [Election.Resume], not even a client of
// another library. The reason, one line, and the ID of e are shown to all who look. Pause puts a gate into the line,
// which stands there whatever becomes of this process, and has the leader resign ([ErrAsked]). The
// candidates of this package that stand in front of the gate go behind it. Others lead first, each in its turn.
//
// Pause blocks until nobody stands in front of the gate. If ctx ends before, the error says who does, and
// the election stays paused: the gate comes to the head when those have gone.
//
// It fails with [ErrPaused] if the election is paused already, with [backend.ErrSealed] if the election has
// moved to another coordinator, and with [ErrMoving] if a gate of a migration stands in the line. Its error
// matches [errors.ErrUnsupported] if the backend has no pins.
func (e *Election) Pause(ctx context.Context, reason string) error {
	says := value.Of{ID: e.o.ID, Text: reason}
	if strings.ContainsAny(reason, "\r\n") {
		return fmt.Errorf("elect: %w reason %q: it is more than one line", backend.ErrInvalid, reason)
	}
	if err := says.Check(); err != nil {
		return fmt.Errorf("elect: the reason with the ID: %w", err)
	}
	s, err := e.fresh(ctx)
	if err != nil {
		return err
	}
	line, err := s.Line(ctx, e.name)
	if err == nil {
		err = mayPause(line)
	}
	if err != nil {
		return err
	}
	j, err := s.Join(ctx, e.name, says.String(), "")
	if err != nil {
		return err
	}
	gate := &standing{e: e, s: s, m: j.Member}
	if err := gate.pin(ctx); err != nil {
		return errors.Join(err, gate.leave(ctx, 0))
	}
	e.o.Logger.Info("paused", "gate", j.Key, "reason", reason)
	return gate.toHead(ctx)
}

// mayPause returns why the election cannot be paused, or nil.
func mayPause(line backend.Line) error {
	if gate, paused := line.Paused(); paused {
		return pausedBy(gate)
	}
	if line.Header.Sealed != "" {
		return &backend.SealedError{To: line.Header.Sealed}
	}
	for _, m := range line.Members {
		if m.Pinned {
			return fmt.Errorf("%w: %s stands in the line for good; finish or abort the migration first", ErrMoving, named(m))
		}
	}
	return nil
}

func pausedBy(gate backend.Member) error {
	by := value.Parse(gate.Value)
	return fmt.Errorf("%w by %s: %s", ErrPaused, by.ID, by.Text)
}

// pin makes the member the gate. The header names it from the same step on.
func (st *standing) pin(ctx context.Context) error {
	// Who gives up now must not leave a member that may yet become the gate.
	ctx, cancel := st.e.resignContext(ctx)
	defer cancel()
	for wait := backoff.New(ctx); ; {
		line, err := st.s.Line(ctx, st.e.name)
		if err == nil {
			err = mayPause(line)
		}
		if err == nil {
			h := line.Header
			h.Choice.Gate, h.Choice.Wish = st.m.Position, backend.Wish{}
			if l := first(line); l.Key != st.m.Key { // it is told also if it does not know of pauses
				h.Resign = l.Token
			}
			err = st.s.Pin(ctx, st.m, h, line.Version)
		}
		if !errors.Is(err, backend.ErrVersion) {
			return err
		}
		if err := wait.After(ctx, err); err != nil {
			return err
		}
	}
}

// toHead waits until nobody stands in front of the gate.
func (st *standing) toHead(ctx context.Context) error {
	s, wait := st.s, backoff.New(ctx)
	for {
		var p backend.Place
		err := again.Ahead(ctx, s, st.m, &p)
		for err == nil && !p.First {
			err = s.WatchPlace(ctx, st.m, &p)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return st.behind(ctx)
		case errors.Is(err, backend.ErrNotMember):
			return fmt.Errorf("the gate has been removed, so the election is not paused: %w", err)
		case errors.Is(err, backend.ErrSealed):
			return errors.Join(err, st.leave(ctx, 0))
		case !passing(err):
			return err
		}
		if err := wait.After(ctx, err); err != nil {
			return st.behind(ctx)
		}
		if now, err := st.e.b.Session(ctx); err == nil {
			s = now // the gate stands without the session that joined it
		}
	}
}

// behind returns an error that says who stands in front of the gate when ctx ends.
func (st *standing) behind(ctx context.Context) error {
	bounded, cancel := st.e.resignContext(ctx)
	defer cancel()
	var front []string
	if line, err := st.s.Line(bounded, st.e.name); err == nil {
		for _, m := range line.Members {
			if m.Position == st.m.Position {
				break
			}
			front = append(front, named(m))
		}
	}
	if len(front) == 0 {
		front = []string{"others"}
	}
	return fmt.Errorf("the election is paused, but in front of the gate still stand %s; nobody leads once they have gone: %w", strings.Join(front, ", "), context.Cause(ctx))
}

// ResumeOptions say which pause [Election.Resume] ends. Nil and the zero value mean the present one.
type ResumeOptions struct {
	// Token is that of the gate that is meant: if another pause holds by now, it stands on, and the error is
	// [ErrNotPaused]. So a request that comes late never ends the next pause. Zero means the present one.
	Token uint64
}

// Resume opens the election that [Election.Pause] has closed, and returns the gate that it has removed, with
// who had set it and why. It fails with [ErrNotPaused] if the election is not paused. It blocks for about four
// round trips. If it is interrupted, the election is open or still paused, and Resume may be repeated. o may be
// nil.
func (e *Election) Resume(ctx context.Context, o *ResumeOptions) (Leader, error) {
	s, err := e.fresh(ctx)
	if err != nil {
		return Leader{}, err
	}
	line, err := s.Line(ctx, e.name)
	if err != nil {
		return Leader{}, err
	}
	gate, paused := line.Paused()
	if l := leaderOf(line, gate); paused && o != nil && o.Token != 0 && o.Token != l.Token {
		return l, fmt.Errorf("%w by the gate with token %d: that of %s has token %d", ErrNotPaused, o.Token, l.ID, l.Token)
	}
	if paused { // first the gate: a header that names none that stands does no harm
		if err := s.Leave(ctx, gate); err != nil {
			return Leader{}, err
		}
	}
	err = header.Update(ctx, s, e.name, backend.Member{}, func(h *backend.Header) bool {
		was := h.Choice.Gate
		if was == line.Header.Choice.Gate {
			h.Choice.Gate = 0
		}
		return h.Choice.Gate != was
	})
	if !paused && err == nil {
		err = ErrNotPaused
	}
	return leaderOf(line, gate), err
}
