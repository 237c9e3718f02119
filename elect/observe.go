package elect

import (
	"context"
	"errors"
	"iter"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
)

// A Leader is who stands first in line, as an observer sees it. The zero Leader
// is a vacant election.
type Leader struct {
	ID           string `json:"id"`
	Value        string `json:"value,omitempty"`
	Key          string `json:"key"`
	Token        uint64 `json:"token"`
	Acknowledged bool   `json:"acknowledged"` // it has said that it took up its work
	Pinned       bool   `json:"pinned,omitempty"`
}

// Vacant reports whether nobody leads.
func (l Leader) Vacant() bool { return l.Key == "" }

// Leader returns who leads now; the zero Leader if nobody does. It blocks for about
// one round trip.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	s, err := e.session(ctx)
	if err != nil {
		return Leader{}, err
	}
	return e.leader(ctx, s)
}

// Line returns all candidates in order, the leader first. It blocks for about one
// round trip, or one for each candidate where the coordinator knows no other way.
func (e *Election) Line(ctx context.Context) ([]Leader, error) {
	s, err := e.session(ctx)
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
	return out, nil
}

func (e *Election) session(ctx context.Context) (backend.Session, error) {
	if err := e.valid(); err != nil {
		return nil, err
	}
	return e.b.Session(ctx)
}

func (e *Election) leader(ctx context.Context, s backend.Session) (Leader, error) {
	line, err := s.Line(ctx, e.name)
	if err != nil || len(line.Members) == 0 {
		return Leader{}, err
	}
	return leaderOf(line, line.Members[0]), nil
}

func leaderOf(line backend.Line, m backend.Member) Leader {
	l := Leader{Key: m.Key, Token: line.Token(m), Pinned: m.Pinned}
	l.ID, l.Value = splitValue(m.Value)
	l.Acknowledged = line.Header.Acknowledged == l.Token
	return l
}

// Observe yields who leads, at once and then at each change, a vacant election
// and an acknowledgement included, where the backend keeps records. It never goes
// back to an earlier leader; a slow consumer may miss leaders in between, never the
// last one. It does not stand in line. Interruptions that may pass are waited out in silence, so what
// was yielded last may then be out of date.
//
// The sequence ends with the cause of ctx as its error, or with an error that
// does not pass by itself. Each step blocks until there is a change.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		var last, doubted Leader
		wait := backoff.New(ctx)
		first, newest := true, uint64(0)
		for {
			line, s, err := e.look(ctx)
			if err == nil {
				wait.Reset()
				var l Leader
				if len(line.Members) > 0 {
					l = leaderOf(line, line.Members[0])
				}
				switch {
				case !first && l == last:
				case !l.Vacant() && l.Token < newest && l != doubted:
					// A server that lags behind must not show an earlier leader after a
					// later one. Who leads at the next look too is a leader: an operator
					// may have deleted the record that held the fence.
					doubted = l
				default:
					first, last = false, l
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

func (e *Election) look(ctx context.Context) (backend.Line, backend.Session, error) {
	s, err := e.session(ctx)
	if err != nil {
		return backend.Line{}, nil, err
	}
	line, err := s.Line(ctx, e.name)
	return line, s, err
}

// changed blocks until the head of the line, or the election's record, is not what
// it was in line. Like a waiting candidate, it returns after about a session time
// in any case, against a watch that died unseen. Where the backend has no records, the
// head alone can change.
func changed(ctx context.Context, s backend.Session, name string, line backend.Line, j backoff.Jitter) error {
	again, cancel := context.WithTimeout(ctx, recheckInterval(s, j))
	defer cancel()
	results := make(chan error, 2)
	go func() {
		if len(line.Members) == 0 {
			results <- s.Joined(again, name)
		} else {
			results <- s.Gone(again, line.Members[0])
		}
	}()
	go func() {
		_, err := s.Watch(again, name, line.Version)
		if errors.Is(err, errors.ErrUnsupported) {
			<-again.Done()
			err = context.Cause(again)
		}
		results <- err
	}()
	err := <-results
	cancel()
	<-results
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
