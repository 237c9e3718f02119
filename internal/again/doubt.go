package again

import (
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// A Doubt keeps a caller that follows a state from going back to an earlier one, because a server
// that lags behind may show an old state to the next session. If the next look shows the seemingly
// earlier state again, it is true: an operator may have deleted something. The zero Doubt compares
// states by ==.
//
// To refresh the session and look at once would not do: the present state of a coordinator that was restored is an earlier one, and
// whoever was there before is told [backend.ErrReset] instead, once a heartbeat has found that out. So callers wait for a change first.
type Doubt[T any] struct {
	Same func(a, b T) bool
	last *T
}

// ErrEarlier says why a caller with a [Doubt] looks again. It passes by itself.
var ErrEarlier = fmt.Errorf("%w: it shows an earlier state than before", backend.ErrUnavailable)

// See returns nil if a state can be believed: it does not seem to be earlier than the one seen before, or the last look has shown
// the same one. Otherwise it returns [ErrEarlier]. The caller calls See after each look: a server that lags behind a second
// time is doubted anew.
func (d *Doubt[T]) See(now T, earlier bool) error {
	seen := d.last
	d.last = nil
	switch {
	case !earlier:
		return nil
	case seen != nil && (d.Same != nil && d.Same(*seen, now) || d.Same == nil && any(*seen) == any(now)):
		return nil
	}
	d.last = &now
	return ErrEarlier
}
