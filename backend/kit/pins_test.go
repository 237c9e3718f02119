package kit_test

import (
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Two calls for one member do not know which of them has pinned it, whichever began first.
func TestPins(t *testing.T) {
	var p kit.Pins
	m, other := backend.Member{Line: "e", Key: "a", Position: 7}, backend.Member{Line: "f", Key: "a", Position: 7}
	for i, want := range []bool{true, false} {
		p.Begin(m)
		if m.Pinned = true; p.Alone(m) != want {
			t.Errorf("after %d calls it is alone: %t", i+1, !want)
		}
	}
	if p.Begin(other); !p.Alone(other) {
		t.Error("the call for a member of another line counts")
	}
}
