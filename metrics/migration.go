package metrics

import (
	"context"
	"time"

	"github.com/succession-dev/succession/migrate"
)

// phases are the values of the label phase, in the order of package migrate.
var phases = []migrate.Phase{
	migrate.None, migrate.Begun, migrate.Asked, migrate.Sealed, migrate.Moved,
	migrate.Aborting, migrate.Aborted, migrate.Conflict, migrate.Elsewhere, migrate.Aliased,
}

// MigrationPhase sets in which phase the migration of an election is. Call it with the answer of
// [migrate.Backend.Status]; [Recorder.FollowMigration] does that again and again. Before the first
// call the election has no series succession_migration_phase. A phase that is not among those of
// package migrate is left out: then no phase is 1.
func (r *Recorder) MigrationPhase(election string, p migrate.Phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(election).phase = p
}

func phase(e *election, add func(float64, ...string)) {
	if e.phase == "" {
		return
	}
	for _, p := range phases {
		add(one(p == e.phase), string(p))
	}
}

// A Migration tells how far the migration of an election is; [migrate.Backend] does.
type Migration interface {
	Status(ctx context.Context, election string) (migrate.Status, error)
}

// FollowMigration asks m for the phase of the election's migration, at once and then every so often,
// and calls [Recorder.MigrationPhase], until ctx ends. If every is 0, it asks every 15 seconds: as
// often as Prometheus does. Asking takes about three round trips to each coordinator. If it fails,
// the series stay as they are. FollowMigration blocks.
func (r *Recorder) FollowMigration(ctx context.Context, m Migration, election string, every time.Duration) {
	if every <= 0 {
		every = 15 * time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if s, err := m.Status(ctx, election); err == nil {
			r.MigrationPhase(election, s.Phase)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
