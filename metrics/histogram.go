package metrics

import "slices"

// The upper bounds of the buckets. The slack is a part of the session time, the others are in
// seconds; a deadline that had passed falls into the first bucket. A candidate may lead within a
// round trip, or after days in line.
var (
	slackBounds     = []float64{0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1}
	heartbeatBounds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	campaignBounds  = []float64{0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200, 43200, 86400}
)

// A Histogram counts the values that were seen, by size.
type Histogram struct {
	// Counts says how many values are in each bucket and in none before it. The buckets are
	// those of [Family] Bounds, and one more for all values that are larger.
	Counts []uint64
	// Sum is the sum of all values.
	Sum float64
}

// Count is how many values there are.
func (h *Histogram) Count() uint64 {
	n := uint64(0)
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// add counts v in one of the buckets with the bounds.
func (h *Histogram) add(bounds []float64, v float64) {
	if h.Counts == nil {
		h.Counts = make([]uint64, len(bounds)+1)
	}
	i, _ := slices.BinarySearch(bounds, v) // a value that equals a bound belongs below it
	h.Counts[i]++
	h.Sum += v
}

// copy returns a copy of h for the bounds, which shares nothing with h.
func (h *Histogram) copy(bounds []float64) *Histogram {
	c := &Histogram{Counts: make([]uint64, len(bounds)+1), Sum: h.Sum}
	copy(c.Counts, h.Counts)
	return c
}
