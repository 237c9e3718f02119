package elect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/unready"
	"github.com/succession-dev/succession/internal/value"
)

// A Candidate is a member of the line, as an observer sees it.
type Candidate struct {
	ID    string `json:"id"`
	Value string `json:"value,omitempty"`
	Key   string `json:"key"`
	// Token is that of its term, should it lead. If the fence is raised while it leads, Token grows with the fence, and its
	// own [Term] keeps the token that it has.
	Token uint64 `json:"token"`
	// Position says where it stands in the coordinator's log. Whatever becomes of the fence, another member with the same Key has
	// another Position.
	Position uint64 `json:"position"`
	Priority int    `json:"priority,omitempty"`
	Site     string `json:"site,omitempty"`
	// NotReady says why this candidate is not ready; empty if it has not said so. Only
	// [Election.Line] fills it in.
	NotReady string `json:"not_ready,omitempty"`
	// Pinned says that this member stands for ever and belongs to no process: it is the gate of a
	// pause or of a migration, or it was restored from a backup without its session. Nobody behind
	// it leads.
	Pinned bool `json:"pinned,omitempty"`
	// Shared says that this member waits only for those in front that are not shared: several can hold a shared lock at once, or be
	// in a group.
	Shared bool `json:"shared,omitempty"`
}

// A Leader is the candidate that leads. The zero Leader is nobody.
type Leader struct {
	Candidate
	Acknowledged bool `json:"acknowledged"` // it has said that its work has begun
}

// A State says who leads, or that nobody does, and why.
type State struct {
	Leader Leader // the zero Leader if nobody leads
	// Gate is the first member if that is pinned, so that nobody leads; otherwise the zero
	// Candidate.
	Gate Candidate
	// Paused says that Gate belongs to a pause. The ID of Gate then says who has paused the
	// election, and its Value says why.
	Paused bool
	// MovedTo is the coordinator that the election has moved to; empty if it has not.
	MovedTo string
}

// Vacant reports whether nobody leads.
func (s State) Vacant() bool { return s.Leader.Key == "" }

// Err returns nil if somebody leads, and otherwise an [ErrNoLeader] that says why nobody does. It also matches
// [ErrPaused] if the election is paused, and [backend.ErrSealed] if it has moved.
func (s State) Err() error {
	switch {
	case !s.Vacant():
		return nil
	case s.MovedTo != "":
		return fmt.Errorf("%w: %w", ErrNoLeader, &backend.SealedError{To: s.MovedTo})
	case s.Paused:
		return fmt.Errorf("%w: %w by %s: %s", ErrNoLeader, ErrPaused, s.Gate.ID, s.Gate.Value)
	case s.Gate.Key != "":
		return fmt.Errorf("%w: %s stands first for ever: the election is moving to another coordinator, or its members were restored without their sessions", ErrNoLeader, s.Gate.ID)
	}
	return ErrNoLeader
}

// StateOf returns the state of an election with this line, and its candidates. It is for callers
// that have read the line from the backend. NotReady of the candidates is empty. It fails with
// [backend.ErrHeader] if the header has notes that cannot be understood.
func StateOf(line backend.Line) (State, []Candidate, error) {
	l, err := header.LineOf(line)
	if err != nil {
		return State{}, nil, err
	}
	s, all := stateOf(l)
	return s, all, nil
}

func stateOf(line header.Line) (State, []Candidate) {
	all := make([]Candidate, len(line.Members))
	for i, m := range line.Members {
		says := value.Parse(m.Value)
		all[i] = Candidate{
			ID: says.ID, Value: says.Text, Key: m.Key, Token: line.Token(m), Position: m.Position,
			Priority: says.Priority, Site: says.Site, Pinned: m.Pinned, Shared: m.Shared,
		}
	}
	s := State{MovedTo: line.Header.Sealed}
	switch {
	case len(all) == 0:
	case all[0].Pinned:
		s.Gate, s.Paused = all[0], line.Members[0].Position == line.Header.Choice.Gate
	case s.MovedTo == "" && !value.Parse(line.Members[0].Value).Gate:
		s.Leader = Leader{all[0], line.Header.Acknowledged == all[0].Token}
	}
	return s, all
}

// Leader returns who leads now. If nobody does, the error is an [ErrNoLeader] that says why; see
// [State] Err. It blocks for about one round trip, or two where Refresh of a [backend.Session] takes one.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	s, err := e.State(ctx)
	if err == nil {
		err = s.Err()
	}
	return s.Leader, err
}

// State returns how the election stands now. It blocks as Leader does.
func (e *Election) State(ctx context.Context) (State, error) {
	s, err := e.fresh(ctx)
	if err != nil {
		return State{}, err
	}
	line, err := s.Head(ctx, e.name)
	if err != nil {
		return State{}, err
	}
	state, _, err := StateOf(line)
	return state, err
}

// Line returns how the election stands now, and all who stand in line, in order: the leader is
// first. It blocks for about one round trip, or for one per candidate if the coordinator knows no
// other way. Add one for each candidate that is not ready, and one where Refresh of a [backend.Session] takes
// one.
func (e *Election) Line(ctx context.Context) (State, []Candidate, error) {
	s, err := e.fresh(ctx)
	if err != nil {
		return State{}, nil, err
	}
	read, err := s.Line(ctx, e.name)
	if err != nil {
		return State{}, nil, err
	}
	line, err := header.LineOf(read)
	if err != nil {
		return State{}, nil, err
	}
	state, all := stateOf(line)
	if line.Header.Choice.Readiness {
		err = e.addReasons(ctx, s, all, line.Members)
	}
	if !state.Vacant() {
		state.Leader.NotReady = all[0].NotReady
	}
	return state, all, err
}

// addReasons adds why candidates are not ready.
func (e *Election) addReasons(ctx context.Context, s backend.Session, out []Candidate, line []backend.Member) error {
	not, err := unready.Read(ctx, s, e.name)
	if err != nil {
		return err
	}
	for i, m := range line {
		if not[m.Position] {
			if out[i].NotReady, err = unready.Why(ctx, s, e.name, m.Position); err != nil {
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

// fresh returns a session whose reads show the present state.
func (e *Election) fresh(ctx context.Context) (backend.Session, error) {
	s, err := e.session(ctx)
	if err == nil {
		err = s.Refresh(ctx)
	}
	return s, err
}

// Observe yields how the election stands, at once and then at each change: a new leader, nobody, a pause, and,
// if the backend has records, an acknowledgement. It does not join the line. Each step
// blocks until there is a change.
//
// Observe never goes back to an earlier leader. A slow consumer may miss leaders, but
// never the newest one. If the coordinator cannot be reached, Observe waits in silence,
// so what it yielded last may be out of date then.
//
// The sequence ends with an error: the cause of ctx, or an error that does not pass by
// itself.
func (e *Election) Observe(ctx context.Context) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		var last State
		var doubted *State // a seemingly earlier state, until the next look
		var due fenceDue
		begun, newest := false, uint64(0)
		var s backend.Session // the session that has read line; nil once a change has been waited for
		var line backend.Line
		j := backoff.JitterOf(ctx)
		err := again.Until(ctx, passing, func() (enough bool, err error) {
			if was := s; was != nil {
				s = nil
				return false, changed(ctx, was, e.name, line, j)
			}
			now, err := e.session(ctx)
			if err == nil {
				line, err = now.Head(ctx, e.name)
			}
			if err != nil {
				return false, err
			}
			st, _, err := StateOf(line)
			if err != nil {
				return false, err
			}
			s = now
			// A server that lags behind may show an earlier leader to the next session, also one that has gone since. It is true if
			// the next look shows it again, after a change or a session time: an operator may have deleted the record with the fence,
			// and its copy. To refresh the session and look at once would not do: the present state of a coordinator that was restored
			// is an earlier one, and whoever was there before is told ErrReset instead, once a heartbeat has found that out.
			earlier := !st.Vacant() && st != last && (st.Leader.Token < newest || st.Leader.Token == newest && last.Vacant())
			if was := doubted; st != due.state && earlier && (was == nil || *was != st) {
				doubted = &st
				return false, nil
			}
			doubted = nil
			if earlier {
				if wait, err := due.of(ctx, now, e.name, st, line.Header.Fence, j); wait || err != nil {
					return false, err
				}
			}
			due = fenceDue{}
			if begun && st == last {
				return false, nil
			}
			begun, last = true, st
			if !st.Vacant() {
				newest = st.Leader.Token
			}
			return !yield(st, nil), nil
		})
		if err != nil {
			yield(State{}, err)
		}
	}
}

// A fenceDue says how long an observer still waits for the first in line to raise the fence to its copy. Candidates of this project do
// that before they lead. It is zero if the observer does not wait.
type fenceDue struct {
	state State // in which the fence is missing
	till  time.Time
}

// of reports whether an observer is to wait in a state of which the header has that fence. Candidates of other libraries raise none: so
// it waits for a session time or two.
func (d *fenceDue) of(ctx context.Context, s backend.Session, election string, st State, fence uint64, j backoff.Jitter) (bool, error) {
	kept, err := header.Kept(ctx, s, election)
	if errors.Is(err, backend.ErrDenied) { // the observer need not be allowed to read the copy
		return false, nil
	}
	if err != nil || kept <= fence {
		return false, err
	}
	if d.state = st; d.till.IsZero() {
		d.till = time.Now().Add(again.Interval(s, j))
	}
	return time.Now().Before(d.till), nil
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
		return again.Either(ctx, member, again.Changed(s, name, line.Version))
	})
}
