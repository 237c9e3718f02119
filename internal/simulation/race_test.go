//go:build race

package simulation_test

// schedules is how many there are of each kind where nobody asks for another number: few,
// as the race detector makes each ten times as dear, and each run of the tests pays.
const schedules = 670
