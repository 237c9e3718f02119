//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// The same on a coordinator with sessions: kill -9 leaves the member until its
// session is over, and a cut ends the term before that.
func TestRunOnZooKeeper(t *testing.T) {
	t.Parallel()
	zk := coordtest.SharedZooKeeper(t)
	proxy := coordtest.NewProxy(t, zk.Addrs()[0])
	name := fmt.Sprintf("command-%d", time.Now().UnixNano())
	url := "zookeeper://" + zk.Addrs()[0] + "/?ttl=8s&connect=30s"
	cutURL := "zookeeper://" + proxy.Addr() + "/?ttl=8s&connect=30s"
	const script = `trap 'echo stopping; exit' TERM; echo ready; while :; do sleep 0.005; done`

	first := start(t, "--url", url, "run", "--id", "web-1", name, "--", "sh", "-c", script)
	first.line("ready")
	t1 := first.event("started").Token
	second := start(t, "--url", cutURL, "run", "--grace", "2s", "--id", "web-2", name, "--", "sh", "-c", script)
	if e := second.event("waiting"); e.Behind != "web-1" {
		t.Errorf("waits behind %q, want web-1", e.Behind)
	}
	if code, out, _ := result(t, "--url", url, "--timeout", "1m", "leader", name); code != 0 || out != "web-1\n" {
		t.Errorf("leader: exit code %d, output %q", code, out)
	}
	first.signal(9)
	first.nothingLeft()

	second.line("ready")
	t2 := second.event("started").Token
	if t2 <= t1 {
		t.Errorf("token %d after %d", t2, t1)
	}
	third := start(t, "--url", url, "run", "--id", "web-3", name, "--", "sh", "-c", script)
	third.event("waiting")
	proxy.Cut()
	second.line("stopping")
	if e := second.event("lost"); !strings.Contains(e.Cause, "deadline") {
		t.Errorf("cause %q", e.Cause)
	}
	ended := second.event("ended")
	third.line("ready")
	if t3 := third.event("started").Token; t3 <= ended.Token {
		t.Errorf("token %d after %d", t3, ended.Token)
	}
	second.exits(ui.ExitLost)
	if code, out, stderr := result(t, "--url", url, "--timeout", "1m", "resign", name); code != 0 || !strings.HasPrefix(out, "web-3 resigned") {
		t.Errorf("resign: exit code %d, output %q, standard error %q", code, out, stderr)
	}
	third.exits(ui.ExitLost)
}
