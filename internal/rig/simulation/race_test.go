//go:build race

package simulation_test

// schedules is how many there are of each kind, and for TestReplay, where nobody asks for
// another number: few, as the race detector makes each ten times as dear.
const schedules = 150
