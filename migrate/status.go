package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	Elsewhere Phase = "elsewhere" // a record names a coordinator, or a migration, that is not ours
)

// A Status is where the migration of one election is.
type Status struct {
	Election string
	From, To string // the addresses of the two coordinators
	ID       string // of the migration; empty where none has begun
	Phase    Phase
	// OnFrom and OnTo are who stands in line on each coordinator, in order, without
	// gate and seal. Before the cutover the first of OnFrom leads, unless it is a
	// process of this package without a place on To.
	OnFrom, OnTo []backend.Member
	// Ready is true when the leader holds a place on both coordinators, so that it can
	// cut over.
	Ready bool
	// Next says what to do next, for people.
	Next string
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
	for sd, half := range k.half {
		if errs[sd] == nil {
			k.line[sd], errs[sd] = half.Line(ctx, election)
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

// Status says where the migration of the election is, and what to do next. It blocks
// for about two round trips to each coordinator.
func (b *Backend) Status(ctx context.Context, election string) (Status, error) {
	k, err := b.look(ctx, election)
	if err != nil {
		return Status{}, wrap("status", election, err)
	}
	return b.status(election, k), nil
}

func (b *Backend) status(election string, k look) Status {
	from, to := k.line[sideFrom], k.line[sideTo]
	s := Status{Election: election, From: b.o.From, To: b.o.To, ID: to.Header.Migration.ID, OnFrom: unpinned(from), OnTo: unpinned(to)}
	r, err := b.rule(from.Header, to.Header)
	if _, stands := gate(to); r.both && stands && len(s.OnFrom) > 0 && len(to.Members) > 1 {
		s.Ready = from.Token(from.Members[0]) == to.Token(to.Members[1]) && from.Members[0].Value == to.Members[1].Value
	}
	switch {
	case errors.Is(err, ErrNotBegun):
		s.Phase, s.ID, s.Next = None, "", "begin the migration"
	case err != nil:
		s.Phase, s.Next = Elsewhere, err.Error()
	case r.half:
		s.Phase, s.Next = Sealed, "finish the cutover"
	case r.both && to.Header.Migration.Step == stepBegun:
		s.Phase = Begun
		s.Next = "restart every process with both coordinators, then cut over"
		if _, stands := gate(to); !stands {
			s.Next = "the gate is gone: begin again"
		}
	case r.both && to.Header.Migration.Step == stepAsked:
		s.Phase, s.Next = Asked, b.waitsFor(s)
	case r.both:
		s.Phase, s.Next = Aborting, "abort again: an earlier abort was not finished"
	case r.alone == sideTo:
		s.Phase = Moved
		s.Next = "restart every process with " + b.o.To + " alone"
		if len(s.OnFrom) > 0 {
			s.Next = fmt.Sprintf("restart those who still stand on %s with %s alone: %s", b.o.From, b.o.To, names(s.OnFrom))
		}
	default:
		s.Phase, s.Next = Aborted, "restart every process with "+b.o.From+" alone, or begin again"
		if g, stands := gate(to); stands && !to.Header.Migration.Seal {
			s.Next = fmt.Sprintf("abort again: the gate %s is still to be taken away", g.Key)
		}
	}
	return s
}

// waitsFor says what a cutover waits for.
func (b *Backend) waitsFor(s Status) string {
	switch {
	case len(s.OnFrom) == 0:
		return "nobody leads: start a process with both coordinators, and it will cut over"
	case s.Ready:
		return fmt.Sprintf("the leader, %s, is about to cut over", names(s.OnFrom[:1]))
	case len(s.OnTo) == 0:
		return fmt.Sprintf("the leader, %s, has no place on %s: restart it with both coordinators, or ask it to resign", names(s.OnFrom[:1]), b.o.To)
	}
	return fmt.Sprintf("the leader, %s, is not first on %s, where %s stands: if that was started with %s alone, stop it until the cutover; if the leader runs with %s alone, restart it with both",
		names(s.OnFrom[:1]), b.o.To, names(s.OnTo[:1]), b.o.To, b.o.From)
}

func unpinned(l backend.Line) []backend.Member {
	var out []backend.Member
	for _, m := range l.Members {
		if !m.Pinned {
			out = append(out, m)
		}
	}
	return out
}

func names(members []backend.Member) string {
	out := make([]string, len(members))
	for i, m := range members {
		id, _, _ := strings.Cut(m.Value, "\n")
		out[i] = fmt.Sprintf("%s (%s)", id, m.Key)
	}
	return strings.Join(out, ", ")
}
