package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// settle is how long a line is left alone before each handover. Nothing tells that all watch.
const settle = 20 * time.Millisecond

// A line is an election in which one library keeps candidates.
type line struct {
	// stand makes a candidate.
	stand func(ctx context.Context) (candidate, error)
	close func()

	won       chan win
	campaigns sync.WaitGroup
}

// A candidate stands in line once.
type candidate struct {
	campaign func() (won time.Time, err error)   // blocks until it leads
	joined   func() error                        // blocks until it stands in line, as far as that can be told
	resign   func() (begun time.Time, err error) // blocks; for a leader
}

// before returns f with the time of its call.
func before(f func() error) func() (time.Time, error) {
	return func() (time.Time, error) {
		at := time.Now()
		return at, f()
	}
}

// after returns f with the time of its return.
func after(f func() error) func() (time.Time, error) {
	return func() (time.Time, error) {
		err := f()
		return time.Now(), err
	}
}

// A win is the end of a campaign.
type win struct {
	leader candidate
	at     time.Time
	err    error
}

// join lets one more candidate join at the end of the line.
func (l *line) join(ctx context.Context) error {
	c, err := l.stand(ctx)
	if err != nil {
		return err
	}
	l.campaigns.Go(func() {
		at, err := c.campaign()
		l.won <- win{c, at, err}
	})
	return c.joined()
}

// next blocks until somebody leads.
func (l *line) next(ctx context.Context) (win, error) {
	select {
	case w := <-l.won:
		return w, w.err
	case <-time.After(time.Minute):
		return win{}, errors.New("nobody leads after a minute")
	case <-ctx.Done():
		return win{}, context.Cause(ctx)
	}
}

// handover makes the leader resign, and returns who leads then and how long that took. The old
// leader has joined again.
func (l *line) handover(ctx context.Context, leader candidate) (candidate, time.Duration, error) {
	time.Sleep(settle)
	var begun time.Time
	resigned := make(chan error, 1)
	go func() {
		var err error
		begun, err = leader.resign()
		resigned <- err
	}()
	w, err := l.next(ctx)
	if err != nil {
		return w.leader, 0, err
	}
	if err := <-resigned; err != nil {
		return w.leader, 0, fmt.Errorf("resign: %w", err)
	}
	return w.leader, w.at.Sub(begun), l.join(ctx)
}
