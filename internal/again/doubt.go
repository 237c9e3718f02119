package again

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// A Doubt keeps a caller that follows a state from going back to an earlier one, because a server
// that lags behind may show an old state to the next session. A state that seems to be earlier is true if a session shows it that
// was refreshed: an operator may have deleted something. The zero Doubt has none.
type Doubt struct {
	refreshed <-chan struct{} // Done of the session in which the next look shows the present state
}

// Doubts reports whether the caller must look again, because the state that a session has shown cannot be believed: it seems to be earlier
// than the one seen before, and the session was not refreshed since the look that showed such a state first. Doubts has refreshed it
// then, which takes a round trip. The caller calls Doubts after each look, so that each doubt is a new one.
func (d *Doubt) Doubts(ctx context.Context, s backend.Session, earlier bool) (bool, error) {
	refreshed := d.refreshed
	d.refreshed = nil
	if !earlier || refreshed == s.Done() {
		return false, nil
	}
	if err := s.Refresh(ctx); err != nil {
		return false, err
	}
	d.refreshed = s.Done()
	return true, nil
}
