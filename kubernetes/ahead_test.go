//go:build linux

package kubernetes_test

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/kubernetes"
)

// Of those in front a session remembers a few. When all of these have gone at once, one before them is in front.
func TestMoreInFrontThanAreRemembered(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	o := kubernetes.Options{Prefix: coordtest.Name(t)}
	others, own := newClient(t, k, o).live(t), newClient(t, k, o).live(t)
	for name, told := range map[string]bool{"told of each": true, "told of none": false} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t, 30*time.Second)
			var line []backend.Member
			for range 12 {
				line = append(line, join(t, others, name[8:], "x"))
			}
			m := join(t, own, name[8:], "x")
			right := func(p backend.Place) bool { // whether it stands behind the last of the others
				if len(line) == 0 {
					return p.First
				}
				return !p.First && p.Ahead.Key == line[len(line)-1].Key
			}
			look := func() (p backend.Place) {
				t.Helper()
				p, err := own.Ahead(ctx, m)
				if err != nil || !right(p) {
					t.Fatalf("%d stand in front, and it stands at %+v, %v", len(line), p, err)
				}
				return p
			}
			p := look()
			for _, leave := range []int{3, 6, 3} {
				for range leave {
					last := len(line) - 1
					if err := others.Leave(ctx, line[last]); err != nil {
						t.Fatal(err)
					}
					line = line[:last]
					for told && !right(p) {
						if err := own.WatchPlace(ctx, m, &p); err != nil {
							t.Fatal(err)
						}
					}
				}
				p = look()
			}
		})
	}
}
