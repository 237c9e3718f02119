//go:build linux

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// Whoever interrupts a command that waits is told what it has asked for, which stands.
func TestInterruptedRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string // without the election
		said string
	}{
		"pause":   {[]string{"pause", "--wait", "10m"}, "the election is paused, but in front of the gate still stand web-1"},
		"resign":  {[]string{"resign", "--wait", "10m"}, "asked to resign"},
		"drain":   {[]string{"drain", "web-1", "--wait", "10m"}, "asked to resign"},
		"cutover": {[]string{"migrate", "cutover", "--yes", "--wait", "10m"}, "asked"}, // which it may not know yet
		"move":    {[]string{"spread", "move", "reports", "west", "--wait", "10m"}, "the move may be under way"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			east, west := localURL(t), localURL(t)
			leader := start(t, "--url", east, "run", "--grace", "10m", "--id", "web-1", "reports", "--", "sh", "-c", `trap "echo asked" TERM; echo runs; while :; do sleep 0.05; done`)
			leader.line("runs")
			args, asked := tt.args, func() { leader.line("asked") }
			switch name {
			case "drain":
				start(t, "--url", east, "run", "--id", "web-2", "reports", "--", "sleep", "1000").event("waiting")
				args = append(args, "--url", east)
			case "cutover":
				sides := []string{"--from", east, "--to", west}
				if code, _, stderr := here(append([]string{"migrate", "begin", "reports"}, sides...)...); code != 0 {
					t.Fatal(stderr)
				}
				args = append(append(args, "reports"), sides...)
				asked = func() {
					for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
						_, stdout, stderr := here(append([]string{"migrate", "status", "reports"}, sides...)...)
						if strings.HasPrefix(stdout, "reports: asked,") {
							return
						}
						if time.Now().After(deadline) {
							t.Fatalf("it is not asked to cut over: %s%s", stdout, stderr)
						}
					}
				}
			case "move":
				url := "spread:?to=east=" + east + "&to=west=" + west
				if code, _, stderr := here("--url", url, "spread", "put", "reports", "east"); code != 0 {
					t.Fatal(stderr)
				}
				args = append(args, "--url", url)
			default:
				args = append(args, "reports", "--url", east)
			}
			p := start(t, args...)
			asked()
			p.signal(syscall.SIGINT)
			p.exits(130)
			p.rest()
			if said := p.stderr.String(); !strings.Contains(said, tt.said) {
				t.Errorf("it says %q, want %q", said, tt.said)
			}
		})
	}
}
