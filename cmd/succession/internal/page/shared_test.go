package page

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A task that is needed again while it ends begins when it has ended: two at a time would undo what the other has done.
func TestSharedRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, began, most := 0, 0, 0
		s := &shared{on: newTasks(), run: func(ctx context.Context) {
			running++
			began++
			most = max(most, running)
			<-ctx.Done()
			time.Sleep(time.Second) // as long as a driver needs to give up what it has asked
			running--
		}}
		for range 3 {
			release := s.need()
			synctest.Wait()
			release()
			time.Sleep(linger + time.Millisecond)
		}
		defer s.need()()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if most != 1 || began < 2 || running != 1 {
			t.Errorf("of %d tasks %d ran at a time, and %d do now; want one", began, most, running)
		}
		s.on.close()
	})
}

// Whoever waits until the coordinator is heard from does not wait for a listener that has gone.
func TestPulseWithoutListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pulse{ask: func(context.Context) error { return backend.ErrUnavailable }}
		ctx, stop := context.WithCancel(t.Context())
		var listening sync.WaitGroup
		listening.Go(func() { p.listen(ctx) })
		time.Sleep(2 * silence)
		if since, _ := p.lost(); since.IsZero() {
			t.Fatal("the silence is not noticed")
		}
		looks := false
		waiting, leave := context.WithCancel(t.Context())
		listening.Go(func() { p.whileHeard(waiting, func(context.Context) { looks = true }) })
		synctest.Wait()
		stop()
		synctest.Wait()
		if since, _ := p.lost(); !looks || !since.IsZero() {
			t.Errorf("when nobody listens any more, whoever waited looks: %v; the silence is one since %v", looks, since)
		}
		leave()
		listening.Wait()
	})
}

// A silence that is over before whoever looks was told of it ends the look too, as what it has seen is from before.
func TestPulseAfterShortSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(pulse)
		ctx, stop := context.WithCancel(t.Context())
		looks := 0
		var looking sync.WaitGroup
		looking.Go(func() {
			for ctx.Err() == nil {
				p.whileHeard(ctx, func(ctx context.Context) {
					looks++
					<-ctx.Done()
				})
			}
		})
		synctest.Wait()
		p.mu.Lock()
		p.silent = true
		p.mu.Unlock()
		p.note(nil)
		synctest.Wait()
		if looks != 2 {
			t.Errorf("after a short silence %d looks have begun; want a second one", looks)
		}
		stop()
		looking.Wait()
	})
}
