package recipes

import (
	"context"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
)

// A Hold is what a process has for a while by standing in a line: a lock, an item of a queue, a
// presence in a group, a task. It can be lost, as a term of an election can: the coordinator has
// not heard from the process for a session time, or an operator has removed its member. The holder
// gives it back by a method of the recipe, such as Unlock. It is safe for concurrent use.
type Hold struct{ term *elect.Term }

// NewHold returns the hold of a term, for a recipe.
func NewHold(t *elect.Term) Hold { return Hold{t} }

// Context is cancelled when the hold is lost, before another can have it, and when it is given
// back. Its cause says which. It does not block.
func (h Hold) Context() context.Context { return h.term.Context() }

// Check returns nil while the hold lasts, and afterwards why it ended. It notices a pause of the
// process that no timer has noticed yet; see [elect.Term.Check]. It does not block.
func (h Hold) Check() error { return h.term.Check() }

// Token is larger than the token of every earlier holder of the same thing. A store that refuses a
// token smaller than the largest it has seen is safe from a holder that was paused between its
// check and its write. It does not block.
func (h Hold) Token() uint64 { return h.term.Token() }

// Deadline is the time at which the hold ends if the coordinator does not confirm it before; see
// [elect.Term.Deadline]. The zero time means that there is none. It does not block.
func (h Hold) Deadline() time.Time { return h.term.Deadline() }

// Get returns a record; see [elect.Term.Get]. It blocks for a request.
func (h Hold) Get(ctx context.Context, record string) (backend.Record, error) {
	return h.term.Get(ctx, record)
}

// Put writes a record on condition that the hold lasts, in one atomic step of the coordinator; see
// [elect.Term.Put]. It blocks for a request. On Kubernetes a write that is under way when the hold ends may be done
// later, if it is a slot, an item, or something else that several have together; see docs/safety.md.
func (h Hold) Put(ctx context.Context, record string, value []byte, at backend.Version) (backend.Version, error) {
	return h.term.Put(ctx, record, value, at)
}

// Delete deletes a record on the same condition; see [elect.Term.Delete]. It blocks for a request.
func (h Hold) Delete(ctx context.Context, record string, at backend.Version) error {
	return h.term.Delete(ctx, record, at)
}

// Term is the term behind the hold. The line of its election says who holds and who waits. Give the
// hold back by the method of the recipe, which may do more than resign.
func (h Hold) Term() *elect.Term { return h.term }

// String names the line and the token, for logs.
func (h Hold) String() string { return h.term.String() }
