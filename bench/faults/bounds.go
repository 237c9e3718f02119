package main

import (
	"fmt"
	"math"
)

// confidence is that of the bounds in the tables.
const confidence = 0.95

// bounds returns between what shares the probability lies of what has happened in k of n runs: those of Clopper and Pearson, which contain it
// with at least the confidence, whatever it is. See C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits
// illustrated in the case of the binomial, Biometrika 26 (1934), 404-413.
func bounds(k, n int) (low, high float64) {
	const tail = (1 - confidence) / 2
	low, high = 0, 1
	if k > 0 { // the share at which k or more would happen in a fortieth of all cases
		low = solve(func(p float64) bool { return 1-atMost(k-1, n, p) < tail })
	}
	if k < n { // and the one at which k or fewer would
		high = solve(func(p float64) bool { return atMost(k, n, p) > tail })
	}
	return low, high
}

// atMost is the probability that what happens with probability p happens at most k times in n.
func atMost(k, n int, p float64) (sum float64) {
	for i := 0; i <= k; i++ {
		all, _ := math.Lgamma(float64(n + 1))
		yes, _ := math.Lgamma(float64(i + 1))
		no, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(all - yes - no + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return sum
}

// solve returns the number between 0 and 1 below which below is true, and above which it is not.
func solve(below func(p float64) bool) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		if middle := (low + high) / 2; below(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// share writes bounds for people.
func share(k, n int) string {
	if n == 0 {
		return "–"
	}
	low, high := bounds(k, n)
	return fmt.Sprintf("%.0f to %.0f %%", 100*low, 100*high)
}
