package group_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/group"
)

// While the line of the members is paused, nobody is present, and nothing is wrong: who was present, and who joins, waits for
// the end of the pause. A stranger behind the gate is told from it afterwards.
func TestPaused(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, stop := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		lost, ended, b := make(chan error, 2), make(chan error, 3), bubble.Client(t, c, "looks on")
		runs := func(id string) {
			g := group.New(bubble.Client(t, c, id), "workers", &elect.Options{ID: id})
			go func() {
				ended <- g.Run(ctx, func(ctx context.Context, p *group.Presence) error {
					<-ctx.Done()
					if context.Cause(ctx) != enough {
						lost <- context.Cause(ctx)
					}
					return nil
				})
			}()
			synctest.Wait()
		}
		seen := make(chan string, 100)
		following, leave := context.WithCancel(t.Context())
		defer leave()
		go func() {
			for members, err := range group.New(b, "workers", nil).Follow(following) {
				if err != nil && following.Err() == nil {
					t.Error(err)
				}
				seen <- show(members)
			}
		}()
		runs("a")
		runs("b")
		expect(t, b, "a= b=")
		op := operate.New(b, "workers-members", "operator")
		bubble.Must[elect.Candidate](t)(op.Pause(ctx, "a look at the disk"))
		for range 2 {
			bubble.Want(t, <-lost, elect.ErrAsked)
		}
		runs("c")
		synctest.Wait()
		expect(t, b, "")
		if n := len(c.Members("workers-members")); n != 1 || len(ended) > 0 {
			t.Fatalf("%d stand in the paused line, want the gate alone; %d have ended", n, len(ended))
		}
		newest := ""
		for len(seen) > 0 {
			newest = <-seen
		}
		if newest != "" {
			t.Errorf("a follower sees %q", newest)
		}
		leave()

		strange, give := context.WithCancel(t.Context())
		defer give()
		go elect.New(bubble.Client(t, c, "stranger"), "workers-members", nil).Run(strange, func(ctx context.Context, _ *elect.Term) error {
			<-ctx.Done()
			return nil
		})
		synctest.Wait()
		bubble.Must[elect.Candidate](t)(op.Resume(ctx, nil))
		for range 3 {
			bubble.Want(t, <-ended, backend.ErrInvalid)
		}
		give()
		synctest.Wait()
		runs("d")
		expect(t, b, "d=")
		bubble.Must[elect.Candidate](t)(op.Pause(ctx, "again"))
		synctest.Wait()
		expect(t, b, "")
		bubble.Must[elect.Candidate](t)(op.Resume(ctx, nil))
		time.Sleep(bubble.TTL)
		expect(t, b, "d=")
		stop(enough)
		bubble.Want(t, <-ended, enough)
	})
}
