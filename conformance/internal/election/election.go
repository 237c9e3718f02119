// Package election has interfaces for the part of package elect that the conformance rules
// call. Rules use them so that the suite's own tests can replace package elect by a flawed
// election.
package election

import (
	"context"
	"iter"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
)

// An Election has the methods of [elect.Election], and of its [operate.Operator], that rules call.
type Election interface {
	Campaign(ctx context.Context) (Term, error)
	Run(ctx context.Context, fn func(ctx context.Context, t Term) error) error
	Observe(ctx context.Context) iter.Seq2[elect.State, error]
	State(ctx context.Context) (elect.State, error)
	Line(ctx context.Context) (elect.State, []elect.Candidate, error)
	AskToResign(ctx context.Context, o *operate.ResignOptions) (elect.Leader, error)
	Pause(ctx context.Context, reason string) (elect.Candidate, error)
	Resume(ctx context.Context, o *operate.ResumeOptions) (elect.Candidate, error)
	History(ctx context.Context) ([]operate.Past, error)
	RaiseFence(ctx context.Context, floor uint64) error
}

// A Term has the methods of [elect.Term] that rules call.
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

// New is the [Maker] for package elect itself.
func New(b backend.Backend, name string, o *elect.Options) Election {
	e := elect.New(b, name, o)
	return genuine{e, operate.New(b, name, e.ID())}
}

type genuine struct {
	*elect.Election
	*operate.Operator
}

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
