package main

import (
	"math"
	"testing"
)

// The bounds are those that tables of Clopper and Pearson have.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{
		{0, 1, 0, 0.975},
		{0, 3, 0, 0.7076},
		{0, 30, 0, 0.1157},
		{3, 3, 0.2924, 1},
		{1, 10, 0.0025, 0.4450},
		{5, 10, 0.1871, 0.8129},
		{9, 30, 0.1473, 0.4940},
		{50, 100, 0.3983, 0.6017},
	} {
		low, high := bounds(c.k, c.n)
		if math.Abs(low-c.low) > 1e-4 || math.Abs(high-c.high) > 1e-4 {
			t.Errorf("%d of %d: from %.4f to %.4f, want %.4f to %.4f", c.k, c.n, low, high, c.low, c.high)
		}
	}
	if got, want := share(9, 30), "15 to 49 %"; got != want {
		t.Errorf("it is written as %q, want %q", got, want)
	}
}
