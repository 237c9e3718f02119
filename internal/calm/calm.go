// Package calm measures how busy the machine was while something was tested.
//
// A test of what must happen soon, or of what something costs, says nothing on a machine that is too
// busy: timers fire late, the server answers late, sessions end that nobody has neglected. So a
// [Monitor] measures two things beside the test, and apart from its outcome: how late timers of this
// process fire, and how long a plain request takes, to a server that the test does not touch: one at worst, and several in a row.
// The [Reading] of the time that a test took says whether the machine was calm. Whoever runs rules again and again, such as package
// conformance, repeats what was disturbed, whether it has passed or failed. A test that runs once has a
// [Stopwatch]: in time on a busy machine is in time, and late on a busy machine is not judged, and said.
// What must never happen is asserted without this package.
package calm

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// Tries is how often a test is run at most.
const Tries = 3

const (
	tick     = 5 * time.Millisecond  // of the timer whose lateness is measured
	bearable = 25 * time.Millisecond // how late a timer may be when a test begins
	patience = 20 * time.Second      // for how long a test waits for that
	budget   = 4 * time.Minute       // for how long all tests of a process do: a third of what ./test gives it
)

// A Monitor measures until it is closed. Its methods are safe for concurrent use. A nil *Monitor
// measures nothing, and finds every time calm.
type Monitor struct {
	limit   time.Duration
	request func(context.Context) error

	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	asleep  time.Time // since when a timer runs, or zero
	late    []sample
	answers []sample
	means   []sample           // of each answer and those before it; see Row
	row     [Row]time.Duration // the last answers, in turn
	asked   int                // how many requests have been answered
	began   time.Time          // of the request that is under way, or zero
}

// Row is how many requests a test makes within its shortest bound, one after the other: it may open a session,
// join, look and be told.
const Row = 10

// A sample is something that took too long.
type sample struct {
	over time.Time
	took time.Duration
}

// A Reading is what a Monitor has measured in some time.
type Reading struct {
	Late   time.Duration // by how much a timer was late at worst
	Answer time.Duration // how long a request took at worst; 0 if none took long
	Mean   time.Duration // how long each of Row requests in a row took, on average, at worst; 0 if that was not long
	Limit  time.Duration // for Late
}

// Disturbed reports whether the machine was too busy to judge anything by time.
func (r Reading) Disturbed() bool {
	return r.Late > r.Limit || r.Answer > r.worst() || r.Mean > r.mean()
}

// worst is the limit for Answer: an eighth of the test's shortest bound (see the func Limit). A driver sends heartbeats, and repeats
// requests, at intervals twice as long. On a machine with few processors one answer in a thousand takes a good part of that.
func (r Reading) worst() time.Duration { return 2 * r.Limit }

// mean is the limit for Mean. A test waits for the sum of its requests, so it does not do that none took too long.
// If each of Row took half of Limit, all took a third of the test's shortest bound (see the func Limit): the server that
// the test gives work may be three times as slow as the one that is measured.
func (r Reading) mean() time.Duration { return r.Limit / 2 }

// String returns the figures.
func (r Reading) String() string {
	s := fmt.Sprintf("timers up to %v late", r.Late.Round(time.Millisecond))
	if r.Answer > 0 {
		return s + fmt.Sprintf(", a plain request answered after up to %v, %d in a row after up to %v each; calm is at most %v, %v, and %v each",
			r.Answer.Round(time.Millisecond), Row, r.Mean.Round(time.Millisecond),
			r.Limit.Round(time.Millisecond), r.worst().Round(time.Millisecond), r.mean().Round(time.Millisecond))
	}
	return fmt.Sprintf("%s; calm is at most %v", s, r.Limit.Round(time.Millisecond))
}

// Limit returns the limit for a test whose shortest bound is d.
func Limit(d time.Duration) time.Duration { return max(d/16, bearable) }

// Watch starts a Monitor. A timer, or an answer, that is late by more than limit disturbs. The func
// request makes a small write to a server that the test does not touch, and returns when it has
// been answered; it is called again and again, one call at a time. Nil measures timers alone. In a
// testing/synctest bubble nothing is late, and Watch returns nil.
func Watch(limit time.Duration, request func(context.Context) error) *Monitor {
	if Virtual() {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &Monitor{limit: limit, request: request, stop: cancel}
	m.running.Go(func() { m.timers(ctx) })
	if request != nil {
		m.running.Go(func() { m.requests(ctx) })
	}
	return m
}

// Close stops the Monitor, and waits for the request that is under way.
func (m *Monitor) Close() {
	if m != nil {
		m.stop()
		m.running.Wait()
	}
}

// Virtual reports whether the caller is in a testing/synctest bubble, whose clock begins with the
// year 2000.
func Virtual() bool { return time.Now().Year() < 2020 }

// note keeps what took long, and forgets the rest.
func (m *Monitor) note(to *[]sample, over time.Time, took time.Duration) {
	if m.long(took) {
		*to = append(*to, sample{over, took})
	}
}

// answered notes an answer, and the mean of it and those before it.
func (m *Monitor) answered(over time.Time, took time.Duration) {
	m.note(&m.answers, over, took)
	m.row[m.asked%Row] = took
	m.asked++
	var sum time.Duration
	for _, d := range m.row {
		sum += d
	}
	m.note(&m.means, over, sum/Row)
}

func (m *Monitor) long(d time.Duration) bool { return d > m.limit/8 }

func (m *Monitor) timers(ctx context.Context) {
	for ctx.Err() == nil {
		at := time.Now()
		m.mu.Lock()
		m.asleep = at
		m.mu.Unlock()
		time.Sleep(tick)
		m.mu.Lock()
		m.note(&m.late, time.Now(), time.Since(at)-tick)
		m.mu.Unlock()
	}
}

func (m *Monitor) requests(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		at := time.Now()
		m.mu.Lock()
		m.began = at
		m.mu.Unlock()
		_ = m.request(ctx) // a refusal is an answer
		m.mu.Lock()
		m.began = time.Time{}
		if ctx.Err() == nil {
			m.answered(time.Now(), time.Since(at))
		}
		m.mu.Unlock()
		pause.Reset(cmp.Or(m.limit/5, bearable))
	}
}

// Since returns what was measured from the instant until now. In a testing/synctest bubble everything is
// in time.
func (m *Monitor) Since(from time.Time) Reading {
	if m == nil || Virtual() {
		return Reading{}
	}
	r := m.Between(from, time.Now())
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.asleep.IsZero() { // it may be due, and not have been noticed yet
		r.Late = max(r.Late, time.Since(m.asleep)-tick)
	}
	if waits := time.Since(m.began); !m.began.IsZero() && m.long(waits) {
		r.Answer = max(r.Answer, waits)
	}
	return r
}

// Between returns what was measured from one instant to another, without what is still under way.
func (m *Monitor) Between(from, to time.Time) Reading {
	if m == nil || Virtual() {
		return Reading{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return Reading{
		Limit: m.limit, Late: worst(m.late, from, to), Answer: worst(m.answers, from, to), Mean: worst(m.means, from, to),
	}
}

// worst returns the longest sample that was not over at from, and had begun by to.
func worst(samples []sample, from, to time.Time) (d time.Duration) {
	for _, s := range samples {
		if s.over.After(from) && !s.over.Add(-s.took).After(to) {
			d = max(d, s.took)
		}
	}
	return d
}

// beginning has what is left of the patience of the process. Who begins takes it, and gives back what it has not used: tests that would
// begin together begin one after the other.
var beginning = make(chan time.Duration, 1)

func init() { beginning <- budget }

// Await blocks until timers of this process have fired in time for a while, ctx ends, or the patience of the test or of the process does.
// So where many tests could run at once, as many do as the machine can bear. A test that was disturbed before
// waits for a longer calm.
func Await(ctx context.Context, disturbed bool) {
	if Virtual() {
		return
	}
	var left time.Duration
	select {
	case left = <-beginning:
	case <-ctx.Done():
		return
	}
	window := 50 * time.Millisecond
	if disturbed {
		window = 500 * time.Millisecond
	}
	own := min(patience, left)
	beginning <- left - own + await(ctx, own, func() time.Duration { return lateness(window) })
}

// await blocks until late is bearable, ctx ends, or the patience does. It returns how much patience is left.
func await(ctx context.Context, patience time.Duration, late func() time.Duration) time.Duration {
	for patience > 0 && ctx.Err() == nil {
		began := time.Now()
		if late() <= bearable {
			break
		}
		patience -= time.Since(began)
	}
	return patience
}

// lateness measures timers for that long, or until one is not bearable. It returns by how much one was late
// at worst.
func lateness(window time.Duration) (worst time.Duration) {
	const tick = 2 * time.Millisecond
	for began := time.Now(); worst <= bearable && time.Since(began) < window; {
		asked := time.Now()
		time.Sleep(tick)
		worst = max(worst, time.Since(asked)-tick)
	}
	return worst
}
