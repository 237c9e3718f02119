package postgres

import (
	"strings"
	"testing"
)

// A waiter that has gone while LISTEN was on its way leaves a channel that is given up with the next change, and not kept for ever.
func TestListenOfWhoHasGone(t *testing.T) {
	var l listener
	leave := l.enter(make(chan struct{}, 1), []string{"m1"})
	script, done := l.changes("s")
	if !strings.Contains(script, `LISTEN "m1"`) {
		t.Fatalf("to listen to m1 it sends %q", script)
	}
	leave()
	done()
	defer l.enter(make(chan struct{}, 1), []string{"m2"})()
	if script, _ := l.changes("s"); !strings.Contains(script, `UNLISTEN "m1"`) || !strings.Contains(script, `LISTEN "m2"`) {
		t.Errorf("nobody waits for m1 any more, and it sends %q", script)
	}
	// Where the connection breaks in between, the next one never listens to it.
	l.deaf()
	if script, _ := l.changes("s"); strings.Contains(script, "m1") {
		t.Errorf("on another connection it sends %q", script)
	}
}
