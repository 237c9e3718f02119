//go:build linux

package kubernetes_test

import (
	"testing"

	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/move"
)

// Elections move between this machine and Kubernetes while somebody leads them.
func TestMoves(t *testing.T) {
	move.Check(t, "local:"+t.TempDir(), urlOf(t, sharedKubernetes(t), coordtest.Name(t)))
}
