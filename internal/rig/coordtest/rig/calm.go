package rig

import (
	"context"
	"testing"
	"time"

	"github.com/succession-dev/succession/conformance"
)

// WhenCalm returns a [conformance.Harness] Wrap: it lets a rule begin when this process
// gets its processors at once, and then asks for the rule's harness. Rules have bounds; on
// a machine that is too busy to keep them they would say nothing of the backend. So where
// many rules run at once, as many do as the machine can bear.
func WhenCalm(harness func(t *testing.T) conformance.Harness) func(*testing.T, func(*testing.T, conformance.Harness)) {
	return func(t *testing.T, rule func(*testing.T, conformance.Harness)) {
		calm(t.Context(), lateness)
		rule(t, harness(t))
	}
}

const (
	bearable = 25 * time.Millisecond
	patience = 20 * time.Second // after which a rule begins nevertheless
)

// looking has room for one: rules that would begin together begin one after the other.
var looking = make(chan struct{}, 1)

// calm blocks until late is bearable, ctx ends, or its patience does.
func calm(ctx context.Context, late func() time.Duration) {
	select {
	case looking <- struct{}{}:
		defer func() { <-looking }()
	case <-ctx.Done():
		return
	}
	for began := time.Now(); late() > bearable && ctx.Err() == nil && time.Since(began) < patience; {
	}
}

// lateness returns by how much a timer was late in the last 50 ms, at worst.
func lateness() (worst time.Duration) {
	const tick = 2 * time.Millisecond
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; {
		asked := time.Now()
		time.Sleep(tick)
		worst = max(worst, time.Since(asked)-tick)
	}
	return worst
}
