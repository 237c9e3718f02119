package run

import (
	"strings"
	"testing"
	"time"
)

func TestGraceFor(t *testing.T) {
	for _, tt := range []struct {
		name             string
		asked, ttl, most time.Duration
		want             time.Duration
		wrong            []string // what the error must say; nil for none
	}{
		{"default without a session time", 0, 0, 0, 5 * time.Second, nil},
		{"default with a session time", 0, 10 * time.Second, 5 * time.Second, 2 * time.Second, nil},
		{"default of a session that can keep little", 0, 10 * time.Second, time.Second, time.Second, nil},
		{"asked for without a session time", time.Hour, 0, 0, time.Hour, nil},
		{"asked for", 3 * time.Second, 10 * time.Second, 5 * time.Second, 3 * time.Second, nil},
		{"all that it can keep", 3 * time.Second, 9 * time.Second, 3 * time.Second, 3 * time.Second, nil},
		{"a little more", 3*time.Second + 1, 9 * time.Second, 3 * time.Second, 0, []string{"at most 3s"}},
		{"too long", 8 * time.Second, 10 * time.Second, 10 * time.Second / 3, 0, []string{"8s", "10s", "leaves 2s", "at most 3.333s"}},
		{"longer than the session", time.Minute, 10 * time.Second, 5 * time.Second, 0, []string{"1m0s", "leaves 0s"}},
		{"negative", -time.Second, 10 * time.Second, 5 * time.Second, 0, []string{"-1s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := graceFor(tt.asked, tt.ttl, tt.most)
			if (err != nil) != (tt.wrong != nil) || got != tt.want {
				t.Fatalf("graceFor(%v, %v, %v) = %v, %v; want %v", tt.asked, tt.ttl, tt.most, got, err, tt.want)
			}
			for _, s := range tt.wrong {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q does not say %q", err, s)
				}
			}
		})
	}
}

func TestKillIn(t *testing.T) {
	const grace = time.Second
	told := time.Now()
	for _, tt := range []struct {
		name     string
		since    time.Duration // since the command was told to stop
		deadline time.Duration // of the session, from then; 0 for none
		want     time.Duration
	}{
		{"no deadline", 0, 0, grace},
		{"no deadline, later", 400 * time.Millisecond, 0, 600 * time.Millisecond},
		{"no deadline, time is up", 2 * grace, 0, 0},
		{"deadline far ahead", 0, time.Hour, grace},
		{"deadline after the grace time", 0, grace, 900 * time.Millisecond},
		{"deadline within the grace time", 0, 500 * time.Millisecond, 400 * time.Millisecond},
		{"deadline has passed", 0, -time.Second, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var deadline time.Time
			if tt.deadline != 0 {
				deadline = told.Add(tt.deadline)
			}
			if got := killIn(told.Add(tt.since), told, deadline, grace); got != tt.want {
				t.Errorf("killIn = %v, want %v", got, tt.want)
			}
		})
	}
}
