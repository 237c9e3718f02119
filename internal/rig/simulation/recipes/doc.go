// Package recipes has a test that runs the recipes, such as locks, through random schedules of
// faults in virtual time, as package simulation does with elections.
//
// Processes, each a client of package memory, use one recipe together. They crash, are cut off,
// are slow, and lose requests and answers; operators end their sessions; the coordinator pauses
// and restarts. At each moment what the recipe promises must hold. Then all faults end, and within
// [Bound] everybody gets what it waits for. At the end all stop, and no session is left.
//
//	go test ./internal/rig/simulation/recipes -rapid.seed=0 -rapid.checks=100000
//
// draws new schedules; without flags they are the same ones each time.
package recipes

import "time"

// The times of every schedule.
const (
	TTL = 10 * time.Second
	// MaxDelay is the longest that a message takes in one direction.
	MaxDelay = 2 * time.Second
	// Bound is the time within which everybody makes progress once all faults have ended:
	// the sessions of those that crashed end, what was on its way arrives, a retry waits for two
	// seconds at most, and a client that has lost its turn looks again.
	Bound = 4 * TTL
)
