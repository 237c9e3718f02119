package migrate

import (
	"context"
	"log/slog"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate/internal/composite"
)

// An Alone is for an election that is on one coordinator and may be moved later. It notes there
// which records the leaders guard, as a [Backend] does, so that the records go along. The zero value
// is ready for use, for one election and by several goroutines.
type Alone struct{ alone composite.Alone }

// Guards must be called before m, a member that leads, writes or deletes a record on condition that
// it stands. Once for each term and record it blocks for a few round trips. It fails with
// [backend.ErrNotMember] if m has gone. If the coordinator refuses the note, as without the right to
// it, Guards warns log and returns nil, because that is no reason to refuse the leader's write.
func (a *Alone) Guards(ctx context.Context, s backend.Session, m backend.Member, record string, log *slog.Logger) error {
	return a.alone.Guards(ctx, s, m, record, log)
}
