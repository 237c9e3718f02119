//go:build linux

package local_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

// An operator's acts take effect, and those that find nothing to do succeed.
func TestOperator(t *testing.T) { rig.CheckOperator(t, "local:"+t.TempDir()) }

// An election is deleted also while candidates join it, and they join it again.
func TestDropWhileOthersJoin(t *testing.T) {
	t.Parallel()
	dir := coordtest.Folder(t)
	o := rig.OperatorOf(t, "local:"+dir)
	ctx, cancel := context.WithCancel(t.Context())
	var joining sync.WaitGroup
	defer joining.Wait()
	defer cancel()
	for range 2 {
		_, s := open(t, dir)
		joining.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.Join(t.Context(), "app/e", "x", ""); err != nil && !errors.Is(err, backend.ErrUnavailable) {
					t.Errorf("Join: %v", err)
					return
				}
			}
		})
	}
	for range 200 {
		if err := o.Drop(t.Context(), "app/e"); err != nil {
			t.Fatalf("Drop: %v", err)
		}
	}
}
