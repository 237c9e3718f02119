package postgres

import (
	"testing"
	"time"
)

// Who is far from the head is so if the line moves slowly, and knows that only after a while.
func TestFar(t *testing.T) {
	const ttl = 8 * time.Second
	type look struct {
		depth int
		after time.Duration
		far   bool
	}
	for name, looks := range map[string][]look{
		"near":                      {{near - 1, 0, false}, {near - 1, ttl / 4, false}},
		"at rest":                   {{100, 0, false}, {100, ttl / 4, true}, {100, ttl / 2, true}},
		"woken before it knows":     {{100, 0, false}, {100, ttl / 8, false}, {100, ttl / 8, true}},
		"the line moves slowly":     {{40, 0, false}, {32, ttl / 4, true}, {26, ttl / 4, true}},
		"the line moves fast":       {{40, 0, false}, {30, ttl / 4, false}, {20, ttl / 4, false}, {20, ttl / 4, true}},
		"it moves fast of a sudden": {{256, 0, false}, {256, ttl / 4, true}, {150, ttl / 2, false}},
		"it comes near":             {{20, 0, false}, {20, ttl / 4, true}, {near - 1, ttl / 4, false}},
	} {
		f, now := &far{ttl: ttl}, time.Now()
		for i, l := range looks {
			now = now.Add(l.after)
			if f.see(l.depth, now); f.now != l.far {
				t.Errorf("%s: far is %t after look %d, want %t", name, f.now, i+1, l.far)
			}
		}
	}
}
