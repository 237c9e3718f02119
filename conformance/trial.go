package conformance

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/internal/history"
)

// A trial is one run of one rule: its clients, its names, its clock, and what
// went wrong first.
type trial struct {
	h     Harness
	rule  Rule
	line  string // the election of this trial; no other uses it
	began time.Time
	log   timeline
	notes *history.Recorder // what the candidates did, since began

	ctx    context.Context // ends at the first failure and at the watchdog
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	missing  missing // of a rule that cannot be exercised
	failure  string
	timeline []string            // as of the failure
	history  *history.History    // the same; without a failure, as of the end
	broken   []history.Violation // what the judge has found in it
	clients  int
	cleanups []func()
	spawned  sync.WaitGroup
}

// errOver is the cause of a trial's context when the trial is over.
var errOver = errors.New("the trial of the rule is over")

// abort is what a goroutine of a trial panics with to stop.
type abort struct{}

func newTrial(ctx context.Context, h Harness, r Rule) *trial {
	began := time.Now()
	t := &trial{h: h, rule: r, began: began}
	t.notes = history.NewRecorder(func() time.Duration { return time.Since(began) }, nil)
	t.line = h.name(strings.ToLower(r.ID))
	ctx = pprof.WithLabels(ctx, pprof.Labels(trialLabel, t.line))
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	return t
}

// name returns a new name of an election, which begins with the harness's prefix.
func (h *Harness) name(what string) string {
	prefix := h.Prefix
	if prefix == "" {
		prefix = "conformance"
	}
	return fmt.Sprintf("%s/%s-%s", prefix, what, strings.ToLower(rand.Text()[:8]))
}

// run runs the rule, and returns when all that it began has ended, or when that
// takes far too long.
func (t *trial) run() {
	defer t.cancel(errOver)
	done := make(chan struct{})
	go func() {
		defer close(done)
		pprof.SetGoroutineLabels(t.ctx)
		t.guarded(func() {
			if t.able() {
				t.rule.check(t)
			}
		})
		t.cancel(errOver)
		t.spawned.Wait()
		t.clean()
	}()
	watchdog := time.NewTimer(t.h.limit())
	defer watchdog.Stop()
	select {
	case <-done:
		return
	case <-watchdog.C:
	}
	_, stacks := goroutines(trialLabel, t.line)
	t.errorf("the rule was not done after %v; its goroutines:\n%s", t.h.limit(), stacks)
	watchdog.Reset(t.h.recovery())
	select {
	case <-done:
	case <-watchdog.C: // stuck in a call that heeds no context: left behind
	}
}

// guarded runs f, and takes a panic for a failure.
func (t *trial) guarded(f func()) {
	defer func() {
		switch p := recover(); p.(type) {
		case nil, abort:
		default:
			t.errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	f()
}

// errorf notes a failure, of which the first counts, and ends the trial's context.
func (t *trial) errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failure == "" {
		t.failure = fmt.Sprintf(format, args...)
		// Before the trial's end adds to them.
		t.timeline, t.history = t.log.lines(t.began), t.notes.History()
	}
	t.cancel(errors.New("the rule has failed"))
}

// fatalf is errorf, and stops the goroutine.
func (t *trial) fatalf(format string, args ...any) {
	t.errorf(format, args...)
	panic(abort{})
}

// judge checks the history of the trial.
func (t *trial) judge(rules history.Rules, forgiven []history.Rule) {
	broken := slices.DeleteFunc(t.notes.History().Check(rules), func(v history.Violation) bool {
		return slices.Contains(forgiven, v.Rule)
	})
	if len(broken) == 0 {
		return
	}
	t.mu.Lock()
	t.broken = broken
	t.mu.Unlock()
	t.fatalf("%s%s", broken[0], andMore(len(broken)-1))
}

func andMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", and %d more", n)
}

// spawn runs f in a goroutine that the trial waits for.
func (t *trial) spawn(f func()) {
	t.spawned.Go(func() { t.guarded(f) })
}

// cleanup has f called when the trial is over, in reverse order.
func (t *trial) cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

func (t *trial) clean() {
	t.mu.Lock()
	all := t.cleanups
	t.mu.Unlock()
	for i := len(all) - 1; i >= 0; i-- {
		t.guarded(all[i])
	}
}

// within is a context for a call that should take no longer than d.
func (t *trial) within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(t.ctx, d, fmt.Errorf("not done after %v", d))
}

// tick is how often a poll looks.
func (t *trial) tick() time.Duration {
	return min(max(t.h.TTL/200, time.Millisecond), 20*time.Millisecond)
}

// poll waits until cond holds, at most for d; what says what is waited for.
func (t *trial) poll(d time.Duration, what string, cond func() bool) {
	ctx, cancel := t.within(d)
	defer cancel()
	tick := time.NewTicker(t.tick())
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			if cond() {
				return
			}
			t.fatalf("%s: %v", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// steady looks at cond for d, and fails when it does not hold.
func (t *trial) steady(d time.Duration, what string, cond func() bool) {
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(t.tick())
	defer tick.Stop()
	for {
		if !cond() {
			t.fatalf("%s", what)
		}
		select {
		case <-end.C:
			return
		case <-t.ctx.Done():
			t.fatalf("%s: %v", what, context.Cause(t.ctx))
		case <-tick.C:
		}
	}
}

// async runs f in a goroutine of the trial and returns where its result arrives.
func (t *trial) async(f func() error) <-chan error {
	result := make(chan error, 1)
	t.spawn(func() { result <- f() })
	return result
}

// await returns the result that arrives on c within d.
func await[T any](t *trial, c <-chan T, d time.Duration, what string) T {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var v T
	select {
	case v = <-c:
	case <-t.ctx.Done():
		t.fatalf("%s: %v", what, context.Cause(t.ctx))
	case <-timer.C:
		t.fatalf("%s: not after %v", what, d)
	}
	return v
}

// returned reports whether a result has arrived on c, and leaves it there.
func returned[T any](c <-chan T) bool { return len(c) > 0 }

const (
	trialLabel = "conformance"
	partLabel  = "conformance-part"
)

// labelled runs f, and marks the goroutines that f starts and those that they
// start. The func that it returns counts those that are left, and shows them.
func (t *trial) labelled(f func()) func() (int, string) {
	mark := rand.Text()
	pprof.Do(t.ctx, pprof.Labels(partLabel, mark), func(context.Context) { f() })
	return func() (int, string) { return goroutines(partLabel, mark) }
}

// goroutines counts the goroutines with the label, and returns their stacks, from
// the text form of the goroutine profile (runtime/pprof).
func goroutines(label, value string) (n int, stacks string) {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return 0, err.Error()
	}
	_, profile, _ := strings.Cut(b.String(), "\n") // after the total
	var found []string
	for stack := range strings.SplitSeq(profile, "\n\n") {
		if !strings.Contains(stack, fmt.Sprintf("%q:%q", label, value)) {
			continue
		}
		count := 0
		fmt.Sscanf(stack, "%d @", &count)
		n += count
		found = append(found, stack)
	}
	return n, strings.Join(found, "\n\n")
}
