package engine

import (
	"cmp"
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

	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/history"
)

// A Trial is one run of one rule. It has its clients, its election, its clock, and the first
// thing that went wrong.
type Trial struct {
	*Coordinator
	Name string          // of the trial's own election
	Ctx  context.Context // ends with the trial, and at the first failure

	rule   Rule
	began  time.Time
	log    timeline
	notes  *history.Recorder // what the candidates did, since began
	cancel context.CancelCauseFunc

	judge func() // see Judged; nil for nothing to judge

	mu       sync.Mutex
	outcome  Outcome
	unsafe   bool // the failure must never happen
	clients  int
	cleanups []func()
	spawned  sync.WaitGroup
}

// An Outcome is the result of a trial.
type Outcome struct {
	// Unable says that the rule was not exercised, because something that it needs is missing.
	Unable bool
	// Disturbed has what was measured in each trial in which the machine was too busy.
	Disturbed []calm.Reading
	// NotJudged says that the machine was too busy in all trials. Nothing has happened that must
	// never happen, but it is not known whether the rule's bounds of time and cost were kept.
	NotJudged bool
	// Failure says what went wrong. It is empty if the rule passed.
	Failure string
	// Timeline is what the clients did until the failure. It is empty if the rule passed.
	Timeline []string
	// History is what the candidates did until the failure, or until the end.
	History *history.History
	// Broken are the violations that were found in History; see [Trial.Judged].
	Broken []history.Violation
}

// errOver is why the context of a trial ends if nothing has failed.
var errOver = errors.New("the trial of the rule is over")

// abort is the value with which a goroutine of a trial panics to stop itself.
type abort struct{}

// Exercise runs the rule. If the machine was too busy meanwhile, it runs the rule again, whether it
// has passed or failed. If something happens that must never happen ([Trial.Never]), the rule fails
// at once. Exercise returns when everything that the rule has begun has ended, or when that takes
// far too long. It repeats nothing when the rest of the time until the deadline may not do for one more trial.
// Of the rules that have a crowd, or are run again, one at a time is under way in the process.
func Exercise(ctx context.Context, c *Coordinator, r Rule) Outcome {
	var disturbed []calm.Reading
	if r.Crowd {
		defer takeTurn(ctx)()
	}
	for {
		calm.Await(ctx, len(disturbed) > 0)
		began := time.Now()
		out, never := exercise(ctx, c, r)
		reading := c.Calm.Since(began)
		if reading.Disturbed() && !never && !out.Unable && ctx.Err() == nil {
			if disturbed = append(disturbed, reading); len(disturbed) == 1 && !r.Crowd {
				defer takeTurn(ctx)()
			}
			out.NotJudged = len(disturbed) == calm.Tries || c.left() < 2*c.Limit()
			if !out.NotJudged {
				continue
			}
		}
		out.Disturbed = disturbed
		return out
	}
}

// turn is full while a rule has the turn; see takeTurn.
var turn = make(chan struct{}, 1)

// takeTurn waits for the turn, or until ctx ends. Rules that together were too much for the machine do not begin together again. The
// caller gives the turn back.
func takeTurn(ctx context.Context) (back func()) {
	select {
	case turn <- struct{}{}:
		return func() { <-turn }
	case <-ctx.Done():
		return func() {}
	}
}

// exercise runs the rule once. It reports whether something has happened that must never happen.
func exercise(ctx context.Context, c *Coordinator, r Rule) (out Outcome, never bool) {
	began := time.Now()
	t := &Trial{Coordinator: c, rule: r, began: began}
	t.notes = history.NewRecorder(func() time.Duration { return time.Since(began) }, nil)
	t.Name = c.name(strings.ToLower(r.ID))
	ctx = pprof.WithLabels(ctx, pprof.Labels(trialLabel, t.Name))
	t.Ctx, t.cancel = context.WithCancelCause(ctx)
	t.run()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcome.History = cmp.Or(t.outcome.History, t.notes.History())
	return t.outcome, t.unsafe
}

// name returns a new name of an election, which begins with the harness's prefix.
func (c *Coordinator) name(what string) string {
	return fmt.Sprintf("%s/%s-%s", cmp.Or(c.Prefix, "conformance"), what, strings.ToLower(rand.Text()[:8]))
}

func (t *Trial) run() {
	defer t.cancel(errOver)
	// The limit is taken now, as the trial may change its coordinator, and leaves time for what the trial has begun to end.
	limit, why := t.Limit(), ""
	if left := t.left() / 2; left < limit {
		limit, why = left, ", half of what was left of go test's -timeout"
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		pprof.SetGoroutineLabels(t.Ctx)
		t.guarded(func() {
			if !t.able() {
				t.mu.Lock()
				t.outcome.Unable = true
				t.mu.Unlock()
				return
			}
			t.rule.Check(t)
		})
		t.cancel(errOver)
		t.spawned.Wait()
		if t.judge != nil {
			t.judge()
		}
		t.clean()
	}()
	watchdog := time.NewTimer(limit)
	defer watchdog.Stop()
	select {
	case <-done:
		return
	case <-watchdog.C:
	}
	_, stacks := labelled(trialLabel, t.Name)
	t.errorf("the rule was not done after %v%s; its goroutines:\n%s", limit, why, stacks)
	watchdog.Reset(t.Recovery())
	select {
	case <-done:
	case <-watchdog.C: // the rule hangs in a call that ignores its context; its goroutines stay
	}
}

// guarded runs f. A panic of f fails the rule.
func (t *Trial) guarded(f func()) {
	defer func() {
		switch p := recover(); p.(type) {
		case nil, abort:
		default:
			t.fail(true, "panic: %v\n%s", p, debug.Stack())
		}
	}()
	f()
}

// fail fails the rule and ends the trial's context. Only the first failure is kept, unless a later one
// must never happen. It reports whether this one is kept.
func (t *Trial) fail(never bool, format string, args ...any) (kept bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kept = t.outcome.Failure == "" || never && !t.unsafe; kept {
		t.unsafe = never
		t.outcome.Failure = fmt.Sprintf(format, args...)
		// They are taken now, before the end of the trial adds to them.
		t.outcome.Timeline, t.outcome.History = t.log.lines(t.began), t.notes.History()
	}
	t.cancel(errors.New("the rule has failed"))
	return kept
}

// errorf fails the rule, unless the machine was too busy.
func (t *Trial) errorf(format string, args ...any) { t.fail(false, format, args...) }

// Fatalf fails the rule, and stops the goroutine. If the machine was too busy, the failure says nothing,
// and the rule is run again.
func (t *Trial) Fatalf(format string, args ...any) {
	t.errorf(format, args...)
	panic(abort{})
}

// Never fails the rule, and stops the goroutine. It is for what must never happen, however busy the
// machine is: what a session that has ended, or an answer that is late, does not explain.
func (t *Trial) Never(format string, args ...any) {
	t.fail(true, format, args...)
	panic(abort{})
}

// HasLost fails the rule if what must be lost by now is still held. A busy machine may cancel a context
// late; Check never says more than is true. The text what says what follows if it is held.
func (t *Trial) HasLost(held interface {
	Context() context.Context
	Check() error
}, what string) {
	if held.Check() == nil {
		t.Never("%s", what)
	}
	if held.Context().Err() == nil {
		t.Fatalf("%s, whose context has not ended", what)
	}
}

// Log notes something in the timeline.
func (t *Trial) Log(who, format string, args ...any) { t.log.add(who, format, args...) }

// History returns what the candidates have done up to now.
func (t *Trial) History() *history.History { return t.notes.History() }

// Elapsed returns the time since the trial began, which is the clock of the history.
func (t *Trial) Elapsed() time.Duration { return t.notes.Now() }

// Judged has the history judged by the rules when the trial is over, whether its check has passed or
// failed by then, and fails the rule if anything but a forgiven rule is broken. A vacancy, and a term that
// ends late, may have been made by a busy machine, or by the failure; the other violations must never happen.
func (t *Trial) Judged(rules history.Rules, forgiven ...history.Rule) {
	t.judge = func() {
		var broken []history.Violation
		for _, v := range t.History().Check(rules) {
			if !slices.Contains(forgiven, v.Rule) {
				broken = append(broken, v)
			}
		}
		if len(broken) == 0 {
			return
		}
		more := ""
		if n := len(broken) - 1; n > 0 {
			more = fmt.Sprintf(", and %d more", n)
		}
		worst, never := broken[0], false
		for _, v := range slices.Backward(broken) {
			if v.Rule != history.Vacancy && v.Rule != history.Late {
				worst, never = v, true
			}
		}
		if t.fail(never, "%s%s", worst, more) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.outcome.Broken = broken
		}
	}
}

// Cleanup makes the trial call f when it is over. The last f is called first.
func (t *Trial) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

func (t *Trial) clean() {
	t.mu.Lock()
	all := t.cleanups
	t.mu.Unlock()
	for i := len(all) - 1; i >= 0; i-- {
		t.guarded(all[i])
	}
}
