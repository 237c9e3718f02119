package calm

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwait(t *testing.T) {
	tests := []struct {
		name string
		busy time.Duration // how long the machine is
		want time.Duration // when the rule begins
	}{
		{"idle", 0, time.Second},
		{"busy at first", 3 * time.Second, 4 * time.Second},
		{"busy for good", time.Hour, patience},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				left := await(t.Context(), patience, func() time.Duration {
					time.Sleep(time.Second)
					if time.Since(began) <= tt.busy {
						return 2 * bearable
					}
					return bearable / 2
				})
				if took := time.Since(began); took != tt.want {
					t.Errorf("began after %v, want %v", took, tt.want)
				}
				if want := patience - min(tt.busy, patience); left != want {
					t.Errorf("a patience of %v is left, want %v", left, want)
				}
			})
		})
	}
}

func TestAwaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		began := time.Now()
		await(ctx, patience, func() time.Duration { time.Sleep(time.Second); return time.Hour })
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("returned after %v, want 2s", took)
		}
	})
}

// A request that takes long disturbs while it is under way and from then on, and not what begins later.
func TestSlowRequest(t *testing.T) {
	begun, answer := make(chan struct{}), make(chan error)
	m := Watch(20*time.Millisecond, func(context.Context) error {
		begun <- struct{}{}
		return <-answer
	})
	began := time.Now()
	<-begun
	time.Sleep(50 * time.Millisecond)
	if r := m.Since(began); !r.Disturbed() || r.Answer < 50*time.Millisecond {
		t.Errorf("a request has not been answered for 50 ms, and the reading is %v", r)
	}
	answer <- nil
	<-begun
	if r := m.Since(began); r.Answer < 50*time.Millisecond {
		t.Errorf("a request took 50 ms, and the reading is %v", r)
	}
	if r := m.Since(time.Now()); r.Answer >= 50*time.Millisecond {
		t.Errorf("a request took 50 ms before this reading, which is %v", r)
	}
	go func() { answer <- nil }()
	closes(m, begun, answer)
}

// A Stopwatch measures how long a write takes, too.
func TestStartWrites(t *testing.T) {
	m := Start(t).monitor
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(tick) {
		m.mu.Lock()
		answered := m.asked
		m.mu.Unlock()
		if answered > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no write has been measured")
		}
	}
}

// closes closes the monitor, whose requests are answered meanwhile.
func closes(m *Monitor, begun chan struct{}, answer chan error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Close()
	}()
	for {
		select {
		case <-begun:
		case answer <- nil:
		case <-done:
			return
		}
	}
}

func TestLateTimer(t *testing.T) {
	m := &Monitor{limit: 20 * time.Millisecond}
	now := time.Now()
	m.note(&m.late, now.Add(-70*time.Millisecond), 30*time.Millisecond)
	if r := m.Between(now.Add(-time.Hour), now.Add(-110*time.Millisecond)); r.Disturbed() {
		t.Errorf("a timer was late from 100 ms before now on, and the reading up to 110 ms before now is %v", r)
	}
	for _, tt := range []struct {
		from time.Duration // before now
		want bool
	}{{110 * time.Millisecond, true}, {80 * time.Millisecond, true}, {60 * time.Millisecond, false}} {
		if r := m.Since(now.Add(-tt.from)); r.Disturbed() != tt.want {
			t.Errorf("a timer was 30 ms late at 100 ms before now, and the reading from %v on is %v", tt.from, r)
		}
	}
}

// Answers of which none took too long disturb, if they came so late one after the other that what a test asks for cannot be had in time.
func TestSlowInSum(t *testing.T) {
	const limit = 125 * time.Millisecond
	always := func(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }
	for _, tt := range []struct {
		name string
		took func(i int) time.Duration
		want bool
	}{
		{"all nearly at the limit", always(limit * 9 / 10), true},
		{"all at half of the limit", always(limit / 2), false},
		{"one nearly at the limit for one", func(i int) time.Duration { return map[bool]time.Duration{i == 50: limit * 19 / 10}[true] }, false},
		{"one above the limit for one", func(i int) time.Duration { return map[bool]time.Duration{i == 50: limit * 21 / 10}[true] }, true},
		{"a few in the middle", func(i int) time.Duration { return map[bool]time.Duration{50 <= i && i < 56: limit * 9 / 10}[true] }, true},
	} {
		m, began := &Monitor{limit: limit}, time.Now().Add(-time.Hour)
		at := began
		for i := range 100 {
			at = at.Add(limit/5 + tt.took(i))
			m.answered(at, tt.took(i))
		}
		if r := m.Since(began); r.Disturbed() != tt.want {
			t.Errorf("%s: disturbed is %v, want %v: %v", tt.name, r.Disturbed(), tt.want, r)
		}
		if r := m.Since(at); r.Disturbed() {
			t.Errorf("%s: what begins later is disturbed: %v", tt.name, r)
		}
	}
}

// In a bubble nothing is late, whatever the machine does.
func TestVirtual(t *testing.T) {
	if Virtual() {
		t.Error("this is no bubble")
	}
	m := &Monitor{limit: 20 * time.Millisecond}
	m.note(&m.late, time.Now(), time.Hour)
	synctest.Test(t, func(t *testing.T) {
		if !Virtual() {
			t.Error("this is a bubble")
		}
		if r := m.Since(time.Now()); r.Disturbed() {
			t.Errorf("in a bubble the reading is %v", r)
		}
		if Watch(time.Second, nil) != nil {
			t.Error("Watch measures in a bubble")
		}
	})
}

// failures is a test that notes whether it has failed.
type failures struct {
	testing.TB
	failed, logged int
}

func (f *failures) Helper()               {}
func (f *failures) Logf(string, ...any)   { f.logged++ }
func (f *failures) Errorf(string, ...any) { f.failed++ }

func TestNotJudged(t *testing.T) {
	for _, late := range []time.Duration{bearable, 2 * bearable} {
		f, m := &failures{TB: t}, new(Monitor)
		m.note(&m.late, time.Now(), late)
		w := &Stopwatch{t: f, monitor: m, began: time.Now().Add(-time.Second)}
		if got, want := w.NotJudged(0, "it"), late > bearable; got != want || (f.logged > 0) != want || f.failed > 0 {
			t.Errorf("%v late: not judged is %v, with %d lines and %d failures", late, got, f.logged, f.failed)
		}
	}
}

func TestStopwatch(t *testing.T) {
	const bound = 800 * time.Millisecond
	for _, tt := range []struct {
		name           string
		took, late     time.Duration
		failed, logged int
	}{
		{"in time", bound, 0, 0, 0},
		{"in time on a busy machine", bound, time.Second, 0, 0},
		{"late", bound + 1, 50 * time.Millisecond, 1, 0},
		{"late on a busy machine", bound + 1, 51 * time.Millisecond, 0, 1},
	} {
		f := &failures{TB: t}
		(&Stopwatch{t: f}).judge(tt.took, bound, Reading{Late: tt.late}, "it")
		if f.failed != tt.failed || f.logged != tt.logged {
			t.Errorf("%s: %d failures and %d lines, want %d and %d", tt.name, f.failed, f.logged, tt.failed, tt.logged)
		}
	}
}
