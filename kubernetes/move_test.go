//go:build linux

package kubernetes_test

import (
	"testing"

	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/move"
	_ "github.com/succession-dev/succession/local"
)

// Elections move between this machine and Kubernetes while somebody leads them.
func TestMoves(t *testing.T) {
	for what, check := range map[string]func(t *testing.T, here, there string){"migrate": move.CheckMigration, "spread": move.CheckSpread} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			check(t, "local:"+t.TempDir(), urlOf(t, sharedKubernetes(t), coordtest.Name(t)))
		})
	}
}
