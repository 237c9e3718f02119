// Package lane is how a test says that ./test is to run it otherwise than the rest of its package. That is the
// first line of the test:
//
//	func TestEveryPair(t *testing.T) {
//		lane.All(t)
//
// Real, Alone and Unraced change nothing but where ./test runs the test: the test runner (internal/build/tools/gotest) looks
// for them in the source, before it builds anything, and fails the run if a test is left over. By itself, go test runs
// all tests but those of All.
package lane

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// All skips the test, or the subtest, where it is not ./test all that runs it: a release needs it, and a commit does
// not.
func All(t testing.TB) {
	t.Helper()
	if os.Getenv("SUCCESSION_TESTS") != "all" {
		t.Skip("lane: only in ./test all; by itself it runs with SUCCESSION_TESTS=all in the environment")
	}
}

// Real says that the test waits for servers or processes, in real time, while others of its package do not wait.
func Real(t testing.TB) {
	t.Helper()
	look(t, "real")
}

// Unraced says that the race detector, with which others of its package are run, finds too little in this test for the
// time that it takes. ./test all runs it with the race detector, too.
func Unraced(t testing.TB) {
	t.Helper()
	look(t, "unraced")
}

// Alone says that the test is to run when nothing else does: it is judged by time, and keeps all processors busy by itself.
func Alone(t testing.TB) {
	t.Helper()
	look(t, "alone")
}

// Counts reports whether the test runner counts what is not judged on a busy machine, over all tests, and fails the run if it is too much.
// Otherwise a test that judges much has to see to that by itself.
func Counts() bool {
	_, isSet := os.LookupEnv("SUCCESSION_LANE")
	return isSet
}

// look fails the test if the test runner has not seen the line that says where it is to be run.
func look(t testing.TB, mark string) {
	t.Helper()
	seen, isSet := os.LookupEnv("SUCCESSION_LANE")
	if isSet && !slices.Contains(strings.Fields(seen), mark) {
		t.Fatalf("lane: the test runner did not see that this test is %s: that must be the first line of a test function", mark)
	}
}
