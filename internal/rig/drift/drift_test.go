//go:build linux

package drift_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/drift"
	"github.com/succession-dev/succession/internal/rig/lane"
)

// A program that waits for a second of its own, by a timer and by package clock, waits for as long as its rate says.
func TestBuild(t *testing.T) {
	lane.All(t)
	program := filepath.Join(t.TempDir(), "second")
	if err := drift.Build(t.Context(), program, "./testdata/second"); err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	for _, tt := range []struct {
		rate  string
		least time.Duration
	}{{"", time.Second}, {"0.5", 2 * time.Second}, {"2", time.Second / 2}} {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), drift.Rate+"="+tt.rate)
		began := watch.From(time.Now()).Began()
		said, err := cmd.CombinedOutput()
		took := time.Since(began)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		// Timers of a fast clock are late, as they wait for what is left by the machine's: so only the clock is read.
		if took < tt.least || tt.rate == "2" && took > 3*tt.least && !watch.NotJudged(tt.least, "a second took %v", took) {
			t.Errorf("at rate %q a second took %v, want %v", tt.rate, took, tt.least)
		}
		if got := strings.TrimSpace(string(said)); got != "1s 1s" {
			t.Errorf("at rate %q the two clocks of the program say %q have passed", tt.rate, got)
		}
	}
}
