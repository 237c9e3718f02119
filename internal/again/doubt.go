package again

import (
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// A Doubt keeps a caller that follows a state from going back to an earlier one: a server that lags behind may show
// the next session what was before. A state that seems to be earlier is true if the next look shows it again, as where
// an operator has deleted something. The zero Doubt compares states by ==.
type Doubt[T any] struct {
	Same func(a, b T) bool
	last *T
}

// ErrEarlier says why a caller with a [Doubt] looks again. It passes.
var ErrEarlier = fmt.Errorf("%w: it shows an earlier state than before", backend.ErrUnavailable)

// Earlier returns [ErrEarlier] for a state that seems to be earlier than what was seen before, and nil if the look before
// has shown the same.
func (d *Doubt[T]) Earlier(now T) error {
	if d.last != nil && (d.Same != nil && d.Same(*d.last, now) || d.Same == nil && any(*d.last) == any(now)) {
		return nil
	}
	d.last = &now
	return ErrEarlier
}

// Settled says that the caller has gone on to another state.
func (d *Doubt[T]) Settled() { d.last = nil }
