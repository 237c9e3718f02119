package kit_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// A denial lasts too long only if no attempt that was allowed comes between, and each is denied soon after it has begun. What its caller
// gives up soon was neither denied nor allowed.
func TestDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		denied := fmt.Errorf("%w: no right", backend.ErrDenied)
		given, up := context.WithCancel(t.Context())
		up()
		var d kit.Denial
		for i, a := range []struct {
			takes time.Duration
			ctx   context.Context
			err   error
			lasts bool
		}{
			{ttl / 2, t.Context(), denied, false},
			{ttl / 2, t.Context(), denied, false},
			{ttl/2 + 1, t.Context(), denied, true},
			{ttl, t.Context(), nil, false},
			{ttl / 2, t.Context(), denied, false},
			{ttl + 1, t.Context(), denied, false}, // it was allowed meanwhile
			{ttl, t.Context(), denied, false},
			{1, t.Context(), denied, true},
			{1, t.Context(), backend.ErrNotMember, false},
			{1, t.Context(), denied, false},
			{ttl / 2, given, given.Err(), false},
			{ttl, given, given.Err(), false},
			{1, t.Context(), denied, true},
			{ttl + 1, given, given.Err(), false}, // it was allowed
			{1, t.Context(), denied, false},
		} {
			begun := time.Now()
			time.Sleep(a.takes)
			if got := d.Lasts(a.ctx, begun, a.err, ttl); got != a.lasts {
				t.Errorf("%d. attempt: the denial lasts: %t, want %t", i+1, got, a.lasts)
			}
		}
	})
}
