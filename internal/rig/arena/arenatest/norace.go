//go:build linux && !race

package arenatest

// atOnce is how many runs go on at once: they wait most of the time.
const atOnce = 8
