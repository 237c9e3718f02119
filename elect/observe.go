package elect

import (
	"context"
	"iter"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/value"
)

// A Leader is the first in line, as an observer sees it. [Election.Line] describes the
// others in the same way. The zero Leader means that nobody leads.
type Leader struct {
	ID           string `json:"id"`
	Value        string `json:"value,omitempty"`
	Key          string `json:"key"`
	Token        uint64 `json:"token"`
	Acknowledged bool   `json:"acknowledged"` // it has said that its work has begun
	Pinned       bool   `json:"pinned,omitempty"`
	// Paused says that this is no candidate but the gate of [Election.Pause]. ID is then who set it, and
	// Value why.
	Paused   bool   `json:"paused,omitempty"`
	Priority int    `json:"priority,omitempty"`
	Site     string `json:"site,omitempty"`
	// NotReady says why this candidate is not ready; empty if it has not said so. Only [Election.Line] tells.
	NotReady string `json:"not_ready,omitempty"`
}

// Vacant reports whether nobody leads, also because the election is paused.
func (l Leader) Vacant() bool { return l.Key == "" || l.Paused }

// Leader returns who leads now, or the zero Leader. It blocks for about one round trip, or two where
// [backend.Refresher] takes one.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	s, err := e.fresh(ctx)
	if err != nil {
		return Leader{}, err
	}
	line, err := s.Head(ctx, e.name)
	if err != nil {
		return Leader{}, err
	}
	return first(line), nil
}

// Line returns all candidates in order, the leader first, as they stand now. It blocks for about one round
// trip, or one for each candidate if the coordinator knows no other way; and one more for each that is not
// ready, and where [backend.Refresher] takes one.
func (e *Election) Line(ctx context.Context) ([]Leader, error) {
	s, err := e.fresh(ctx)
	if err != nil {
		return nil, err
	}
	line, err := s.Line(ctx, e.name)
	if err != nil {
		return nil, err
	}
	out := make([]Leader, len(line.Members))
	for i, m := range line.Members {
		out[i] = leaderOf(line, m)
	}
	if line.Header.Choice.Readiness {
		err = e.addReasons(ctx, s, out, line.Members)
	}
	return out, err
}

// addReasons adds why candidates are not ready.
func (e *Election) addReasons(ctx context.Context, s backend.Session, out []Leader, line []backend.Member) error {
	not, err := unready(ctx, s, e.name)
	if err != nil {
		return err
	}
	for i, m := range line {
		if not[m.Position] {
			if out[i].NotReady, err = whyUnready(ctx, s, e.name, m.Position); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Election) session(ctx context.Context) (backend.Session, error) {
	if err := e.valid(); err != nil {
		return nil, err
	}
	return e.b.Session(ctx)
}

// fresh returns a session whose reads show what is now.
func (e *Election) fresh(ctx context.Context) (backend.Session, error) {
	s, err := e.session(ctx)
	if err == nil {
		err = s.Refresh(ctx)
	}
	return s, err
}

// first returns who leads.
func first(line backend.Line) Leader {
	if len(line.Members) == 0 {
		return Leader{}
	}
	return leaderOf(line, line.Members[0])
}

func leaderOf(line backend.Line, m backend.Member) Leader {
	l := Leader{Key: m.Key, Token: line.Token(m), Pinned: m.Pinned}
	says := value.Parse(m.Value)
	l.ID, l.Value, l.Priority, l.Site = says.ID, says.Text, says.Priority, says.Site
	l.Acknowledged = line.Header.Acknowledged == l.Token
	l.Paused = m.Pinned && m.Position == line.Header.Choice.Gate
	return l
}

// Observe yields who leads, at once and then at each change: a new leader, nobody, and,
// if the backend has records, an acknowledgement. It does not join the line. Each step
// blocks until there is a change.
//
// Observe never goes back to an earlier leader. A slow consumer may miss leaders, but
// never the newest one. If the coordinator cannot be reached, Observe waits in silence,
// so what it yielded last may be out of date then.
//
// The sequence ends with an error: the cause of ctx, or an error that does not pass by
// itself.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		var last, doubted Leader
		wait := backoff.New(ctx)
		begun, newest := false, uint64(0)
		for {
			var line backend.Line
			s, err := e.session(ctx)
			if err == nil {
				line, err = s.Head(ctx, e.name)
			}
			if err == nil {
				wait.Reset()
				l := first(line)
				switch {
				case begun && l == last:
				case !l.Vacant() && l.Token < newest && l != doubted:
					// A server that lags behind may show an earlier leader after a later
					// one. If the next look shows the same again, it is true: an operator
					// may have deleted the record with the fence.
					doubted = l
				default:
					begun, last = true, l
					if !l.Vacant() {
						newest = l.Token
					}
					if !yield(l, nil) {
						return
					}
				}
				err = changed(ctx, s, e.name, line, wait.Jitter)
			}
			switch {
			case err == nil:
				continue
			case ctx.Err() != nil:
				yield(Leader{}, wait.Cause(ctx))
				return
			case !passing(err):
				yield(Leader{}, err)
				return
			}
			if err := wait.After(ctx, err); err != nil {
				yield(Leader{}, err)
				return
			}
		}
	}
}

// changed blocks until the first member or the header differs from line. It returns after
// about a session time in any case, because a watch may die unseen. If the backend has no
// records, it waits for the first member only.
func changed(ctx context.Context, s backend.Session, name string, line backend.Line, j backoff.Jitter) error {
	member := func(ctx context.Context) error {
		if len(line.Members) > 0 {
			return s.Gone(ctx, line.Members[0])
		}
		_, err := s.WatchLine(ctx, name, line)
		return err
	}
	return again.ForAWhile(ctx, s, j, func(ctx context.Context) error {
		return again.Either(ctx, member, watchRecord(s, name, line.Version))
	})
}
