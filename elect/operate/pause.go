package operate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/value"
)

// Pause closes the election: from then on nobody leads until [Operator.Resume], not even a client of
// another library. Everybody who looks sees the reason, which is one line, and who has paused it.
// Pause puts a gate into the line, which stands there whatever becomes of this process, and has the
// leader resign, or all who share a lock ([elect.ErrAsked]). Candidates of package elect that stand in front of the gate go
// behind it. Those of other libraries lead first, each in its turn.
//
// Pause blocks until nobody stands in front of the gate, and returns the gate: its Token is that of [ResumeOptions]. If ctx ends
// before, the error says who stands there, and the election stays paused: the gate, which is returned too, comes to the head when
// they have gone.
//
// It fails with [elect.ErrPaused] if the election is paused already, with [backend.ErrSealed] if
// the election has moved to another coordinator, and with [ErrMoving] if a gate of a migration
// stands in the line. Its error matches [errors.ErrUnsupported] if the backend has no pins.
func (op *Operator) Pause(ctx context.Context, reason string) (elect.Candidate, error) {
	says := value.Of{ID: op.by, Text: reason}
	if err := header.CheckAsked(says); err != nil {
		return elect.Candidate{}, fmt.Errorf("operate: %w", err)
	}
	s, err := op.fresh(ctx)
	if err != nil {
		return elect.Candidate{}, err
	}
	if _, err = mayPause(ctx, s, op.name); err != nil {
		return elect.Candidate{}, err
	}
	stands := says
	stands.Gate = true
	j, err := s.Join(ctx, op.name, stands.String(), "")
	if err != nil {
		return elect.Candidate{}, err
	}
	g := &gate{op: op, s: s, m: j.Member, says: says}
	if err := g.pin(ctx); err != nil {
		if left := g.leave(ctx); left != nil || s.Err() != nil { // a gate outlives the session that has put it there
			err = fmt.Errorf("it is not known whether the election is paused; look, and resume it if it is: %w", errors.Join(err, left))
		}
		return elect.Candidate{}, err
	}
	return elect.Candidate{ID: op.by, Value: reason, Key: g.m.Key, Token: g.token, Position: g.m.Position, Pinned: true}, g.toHead(ctx)
}

// mayPause returns the line of the election, or why the election cannot be paused.
func mayPause(ctx context.Context, s backend.Session, election string) (header.Line, error) {
	line, _, _, err := look(ctx, s.Line, election)
	if err != nil {
		return line, err
	}
	if gate, paused := line.Paused(); paused {
		by := value.Parse(gate.Value)
		return line, fmt.Errorf("%w by %s: %s", elect.ErrPaused, by.ID, by.Text)
	}
	if line.Header.Sealed != "" {
		return line, &backend.SealedError{To: line.Header.Sealed}
	}
	for _, m := range line.Members {
		if m.Pinned {
			return line, fmt.Errorf("%w: %s stands in the line for good; finish or abort the migration first", ErrMoving, value.Named(m))
		}
	}
	return line, nil
}

// A gate is a member that joins like any other, says that it is a gate, and is then pinned.
type gate struct {
	op   *Operator
	s    backend.Session
	m    backend.Member
	says value.Of // who pauses, and why

	token uint64 // of the gate, when it is pinned
}

// bound returns a context for what must be done also if ctx has ended.
func bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

func (g *gate) leave(ctx context.Context) error {
	ctx, cancel := bound(ctx)
	defer cancel()
	return again.Leave(ctx, g.s, g.m, slog.New(slog.DiscardHandler))
}

// pin makes the member the gate. The header names it from the same step on.
func (g *gate) pin(ctx context.Context) error {
	// If the caller gives up now, it must not leave a member that may yet become the gate.
	ctx, cancel := bound(ctx)
	defer cancel()
	written := func(err error) bool { return errors.Is(err, backend.ErrVersion) }
	return again.Try(ctx, written, func() error {
		line, err := mayPause(ctx, g.s, g.op.name)
		if err != nil {
			return err
		}
		g.token = line.Token(g.m)
		h := line.Header
		h.Choice.Gate, h.Choice.Wish = g.m.Position, header.Wish{}
		if l := line.Members; len(l) > 0 && l[0].Key != g.m.Key { // so a leader that does not know of pauses resigns too
			header.Ask(&h, line.Token(l[0]), g.says)
		}
		return g.s.Pin(ctx, g.m, h.Stored(), line.Version)
	})
}

// toHead waits until nobody stands in front of the gate.
func (g *gate) toHead(ctx context.Context) error {
	s := g.s
	passing := func(err error) bool { return again.Passing(err) && !errors.Is(err, backend.ErrNotMember) }
	err := again.Try(ctx, passing, func() error {
		var p backend.Place
		err := again.Ahead(ctx, s, g.m, &p)
		for err == nil && !p.First {
			err = s.WatchPlace(ctx, g.m, &p)
		}
		if err != nil { // the gate stands without the session that joined it
			if now, err := g.op.b.Session(ctx); err == nil {
				s = now
			}
		}
		if errors.Is(err, backend.ErrNotMember) && g.stands(ctx, s) { // so says a session of spread when the election gets another home
			err = fmt.Errorf("%w: %v", backend.ErrUnavailable, err)
		}
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return g.behind(ctx)
	case errors.Is(err, backend.ErrNotMember):
		return fmt.Errorf("the gate has been removed, so the election is not paused: %w", err)
	case errors.Is(err, backend.ErrSealed):
		return errors.Join(err, g.leave(ctx))
	}
	return err
}

// stands reports whether the gate stands in the line, as s reads it.
func (g *gate) stands(ctx context.Context, s backend.Session) bool {
	line, err := s.Line(ctx, g.op.name)
	return err == nil && slices.ContainsFunc(line.Members, func(m backend.Member) bool { return m.Key == g.m.Key && m.Position == g.m.Position })
}

// behind returns an error that says who stands in front of the gate when ctx ends.
func (g *gate) behind(ctx context.Context) error {
	bounded, cancel := bound(ctx)
	defer cancel()
	var front []string
	if line, err := g.s.Line(bounded, g.op.name); err == nil {
		for _, m := range line.Members {
			if m.Position == g.m.Position {
				break
			}
			front = append(front, value.Named(m))
		}
	}
	if len(front) == 0 {
		front = []string{"others"}
	}
	return fmt.Errorf("the election is paused, but in front of the gate still stand %s; nobody leads once they have gone: %w", strings.Join(front, ", "), context.Cause(ctx))
}

// ResumeOptions say which pause [Operator.Resume] ends. Nil and the zero value mean the present one.
type ResumeOptions struct {
	// Token names the gate to remove. If another pause holds by now, its gate stays, and the error
	// is [ErrNotPaused]. So a request that comes late never ends the next pause. Tokens grow with the fence: if it was raised
	// since, read the gate's from [Operator.State]. Zero means the
	// present one.
	Token uint64
}

// Resume opens the election that [Operator.Pause] has closed, and returns the gate that it has
// removed: its ID says who had set it, and its Value why. It fails with [ErrNotPaused] if the
// election is not paused. It blocks for about four round trips. If it is interrupted, the election
// is open or still paused, and Resume may be repeated. o may be nil.
func (op *Operator) Resume(ctx context.Context, o *ResumeOptions) (elect.Candidate, error) {
	s, err := op.fresh(ctx)
	if err != nil {
		return elect.Candidate{}, err
	}
	line, _, all, err := look(ctx, s.Line, op.name)
	if err != nil {
		return elect.Candidate{}, err
	}
	var is elect.Candidate
	gate, paused := line.Paused()
	if paused {
		is = all[slices.Index(line.Members, gate)]
	}
	if paused && o != nil && o.Token != 0 && o.Token != is.Token {
		return is, fmt.Errorf("%w by the gate with token %d: that of %s has token %d", ErrNotPaused, o.Token, is.ID, is.Token)
	}
	if paused { // the gate goes first: a header that names a gate which has gone does no harm
		if err := s.Leave(ctx, gate); err != nil {
			return elect.Candidate{}, err
		}
	}
	err = header.Update(ctx, s, op.name, backend.Member{}, func(h *header.Header) bool {
		was := h.Choice.Gate
		if was == line.Header.Choice.Gate {
			h.Choice.Gate = 0
		}
		return h.Choice.Gate != was
	})
	if !paused && err == nil {
		err = ErrNotPaused
	}
	return is, err
}
