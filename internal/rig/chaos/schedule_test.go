//go:build linux

package chaos

import (
	"slices"
	"testing"
	"time"
)

func TestSchedule(t *testing.T) {
	ground := terrain{
		candidates: 5, elections: 2, servers: 3, session: 4 * time.Second, vacancy: 10 * time.Second,
		length: 2 * time.Minute, can: func(need) bool { return true },
	}
	drawn := make(map[string]int)
	for seed := range uint64(100) {
		steps := schedule(seed, ground)
		if text(steps) != text(schedule(seed, ground)) {
			t.Fatalf("seed %d is not one schedule", seed)
		}
		if seed > 0 && text(steps) == text(schedule(seed-1, ground)) {
			t.Errorf("seeds %d and %d are the same schedule", seed-1, seed)
		}
		free := time.Duration(0)
		occurs := make(map[string]bool)
		for i, s := range steps {
			drawn[s.Kind]++
			occurs[s.Kind] = true
			if s.At < calm || s.At+s.For > ground.length || i > 0 && s.At < steps[i-1].At {
				t.Errorf("seed %d: %v comes too early or lasts too long", seed, s)
			}
			if kindOf(s.Kind).server == nil {
				continue
			}
			if s.At < free {
				t.Errorf("seed %d: %v hits servers while others are hit", seed, s)
			}
			free = s.At + s.For
		}
		for _, k := range kinds {
			if !occurs[k.name] {
				t.Errorf("seed %d: %s is not drawn", seed, k.name)
			}
		}
	}
	t.Logf("%v in 100 schedules of %v", drawn, ground.length)

	// Whose servers have a store below them, or a standby, has no secrets to change.
	ground.length, ground.can = 0, func(n need) bool { return n != store && n != standby }
	possible := len(slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !ground.can(k.needs) }))
	longest := time.Duration(0)
	for seed := range uint64(100) {
		steps := schedule(seed, ground)
		if len(steps) != possible {
			t.Errorf("seed %d: %d steps in the shortest schedule, and %d kinds are possible", seed, len(steps), possible)
		}
		longest = max(longest, end(steps))
	}
	if longest > 13*ground.session {
		t.Errorf("the shortest schedule takes up to %v", longest)
	}

	ground.can = func(n need) bool { return n == nothing }
	for _, s := range schedule(1, ground) {
		if kindOf(s.Kind).needs != nothing {
			t.Errorf("%v is drawn where it cannot be done", s)
		}
	}
}
