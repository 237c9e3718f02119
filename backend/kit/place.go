package kit

import (
	"context"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/again"
)

// WatchPlace is WatchPlace of [backend.Session] for a coordinator that cannot watch a place. It waits by the Gone
// and Watch of s, and asks Ahead after that and once in about a session time.
func WatchPlace(ctx context.Context, s backend.Session, m backend.Member, p *backend.Place) error {
	return again.WatchPlace(ctx, s, m, p)
}
