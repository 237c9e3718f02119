//go:build linux

package postgres_test

import (
	"testing"

	"github.com/succession-dev/succession/internal/rig/move"
	_ "github.com/succession-dev/succession/local"
)

// Elections move between this machine and PostgreSQL while somebody leads them.
func TestMoves(t *testing.T) {
	for what, check := range map[string]func(t *testing.T, here, there string){"migrate": move.CheckMigration, "spread": move.CheckSpread} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			check(t, "local:"+t.TempDir(), urlOf(sharedPostgres(t).Addrs()[0]))
		})
	}
}
