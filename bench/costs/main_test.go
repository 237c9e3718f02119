package main

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	var times []time.Duration
	for i := range 100 {
		times = append(times, time.Duration(100-i))
	}
	for q, want := range map[float64]time.Duration{0.01: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := quantile(times, q); got != want {
			t.Errorf("quantile %v of 1 to 100 is %d, want %d", q, got, want)
		}
	}
	if got := quantile(times[:1], 0.5); got != 100 {
		t.Errorf("the median of one time is %d, want that time", got)
	}
}

// Every library hands over, each on a real server.
func TestHandover(t *testing.T) {
	var out strings.Builder
	if err := command(t.Context(), []string{"-n", "3", "-times", "4"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, l := range libraries {
		row := regexp.MustCompile(`\| ` + titles[l.coordinator] + ` \| ` + regexp.QuoteMeta(l.name) + ` \| 3 \| \d+\.\d\d ms `)
		if !row.MatchString(out.String()) {
			t.Errorf("no row of %s on %s in\n%s", l.name, l.coordinator, out.String())
		}
	}
}
