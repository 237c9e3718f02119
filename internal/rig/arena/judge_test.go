//go:build linux

package arena

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/history"
)

// Only what a bound of time finds, at a time that was disturbed, is not judged.
func TestJudged(t *testing.T) {
	answer := make(chan struct{})
	began := time.Now()
	a := &Arena{Options: Options{Out: io.Discard}, Now: func() time.Duration { return time.Since(began) + time.Hour }}
	a.monitor = calm.Watch(calm.Limit(0), func(ctx context.Context) error {
		<-answer
		return nil
	})
	for !a.monitor.Since(began).Disturbed() {
		time.Sleep(time.Millisecond)
	}
	close(answer)
	for !a.monitor.Between(began, time.Now()).Disturbed() { // the answer has not been noted yet
		time.Sleep(time.Millisecond)
	}
	a.monitor.Close()
	now := a.Now()
	violation := func(rule history.Rule, from, to time.Duration) history.Violation {
		return history.Violation{Rule: rule, From: from, To: to}
	}
	want := []history.Violation{
		violation(history.Overlap, time.Hour, now),
		violation(history.Vacancy, 0, 30*time.Minute),
		violation(Stuck, time.Hour, now),
	}
	got, rest := a.Judged(append(slices.Clone(want), violation(history.Vacancy, time.Hour, now)), map[history.Rule]time.Duration{
		history.Vacancy: 0, Stuck: time.Hour,
	})
	if !slices.EqualFunc(got, want, func(a, b history.Violation) bool { return a.Rule == b.Rule && a.From == b.From }) {
		t.Errorf("judged are %v, want %v", got, want)
	}
	if len(rest) != 1 {
		t.Errorf("not judged are %v, want one vacancy", rest)
	}
}
