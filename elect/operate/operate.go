// Package operate is for people and programs that run an election and do not stand in it. It asks a
// leader to resign, also in favour of a certain candidate, closes an election and opens it again,
// raises the fence, and reads who led when. The command of this module does all of that in a terminal.
package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
)

var (
	// ErrOtherLeader says that the term that was named does not lead, and so was not asked to resign; see
	// [ResignOptions].
	ErrOtherLeader = errors.New("another term leads")
	// ErrNotPaused says that the election is not paused, or not by the gate that was named.
	ErrNotPaused = errors.New("the election is not paused")
	// ErrMoving says that the election is being moved to another coordinator.
	ErrMoving = errors.New("the election is being moved")
)

// An Operator is a person's handle on one election. It is safe for concurrent use, and stands in no line.
type Operator struct {
	b        backend.Backend
	name, by string
	err      error // what is wrong with the arguments of New
}

// New returns an operator of the election with the given name on b. by says in one line who acts:
// everybody who looks at a pause sees it, and so does a leader that is asked to resign. New does
// not block and does not talk to the coordinator. If an argument is not allowed, every call fails
// with [backend.ErrInvalid]. The caller still has to close b.
func New(b backend.Backend, name, by string) *Operator {
	op := &Operator{b: backend.For(b, name), name: name, by: cmp.Or(by, "somebody"), err: backend.CheckName(name)}
	if of, by, kept := naming.Kept(name); kept && op.err == nil {
		op.err = fmt.Errorf("%w name %q: something of the election %q (%s) is kept under that name", backend.ErrInvalid, name, of, by)
	}
	return op
}

// RaiseFence makes every later token of this election larger than floor. It is needed after the
// coordinator was rebuilt or restored, because tokens then fall. It never makes tokens smaller. A
// leader that was elected before keeps its token: observers, and [ResignOptions], know it by the one that it would get now.
//
// The fence is kept when the election is deleted: it also stands in a record named like
// the election with ".fence" at the end. RaiseFence blocks for about five round trips.
// Its error matches [errors.ErrUnsupported] if the backend has no records, and [backend.ErrInvalid] if floor
// is larger than [backend.MaxFence].
func (op *Operator) RaiseFence(ctx context.Context, floor uint64) error {
	s, err := op.fresh(ctx) // a fence that was deleted is not high enough
	if err != nil {
		return err
	}
	return header.Raise(ctx, s, op.name, backend.Member{}, floor)
}

func (op *Operator) session(ctx context.Context) (backend.Session, error) {
	if op.err != nil {
		return nil, fmt.Errorf("operate: %w", op.err)
	}
	return op.b.Session(ctx)
}

// fresh returns a session whose reads show the present state.
func (op *Operator) fresh(ctx context.Context) (backend.Session, error) {
	s, err := op.session(ctx)
	if err == nil {
		err = s.Refresh(ctx)
	}
	return s, err
}

// look reads the line of the election by read, which is the method Line or Head of a session.
func look(ctx context.Context, read func(context.Context, string) (backend.Line, error), election string) (header.Line, elect.State, []elect.Candidate, error) {
	l, err := read(ctx, election)
	if err != nil {
		return header.Line{}, elect.State{}, nil, err
	}
	state, all, err := elect.StateOf(l)
	if err != nil {
		return header.Line{}, elect.State{}, nil, err
	}
	line, err := header.LineOf(l)
	return line, state, all, err
}
