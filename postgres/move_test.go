//go:build linux

package postgres_test

import (
	"testing"

	"github.com/succession-dev/succession/internal/rig/move"
)

// Elections move between this machine and PostgreSQL while somebody leads them.
func TestMoves(t *testing.T) {
	move.Check(t, "local:"+t.TempDir(), urlOf(sharedPostgres(t).Addrs()[0]))
}
