// Package election is what the rules of the conformance suite use of package elect, as
// interfaces: the suite's own tests put a flawed election in its place.
package election

import (
	"context"
	"iter"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
)

// An Election is what rules call of [elect.Election].
type Election interface {
	Campaign(ctx context.Context) (Term, error)
	Run(ctx context.Context, fn func(ctx context.Context, t Term) error) error
	Observe(ctx context.Context) iter.Seq2[elect.Leader, error]
	Leader(ctx context.Context) (elect.Leader, error)
	Line(ctx context.Context) ([]elect.Leader, error)
	AskToResign(ctx context.Context) (elect.Leader, error)
	RaiseFence(ctx context.Context, floor uint64) error
}

// A Term is what rules call of [elect.Term].
type Term interface {
	Context() context.Context
	Token() uint64
	Member() backend.Member
	Deadline() time.Time
	Check() error
	Acknowledge(ctx context.Context) error
	Put(ctx context.Context, record string, value []byte, at backend.Version) (backend.Version, error)
	Resign(ctx context.Context) error
}

var _ Term = (*elect.Term)(nil)

// A Maker returns a candidate's handle on an election, as [elect.New] does.
type Maker func(b backend.Backend, name string, o *elect.Options) Election

// New is the Maker of the real ones.
func New(b backend.Backend, name string, o *elect.Options) Election {
	return genuine{elect.New(b, name, o)}
}

type genuine struct{ *elect.Election }

// Campaign returns a nil Term, and not an interface that holds a nil pointer, where
// [elect.Election.Campaign] returns nil.
func (e genuine) Campaign(ctx context.Context) (Term, error) {
	if t, err := e.Election.Campaign(ctx); t != nil {
		return t, err
	} else {
		return nil, err
	}
}

func (e genuine) Run(ctx context.Context, fn func(ctx context.Context, t Term) error) error {
	return e.Election.Run(ctx, func(ctx context.Context, t *elect.Term) error { return fn(ctx, t) })
}
