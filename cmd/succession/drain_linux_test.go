package main

import (
	"strings"
	"syscall"
	"testing"
)

// An id is any text, and so is what is asked for. No pattern ends the command in another way than with what it is about.
func TestDrainOddIDs(t *testing.T) {
	url, _ := lineOf(t, "web-1*.é", "web-2")
	for _, pattern := range []string{"\xff", "web-1", "*\xff*x", "web-1*é\xff", "web-1*é*é", "*web-1*web*"} {
		if code, stdout, stderr := here("--url", url, "drain", pattern); code != 0 || !strings.Contains(stdout, "leads nothing") {
			t.Errorf("drain %q: exit code %d: %s%s", pattern, code, stdout, stderr)
		}
	}
	for _, pattern := range []string{"*-1*é", "web-1*.é", "*"} { // it is asked, and stays
		if code, stdout, stderr := here("--url", url, "drain", pattern, "--wait", "1ms"); pattern != "*" && (code != 124 || !strings.Contains(stdout, "was asked to resign")) || pattern == "*" && code != 1 {
			t.Errorf("drain %q: exit code %d: %s%s", pattern, code, stdout, stderr)
		}
	}
}

// Who interrupts a drain has it ask nobody else, and hears nothing of those that have not been asked.
func TestDrainInterrupted(t *testing.T) {
	t.Parallel()
	url := localURL(t)
	stays := func(name string) *process {
		p := start(t, "--url", url, "run", "--grace", "10m", "--id", "web-1", name, "--", "sh", "-c", `trap "echo asked" TERM; echo runs; while :; do sleep 0.05; done`)
		p.line("runs")
		start(t, "--url", url, "run", "--id", "web-2", name, "--", "sleep", "1000").event("waiting")
		return p
	}
	first := stays("audits")
	second := stays("reports")
	drain := start(t, "--url", url, "drain", "web-1", "--wait", "10m")
	first.line("asked")
	drain.signal(syscall.SIGINT)
	drain.exits(130)
	if said, ok := drain.next(); ok {
		t.Errorf("it says %q", said)
	}
	first.signal(syscall.SIGKILL)
	second.signal(syscall.SIGTERM)
	second.line("asked") // by the signal alone, and so not twice
	second.signal(syscall.SIGKILL)
}

// 125 says that the coordinator could not be asked, and not that somebody still leads.
func TestDrainUnreached(t *testing.T) {
	if code, stdout, stderr := here("--url", "etcd://127.0.0.1:1/app", "--timeout", "200ms", "drain", "web-1"); code != 125 {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
