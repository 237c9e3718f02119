//go:build linux

package chaos

import (
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
		for i, s := range steps {
			drawn[s.Kind]++
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
	}
	for _, k := range kinds {
		if drawn[k.name] == 0 {
			t.Errorf("%s is never drawn", k.name)
		}
	}
	t.Logf("%v in 100 schedules of %v", drawn, ground.length)

	ground.can = func(n need) bool { return n == nothing }
	for _, s := range schedule(1, ground) {
		if kindOf(s.Kind).needs != nothing {
			t.Errorf("%v is drawn where it cannot be done", s)
		}
	}
}
