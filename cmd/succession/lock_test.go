//go:build linux

package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestLockExitCodes(t *testing.T) {
	url := localURL(t)
	holder := start(t, "--url", url, "lock", "jobs", "--", "sleep", "1000")
	holder.event("started")
	for _, tt := range []struct {
		name string
		args []string
		want int
		says string // on standard error
	}{
		{"free", []string{"other", "--", "sh", "-c", "exit 3"}, 3, `"code":3`},
		{"free, tried", []string{"--try", "other", "--", "true"}, 0, `"resigned"`},
		{"free, shared", []string{"--shared", "other", "--", "true"}, 0, `"resigned"`},
		{"free, slots beside a lock of that name", []string{"--slots", "2", "jobs", "--", "true"}, 0, `"resigned"`},
		{"held, tried", []string{"--try", "jobs", "--", "true"}, 1, "locked by another"},
		{"held, tried by its short name", []string{"-n", "-E", "9", "jobs", "--", "true"}, 9, "locked by another"},
		{"held, not waited for", []string{"--wait", "0", "jobs", "--", "true"}, 1, "locked by another"},
		{"held, shared", []string{"-n", "-s", "jobs", "--", "true"}, 1, "locked by another"},
		{"held, waited for", []string{"--wait", "500ms", "jobs", "--", "true"}, 1, "still locked by another after 500ms"},
		{"no dashes", []string{"jobs", "true"}, 125, "succession lock reports -- CMD"},
		{"no slots", []string{"--slots", "0", "jobs", "--", "true"}, 125, "--slots 0"},
		{"slots and shared", []string{"--slots", "2", "--shared", "jobs", "--", "true"}, 125, "shared"},
		{"impossible code", []string{"-E", "256", "jobs", "--", "true"}, 125, "0 to 255"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, _, stderr := result(t, append([]string{"--url", url, "lock"}, tt.args...)...)
			if code != tt.want || !strings.Contains(stderr, tt.says) {
				t.Errorf("exit code %d, want %d; standard error %q, want %q in it", code, tt.want, stderr, tt.says)
			}
		})
	}
	holder.signal(syscall.SIGTERM)
	holder.exits(143)
}

// Those who share the lock hold it together, and one that does not share it waits for all of
// them. Of a lock with slots each is taken, and no more.
func TestLockTogether(t *testing.T) {
	for _, tt := range []struct {
		name          string
		flags, others []string // of the two that hold it together, and of who waits for them
		leave         int      // how many of the two leave until then
	}{
		{"readers", []string{"--shared"}, nil, 2},
		{"slots", []string{"--slots", "2"}, []string{"--slots", "2"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := localURL(t)
			lock := func(flags []string) *process {
				return start(t, slices.Concat([]string{"--url", url, "lock"}, flags, []string{"jobs", "--", "sleep", "1000"})...)
			}
			end := func(p *process) {
				p.signal(syscall.SIGTERM)
				p.exits(143)
			}
			holders := []*process{lock(tt.flags), lock(tt.flags)}
			for _, p := range holders {
				p.event("started")
			}
			waiter := lock(tt.others)
			waiter.event("waiting")
			for _, p := range holders[:tt.leave] {
				end(p)
			}
			waiter.event("started")
			for _, p := range append(holders[tt.leave:], waiter) {
				end(p)
			}
		})
	}
}
