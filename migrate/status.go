package migrate

import (
	"context"
	"errors"
	"sync"

	"github.com/succession-dev/succession/backend"
)

// A Phase is how far the migration of an election has come.
type Phase string

// The phases, in their order.
const (
	None      Phase = "none"      // no migration has begun
	Begun     Phase = "begun"     // the gate stands: processes may be restarted with both
	Asked     Phase = "asked"     // the leader has been asked to cut over
	Sealed    Phase = "sealed"    // the old coordinator is sealed, and the gate still to be taken away
	Moved     Phase = "moved"     // the election is on the new coordinator
	Aborting  Phase = "aborting"  // an abort is under way
	Aborted   Phase = "aborted"   // the election stays on the old coordinator
	Conflict  Phase = "conflict"  // gates of two migrations in opposite directions stand: abort one
	Elsewhere Phase = "elsewhere" // a record names a coordinator, or a migration, that is not ours
)

// A Status is where the migration of one election is.
type Status struct {
	Election string `json:"election"`
	From     string `json:"from"` // the addresses of the two coordinators
	To       string `json:"to"`
	ID       string `json:"id,omitempty"` // of the migration; empty where none has begun
	Phase    Phase  `json:"phase"`
	// OnFrom and OnTo are who stands in line on each coordinator, in order, without
	// gate and seal. Before the cutover the first of OnFrom leads, unless it is a
	// process of this package without a place on To; after it the first of OnTo does.
	OnFrom []Candidate `json:"on_from"`
	OnTo   []Candidate `json:"on_to"`
	// Ready is true when the leader holds a place on both coordinators, so that it can
	// cut over.
	Ready bool `json:"ready"`
	// Blocks says, for people, what stands in the way of the next step; empty where
	// nothing does. A candidate that knows From alone, and does not lead, is in nobody's
	// way: it is named in Next.
	Blocks []string `json:"blocks"`
	// Next says what to do next, for people.
	Next string `json:"next"`
}

// look is what the steps work with.
type look struct {
	half    [2]backend.Session
	line    [2]backend.Line
	fromErr error // From cannot be reached, and To's record is enough
}

func (b *Backend) sessions(ctx context.Context, election string) (half [2]backend.Session, errs [2]error) {
	if err := b.err; err != nil {
		return half, [2]error{err, err}
	}
	if err := backend.CheckName(election); err != nil {
		return half, [2]error{err, err}
	}
	for sd, sub := range b.sub {
		half[sd], errs[sd] = sub.Session(ctx)
	}
	return half, errs
}

func (b *Backend) look(ctx context.Context, election string) (look, error) {
	var k look
	var errs [2]error
	k.half, errs = b.sessions(ctx, election)
	// To before From: a step that writes To's record names the version that was read, and
	// so is refused where anything has been done there since. What was read of From is newer.
	for _, sd := range []side{sideTo, sideFrom} {
		if errs[sd] == nil {
			k.line[sd], errs[sd] = k.half[sd].Line(ctx, election)
		}
	}
	if errs[sideTo] != nil {
		return k, errs[sideTo]
	}
	if k.fromErr = errs[sideFrom]; k.fromErr != nil {
		if r, err := b.rule(backend.Header{}, k.line[sideTo].Header); err != nil || r.both || r.alone != sideTo {
			return k, k.fromErr
		}
	}
	return k, nil
}

// Status says where the migration of the election is, who stands where, what is in the
// way, and what to do next. It blocks for about three round trips to each coordinator.
func (b *Backend) Status(ctx context.Context, election string) (Status, error) {
	k, err := b.look(ctx, election)
	if err != nil {
		return Status{}, wrap("status", election, err)
	}
	s, err := b.status(ctx, election, k)
	return s, wrap("status", election, err)
}

func (b *Backend) status(ctx context.Context, election string, k look) (Status, error) {
	both, err := k.marked(ctx, election)
	if err != nil {
		return Status{}, err
	}
	from, to := k.line[sideFrom], k.line[sideTo]
	s := Status{
		Election: election, From: b.o.From, To: b.o.To,
		OnFrom: candidates(from, OldOnly, both[sideFrom]),
		OnTo:   candidates(to, NewOnly, both[sideTo]),
	}
	s.Phase, err = b.phase(k)
	if s.Phase != None && s.Phase != Elsewhere {
		s.ID = to.Header.Migration.ID
	}
	if _, stands := gate(to); stands && (s.Phase == Begun || s.Phase == Asked) && len(s.OnFrom) > 0 && len(to.Members) > 1 {
		s.Ready = from.Token(from.Members[0]) == to.Token(to.Members[1]) && from.Members[0].Value == to.Members[1].Value
	}
	s.Blocks = blocks(s, k)
	if s.Next = next(s, k); err != nil && s.Phase != None {
		s.Next = err.Error()
	}
	return s, nil
}

// marked returns who on each side runs with both coordinators; nil where that may not
// be read.
func (k *look) marked(ctx context.Context, election string) (both [2]map[uint64]bool, err error) {
	var errs [2]error
	var wg sync.WaitGroup
	for sd, half := range k.half {
		if half != nil && (side(sd) == sideTo || k.fromErr == nil) {
			wg.Go(func() { both[sd], errs[sd] = marked(ctx, half, election) })
		}
	}
	wg.Wait()
	for sd, err := range errs {
		if errors.Is(err, backend.ErrDenied) {
			errs[sd] = nil
		}
	}
	return both, errors.Join(errs[:]...)
}

// phase says how far the migration has come; with an error where the records have no
// place for b.
func (b *Backend) phase(k look) (Phase, error) {
	step := k.line[sideTo].Header.Migration.Step
	r, err := b.rule(k.line[sideFrom].Header, k.line[sideTo].Header)
	switch {
	case errors.Is(err, ErrNotBegun):
		return None, err
	case errors.Is(err, errConflict):
		return Conflict, err
	case err != nil:
		return Elsewhere, err
	case r.half:
		return Sealed, nil
	case r.both && step == stepBegun:
		return Begun, nil
	case r.both && step == stepAsked:
		return Asked, nil
	case r.both:
		return Aborting, nil
	case r.alone == sideTo:
		return Moved, nil
	}
	return Aborted, nil
}
