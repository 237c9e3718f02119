//go:build linux && race

package arenatest

// atOnce is how many runs go on at once: with the race detector each takes the better part of a processor.
const atOnce = 3
