package migrate

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate/internal/composite"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// A Phase is how far the migration of an election has come.
type Phase string

// The phases, in their order.
const (
	None      = Phase(protocol.None)      // no migration has begun
	Begun     = Phase(protocol.Begun)     // the gate stands: processes may be restarted with both
	Asked     = Phase(protocol.Asked)     // the leader has been asked to cut over
	Sealed    = Phase(protocol.Sealed)    // the old coordinator is sealed, and the gate still to be taken away
	Moved     = Phase(protocol.Moved)     // the election is on the new coordinator
	Aborting  = Phase(protocol.Aborting)  // an abort is under way
	Aborted   = Phase(protocol.Aborted)   // the election stays on the old coordinator
	Conflict  = Phase(protocol.Conflict)  // gates of two migrations in opposite directions stand: abort one
	Elsewhere = Phase(protocol.Elsewhere) // a record names a coordinator, or a migration, that this process does not take part in
	Aliased   = Phase(protocol.Aliased)   // a gate stands, and both addresses mean the coordinator where it stands: abort
)

// A Status says how far the migration of one election is.
type Status struct {
	Election string `json:"election"`
	From     string `json:"from"` // the addresses of the two coordinators
	To       string `json:"to"`
	ID       string `json:"id,omitempty"` // of the migration; empty if none has begun
	Phase    Phase  `json:"phase"`
	// OnFrom and OnTo are the candidates in line on each coordinator, in order, without gate and
	// seal. Before the cutover the first of OnFrom leads, unless it is a process of this package
	// without a member on To. After the cutover the first of OnTo leads.
	OnFrom []Candidate `json:"on_from"`
	OnTo   []Candidate `json:"on_to"`
	// Ready is true when the leader has a member on both coordinators, so that it can
	// cut over.
	Ready bool `json:"ready"`
	// Blocks says, for people, what stands in the way of the next step; empty if nothing does. A
	// candidate that knows From alone, and does not lead, blocks nothing: Next names it.
	Blocks []string `json:"blocks"`
	// Next says what to do next, for people.
	Next string `json:"next"`
}

// A view is what has been read of both coordinators.
type view struct {
	on      [2]backend.Session
	line    protocol.Lines
	fromErr error // why From cannot be reached, if To's record is enough
}

// sessions returns a session with each coordinator.
func (b *Backend) sessions(ctx context.Context, election string) (on [2]backend.Session, errs [2]error) {
	err := b.err
	if err == nil {
		err = backend.CheckName(election)
	}
	if err != nil {
		return on, [2]error{err, err}
	}
	for sd, sub := range b.sub {
		on[sd], errs[sd] = sub.Session(ctx)
	}
	return on, errs
}

func (b *Backend) look(ctx context.Context, election string) (view, error) {
	var v view
	var errs [2]error
	v.on, errs = b.sessions(ctx, election)
	composite.Both(func(sd protocol.Side) { // what others have done is known, so that no step is refused, or left out, for what was
		if errs[sd] == nil {
			errs[sd] = v.on[sd].Refresh(ctx)
		}
	})
	for _, sd := range []protocol.Side{protocol.To, protocol.From} { // see protocol.Lines
		if errs[sd] == nil {
			v.line[sd], errs[sd] = composite.LineOn(ctx, v.on[sd], election)
		}
	}
	if errs[protocol.To] != nil {
		return v, errs[protocol.To]
	}
	if v.fromErr = errs[protocol.From]; v.fromErr != nil && !b.route.MovedByTo(v.line[protocol.To].Header) {
		return v, v.fromErr
	}
	return v, nil
}

// Status says how far the migration of the election is, which candidates stand where, what is in
// the way, and what to do next. It blocks for about three round trips to each coordinator.
func (b *Backend) Status(ctx context.Context, election string) (Status, error) {
	v, err := b.look(ctx, election)
	if err != nil {
		return Status{}, composite.Wrap("status", election, err)
	}
	s, err := b.status(ctx, election, v)
	return s, composite.Wrap("status", election, err)
}

func (b *Backend) status(ctx context.Context, election string, v view) (Status, error) {
	both, err := v.marked(ctx, election)
	if err != nil {
		return Status{}, err
	}
	from, to := v.line[protocol.From], v.line[protocol.To]
	s := Status{
		Election: election, From: b.route.From, To: b.route.To,
		OnFrom: candidates(from, OldOnly, both[protocol.From]),
		OnTo:   candidates(to, NewOnly, both[protocol.To]),
	}
	phase, err := b.phase(v)
	s.Phase = Phase(phase)
	if s.Phase != None && s.Phase != Elsewhere {
		s.ID = to.Header.Migration.ID
	}
	if _, stands := protocol.Gate(to); stands && (s.Phase == Begun || s.Phase == Asked) && len(s.OnFrom) > 0 && len(to.Members) > 1 {
		s.Ready = from.Token(from.Members[0]) == to.Token(to.Members[1]) && from.Members[0].Value == to.Members[1].Value
	}
	s.Blocks = blocks(s, v)
	if s.Next = next(s, v); err != nil && s.Phase != None {
		s.Next = err.Error()
	}
	return s, nil
}

// phase says how far the migration is; see [protocol.Route.Phase].
func (b *Backend) phase(v view) (protocol.Phase, error) {
	return b.route.Phase(v.line[protocol.From].Header, v.line[protocol.To].Header)
}

// marked returns the positions of the members on each side that run with both coordinators; nil if
// they may not be read.
func (v *view) marked(ctx context.Context, election string) (both [2]map[uint64]bool, err error) {
	var errs [2]error
	composite.Both(func(sd protocol.Side) {
		if v.on[sd] != nil && (sd == protocol.To || v.fromErr == nil) {
			both[sd], errs[sd] = composite.Marked(ctx, v.on[sd], election)
		}
		if errors.Is(errs[sd], backend.ErrDenied) {
			errs[sd] = nil
		}
	})
	return both, errors.Join(errs[:]...)
}
