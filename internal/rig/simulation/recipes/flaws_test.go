//go:build !race

package recipes_test

import (
	"context"
	"testing"

	"github.com/succession-dev/succession/backend"
	"pgregory.net/rapid"
)

// Each flaw is found, and soon: the jitter of what is started beside a process is not drawn from the seed. This tests the rig, so it needs no race detector.
func TestFlaws(t *testing.T) {
	const tries = 2000
	for name, f := range map[string]struct {
		of   string
		flaw func(backend.Session) backend.Session
	}{
		"everybody is first":    {"mutex", func(s backend.Session) backend.Session { return first{s} }},
		"readers and writers":   {"rwmutex", func(s backend.Session) backend.Session { return first{s} }},
		"the deadline is late":  {"mutex", func(s backend.Session) backend.Session { return optimist{s} }},
		"a slot is held longer": {"semaphore", func(s backend.Session) backend.Session { return optimist{s} }},
		"several overlap":       {"several", func(s backend.Session) backend.Session { return first{s} }},
		"an update is lost":     {"value", func(s backend.Session) backend.Session { return careless{s} }},
		"changes go unseen":     {"value", func(s backend.Session) backend.Session { return outdated{s} }},
		"nobody leaves":         {"rwmutex", func(s backend.Session) backend.Session { return forgetful{s} }},
		"claims go unseen":      {"queue", func(s backend.Session) backend.Session { return jealous{s} }},
		"ghosts are counted":    {"barrier", func(s backend.Session) backend.Session { return haunted{s} }},
		"one stays alone":       {"double", func(s backend.Session) backend.Session { return deaf{s} }},
		"the last is not seen":  {"group", func(s backend.Session) backend.Session { return alone{s} }},
		"sources overlap":       {"assign", func(s backend.Session) backend.Session { return first{s} }},
		"machines overlap":      {"hot", func(s backend.Session) backend.Session { return first{s} }},
		"a machine stays on":    {"cold", func(s backend.Session) backend.Session { return optimist{s} }},
		"two are masters":       {"pool", func(s backend.Session) backend.Session { return first{s} }},
		"nobody is preferred":   {"choice", func(s backend.Session) backend.Session { return unpreferring{s} }},
		"a task is forgotten":   {"pool", func(s backend.Session) backend.Session { return stale{s} }},
		"two lead":              {"choice", func(s backend.Session) backend.Session { return first{s} }},
		"a turn is not heard":   {"semaphore", func(s backend.Session) backend.Session { return deaf{s} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gen := rapid.Custom(draw)
			for seed := range tries {
				if broken, _ := within(t, recipes[f.of], gen.Example(seed), f.flaw); len(broken) > 0 {
					t.Logf("schedule %d: %s", seed, broken[0])
					return
				}
			}
			t.Errorf("not found in %d schedules", tries)
		})
	}
}

// stale believes what a server shows that lags behind.
type stale struct{ backend.Session }

func (stale) Refresh(context.Context) error { return nil }
