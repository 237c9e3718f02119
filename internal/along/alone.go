package along

import (
	"context"
	"log/slog"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/naming"
)

// An Alone is for an election that is on one coordinator and may be moved later. It notes there which
// records the leaders guard, so that these go along, and remembers that for the newest leader, up to as many
// names as a list has. The zero value is ready for use, for one election and by several goroutines: two that
// note one record at the same moment write the same. No write has to wait for another, as one does while a move
// may seal the election: such a leader seals nothing.
type Alone struct {
	mu      sync.Mutex
	leader  backend.Member // whose records are known
	guarded Guarded
}

// Guards must be called before m, a member that leads, writes or deletes a record on condition that
// it stands. Once for each term and record it blocks for a few round trips. It fails with
// [backend.ErrNotMember] if m has gone. If the coordinator refuses the note, as without the right to
// it, Guards warns log and returns nil, because that is no reason to refuse the leader's write.
func (a *Alone) Guards(ctx context.Context, part backend.Session, m backend.Member, name string, log *slog.Logger) error {
	a.mu.Lock()
	if a.leader != m {
		a.leader, a.guarded = m, Guarded{}
	}
	known := a.guarded.Has(name) || a.guarded.More
	a.mu.Unlock()
	if _, _, kept := naming.Kept(name); known || kept || name == m.Line {
		return nil
	}
	all, err := Goes(ctx, part, m.Line, m, name, true, log)
	if err != nil {
		return Unsettled(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leader == m {
		a.guarded = a.guarded.With(name)
		a.guarded.More = a.guarded.More || all.More
	}
	return nil
}
