//go:build !race

package simulation_test

// schedules is how many there are of each kind, and for TestReplay, where nobody asks for
// another number.
const schedules = 1000
