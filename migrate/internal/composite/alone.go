package composite

import (
	"context"
	"log/slog"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/naming"
)

// An Alone does for the leaders of one coordinator alone what a candidacy does on From: it notes
// which records they guard. It is for one election.
type Alone struct {
	mu      sync.Mutex
	leader  backend.Member // whose records are known
	guarded Guarded
}

// Guards notes that m, which leads, is about to guard the record; see [session.guards].
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
	all, err := goesAlong(ctx, part, m.Line, m, name, true, log)
	if err != nil {
		return unsettled(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leader == m {
		a.guarded = a.guarded.with(name)
		a.guarded.More = a.guarded.More || all.More
	}
	return nil
}
