package kit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/clock"
)

// A session is due a twentieth after its time, and then once in a quarter of its time as long as it is there.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 20 * time.Second
		s := kit.Silence{Since: clock.Now()}
		for _, tt := range []struct {
			after, next time.Duration
			due         bool
		}{
			{0, 21 * time.Second, false},
			{20 * time.Second, time.Second, false},
			{time.Second, 5 * time.Second, true},
			{time.Second, 4 * time.Second, false},
			{4 * time.Second, 5 * time.Second, true},
			{time.Hour, 5 * time.Second, true},
		} {
			time.Sleep(tt.after)
			if next, due := s.Due(clock.Now(), ttl); next.Round(time.Millisecond) != tt.next || due != tt.due {
				t.Errorf("%v later: due %t, again after %v; want %t and %v", tt.after, due, next, tt.due, tt.next)
			}
		}
	})
}
