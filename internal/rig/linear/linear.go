// Package linear has the test of the histories of a driver; see package conformance/linear.
package linear

import (
	"flag"
	"testing"
	"time"

	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/linear"
)

var howLong = flag.Duration("histories", 4*time.Second, "how long histories are recorded on each coordinator")

// Run records histories on the coordinator of h, and fails the test unless each of them fits an order. Another
// run may be under way there.
func Run(t *testing.T, h conformance.Harness) {
	began := time.Now()
	all, err := linear.Record(t.Context(), h, &linear.Options{For: *howLong, Log: t.Logf})
	recorded := time.Since(began)
	if err != nil {
		t.Error(err)
	}
	for _, history := range all {
		t.Log(history)
		if err := history.Check(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("recorded for %v, judged in %v", recorded.Round(time.Millisecond), (time.Since(began) - recorded).Round(time.Millisecond))
}
