package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/unready"
	"github.com/succession-dev/succession/internal/value"
)

// ResignOptions say which leader [Operator.AskToResign] asks, and who is to follow. Nil and the
// zero value mean the present leader, and the next in line.
type ResignOptions struct {
	// Token names the term that is meant: if another term leads by now, nobody is asked, and the
	// error is [ErrOtherLeader]. So a request that comes late, or twice, never ends the term of the
	// next leader. Tokens grow with the fence: if it was raised since, read the leader's from [elect.Election.State]. Zero means
	// the present term.
	Token uint64
	// To is the ID or the key of the candidate that is to lead next. The candidates of this package that
	// stand in front of it give way, and go to the end of the line. Those of other libraries lead first. The
	// wish lapses when To has gone, is not ready, or leads, and after Within. Empty means the next in line.
	To string
	// Within is how long the wish for To holds, by the clocks of the candidates. Zero means a minute, and
	// a day is the most. The leader must have resigned by then.
	Within time.Duration
	// Reason says why, in one line. The text of the cause with which the leader's term ends has the
	// reason and who asks, and so has the election's history.
	Reason string
}

// AskToResign asks the present leader to resign, and returns that leader. As soon as the
// leader hears of it, its term ends with [elect.ErrAsked] as the cause; its [elect.Election.Run]
// then joins again, at the end of the line. AskToResign blocks for about three round
// trips, and for more if there are candidates with [elect.Options] Ready, or To is given. It does not wait until
// another leads; use [elect.Election.Observe] for that. If ctx or the session ends first, or the coordinator cannot be
// reached, the error says whether the leader may have been asked. o may be nil.
//
// It returns [elect.ErrNoLeader] if nobody leads, and also [elect.ErrPaused] if the election is
// paused. If candidates stand behind the leader and none of them is ready, or To is not, it asks
// nobody and returns [elect.ErrNotReady] with their reasons. Its error matches
// [errors.ErrUnsupported] if the backend has no records.
func (op *Operator) AskToResign(ctx context.Context, o *ResignOptions) (elect.Leader, error) {
	if o == nil {
		o = new(ResignOptions)
	}
	by := value.Of{ID: op.by, Text: o.Reason}
	if err := header.CheckAsked(by); err != nil {
		return elect.Leader{}, fmt.Errorf("operate: %w", err)
	}
	s, err := op.fresh(ctx)
	if err != nil {
		return elect.Leader{}, err
	}
	line, now, _, err := look(ctx, s.Head, op.name)
	if err == nil && (o.To != "" || line.Header.Choice.Readiness) {
		line, now, _, err = look(ctx, s.Line, op.name)
	}
	if err != nil {
		return elect.Leader{}, err
	}
	l := now.Leader
	switch {
	case now.Vacant():
		return l, now.Err()
	case o.Token != 0 && o.Token != l.Token:
		return l, fmt.Errorf("%w: %s leads with token %d, and not with %d", ErrOtherLeader, l.ID, l.Token, o.Token)
	case o.Within < 0:
		return l, fmt.Errorf("operate: %w Within %v: it is negative", backend.ErrInvalid, o.Within)
	case o.Within > header.MaxWish:
		return l, fmt.Errorf("operate: %w Within %v: at most %v is possible", backend.ErrInvalid, o.Within, header.MaxWish)
	}
	var wish header.Wish
	heirs := line.Members[1:]
	if o.To != "" {
		to, err := find(line, o.To)
		if err != nil {
			return l, err
		}
		heirs = []backend.Member{to}
		wish = header.Wish{Key: to.Key, Position: to.Position, Until: time.Now().Add(cmp.Or(o.Within, time.Minute)).UnixMilli()}
	}
	if line.Header.Choice.Readiness {
		if err := anyReady(ctx, s, op.name, heirs); err != nil {
			return l, err
		}
	}
	nobodys, err := noTerm(ctx, s, line)
	if err != nil {
		return l, err
	}
	err = header.Update(ctx, s, op.name, backend.Member{}, func(h *header.Header) bool {
		if h.Resign == nobodys {
			h.Resign = 0
		}
		if h.Resign >= l.Token && wish.Position == 0 {
			return false
		}
		header.Ask(h, l.Token, by)
		if wish.Position != 0 {
			h.Choice.Wish = wish
		}
		return true
	})
	if err != nil && (ctx.Err() != nil || errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrSessionEnded)) {
		err = fmt.Errorf("it is not known whether %s was asked to resign: %w", value.Named(line.Members[0]), err)
	}
	return l, err
}

// noTerm returns the number of the header's request to resign if it is the token of no term, and
// otherwise 0. Anybody may have written such a number, and no leader obeys it, so a new request
// replaces it.
func noTerm(ctx context.Context, s backend.Session, line header.Line) (uint64, error) {
	m, asked := line.Members[0], line.Header.Resign
	if asked <= line.Token(m) {
		return 0, nil
	}
	// The line was read before its header, so a later leader may have been asked in between. Then m
	// has gone by now.
	now, err := s.Head(ctx, m.Line)
	if err != nil || len(now.Members) == 0 || now.Members[0].Position != m.Position || asked <= now.Token(m) {
		return 0, err
	}
	return asked, nil
}

// find returns the member behind the leader that has the key or the ID.
func find(line header.Line, to string) (backend.Member, error) {
	var found []backend.Member
	for i, m := range line.Members {
		id := value.ID(m.Value)
		switch {
		case m.Key != to && id != to || m.Pinned:
		case i == 0:
			return m, fmt.Errorf("%w candidate %q: it leads already", backend.ErrInvalid, to)
		case m.Key == to:
			return m, nil
		default:
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		return backend.Member{}, fmt.Errorf("%w candidate %q: nobody in line has that id or key", backend.ErrInvalid, to)
	case 1:
		return found[0], nil
	}
	return backend.Member{}, fmt.Errorf("%w candidate %q: %d in line have that id; give the key of one, such as %s", backend.ErrInvalid, to, len(found), found[0].Key)
}

// anyReady returns nil if there are no heirs, or one of them has not said that it is not ready. Otherwise
// its error has their reasons.
func anyReady(ctx context.Context, s backend.Session, election string, heirs []backend.Member) error {
	if unready.Folder(election) == "" {
		return nil
	}
	var reasons []string
	for _, m := range heirs {
		if m.Pinned {
			continue
		}
		why, err := unready.Why(ctx, s, election, m.Position)
		if errors.Is(err, errors.ErrUnsupported) || err == nil && why == "" {
			return nil
		}
		if err != nil {
			return err
		}
		if len(reasons) < 5 {
			reasons = append(reasons, fmt.Sprintf("%s: %s", value.Named(m), why))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return fmt.Errorf("%w, so nobody was asked to resign: %s", elect.ErrNotReady, strings.Join(reasons, "; "))
}
