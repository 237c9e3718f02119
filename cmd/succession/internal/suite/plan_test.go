package suite

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/conformance"
)

func TestEstimate(t *testing.T) {
	known := make(map[string]bool)
	for _, r := range conformance.Rules() {
		known[r.ID] = true
	}
	for id := range sessionTimes {
		if !known[id] {
			t.Errorf("sessionTimes has %q, which is no rule", id)
		}
	}
	quick, slow := conformance.Rule{ID: "quick"}, conformance.Rule{ID: "L6.bound"} // two session times
	for _, tt := range []struct {
		rules    []conformance.Rule
		parallel int
		want     time.Duration
	}{
		{[]conformance.Rule{quick}, 1, besides},
		{[]conformance.Rule{quick}, 4, besides},
		{[]conformance.Rule{slow}, 4, 20*time.Second + besides},
		{[]conformance.Rule{slow, slow}, 1, 40*time.Second + 2*besides},
	} {
		if got := estimate(tt.rules, 8*time.Second, 4*time.Second, tt.parallel); got != tt.want {
			t.Errorf("%d rules, %d at once: %v, want %v", len(tt.rules), tt.parallel, got, tt.want)
		}
	}
}
