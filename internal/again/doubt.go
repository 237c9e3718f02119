package again

import (
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// A Doubt keeps a caller that follows a state from going back to an earlier one, because a server
// that lags behind may show an old state to the next session. If the next look shows the seemingly
// earlier state again, it is true: an operator may have deleted something. The zero Doubt compares
// states by ==.
type Doubt[T any] struct {
	Same func(a, b T) bool
	last *T
}

// ErrEarlier says why a caller with a [Doubt] looks again. It passes by itself.
var ErrEarlier = fmt.Errorf("%w: it shows an earlier state than before", backend.ErrUnavailable)

// Earlier returns [ErrEarlier] for a state that seems to be earlier than the one seen before, or
// nil if the last look has shown the same earlier state.
func (d *Doubt[T]) Earlier(now T) error {
	if d.last != nil && (d.Same != nil && d.Same(*d.last, now) || d.Same == nil && any(*d.last) == any(now)) {
		return nil
	}
	d.last = &now
	return ErrEarlier
}

// Settled says that a look has shown no state that seems to be earlier. Without it, a server that lags behind twice would be
// believed the second time.
func (d *Doubt[T]) Settled() { d.last = nil }
