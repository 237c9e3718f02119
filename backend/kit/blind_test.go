package kit_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Watches are denied for too long only if no other comes between, and each is denied soon after it has begun.
func TestBlind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		denied := fmt.Errorf("%w: no right", backend.ErrDenied)
		var b kit.Blind
		for i, w := range []struct {
			lasts   time.Duration
			err     error
			tooLong bool
		}{
			{ttl / 2, denied, false},
			{ttl / 2, denied, false},
			{ttl/2 + 1, denied, true},
			{ttl, nil, false},
			{ttl / 2, denied, false},
			{ttl + 1, denied, false}, // it was allowed meanwhile
			{ttl, denied, false},
			{1, denied, true},
			{1, backend.ErrNotMember, false},
			{1, denied, false},
		} {
			begun := time.Now()
			time.Sleep(w.lasts)
			if got := b.Watched(begun, w.err, ttl); got != w.tooLong {
				t.Errorf("%d. watch: it lasts too long: %t, want %t", i+1, got, w.tooLong)
			}
		}
	})
}
