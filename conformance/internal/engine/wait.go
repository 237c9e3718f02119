package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
)

// ErrCancelled is the cause with which rules cancel contexts. Drivers must return it.
var ErrCancelled = errors.New("cancelled by the rule")

// Grain is how much two readings of the same deadline may differ, because each converts it to
// the clock of time.Now anew.
const Grain = 5 * time.Millisecond

// Within returns a context for a call that should take no longer than d.
func (t *Trial) Within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(t.Ctx, d, fmt.Errorf("not done after %v", d))
}

// Eventually waits until cond holds, for at most d. The text what says what it waits for.
func (t *Trial) Eventually(d time.Duration, what string, cond func() bool) {
	ctx, cancel := t.Within(d)
	defer cancel()
	tick := time.NewTicker(t.Tick())
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			if d > Now && cond() {
				return
			}
			t.Fatalf("%s: %v", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// Always looks again and again for d, and fails as soon as cond does not hold.
func (t *Trial) Always(d time.Duration, what string, cond func() bool) {
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(t.Tick())
	defer tick.Stop()
	for {
		if !cond() {
			t.Fatalf("%s", what)
		}
		select {
		case <-end.C:
			return
		case <-t.Ctx.Done():
			t.Fatalf("%s: %v", what, context.Cause(t.Ctx))
		case <-tick.C:
		}
	}
}

// Pass lets time pass. The text why says what for, in the timeline.
func (t *Trial) Pass(d time.Duration, why string) {
	t.Log("suite", "waits %v: %s", d.Round(time.Millisecond), why)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Ctx.Done():
		t.Fatalf("waiting %v, %s: %v", d, why, context.Cause(t.Ctx))
	}
}

// Settles waits until what the clients have begun waits: until each has once sent nothing for an
// eighth of TTL. On a machine that counts as calm, requests are answered and timers fire within half
// of that, so a client that has more to ask has asked by then. Heartbeats are further apart. Where
// requests are not counted, that time passes. No client is waited for longer than half of TTL: soon
// after TTL all look again.
func (t *Trial) Settles(cs ...*Client) {
	quiet := t.TTL / 8
	if !t.Can(Requests) {
		t.Pass(quiet, "until all waits have been set up")
		return
	}
	t.Log("suite", "waits until all waits have been set up")
	began := time.Now()
	sent := make([]int64, len(cs))
	since := make([]time.Time, len(cs)) // it has sent no more
	for i, c := range cs {
		sent[i], since[i] = c.Requests(), began
	}
	settled := make([]bool, len(cs))
	for slices.Contains(settled, false) && time.Since(began) < t.TTL/2 {
		select {
		case <-time.After(quiet / 8):
		case <-t.Ctx.Done():
			t.Fatalf("waiting until all waits have been set up: %v", context.Cause(t.Ctx))
		}
		for i, c := range cs {
			if n := c.Requests(); n != sent[i] {
				sent[i], since[i] = n, time.Now()
			}
			settled[i] = settled[i] || time.Since(since[i]) >= quiet
		}
	}
}

// Await returns the value that arrives on c within d.
func Await[T any](t *Trial, c <-chan T, d time.Duration, what string) T {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var v T
	select {
	case v = <-c:
	case <-t.Ctx.Done():
		t.Fatalf("%s: %v", what, context.Cause(t.Ctx))
	case <-timer.C:
		t.Fatalf("%s: not after %v", what, d)
	}
	return v
}

// Arrived reports whether a value waits on c, and leaves it there. c must be buffered.
func Arrived[T any](c <-chan T) bool { return len(c) > 0 }

// A Call is a call in the background.
type Call struct {
	t      *Trial
	what   string
	result chan error
	value  any // what the call of HoldsBack has returned besides its error
}

// Value returns what a call of [Client.HoldsBack] has returned, when its error has arrived.
func (k *Call) Value() any { return k.value }

// spawn runs f in a goroutine that the trial waits for.
func (t *Trial) spawn(f func()) {
	t.spawned.Go(func() { t.guarded(f) })
}

// Go begins a call in the background.
func (t *Trial) Go(what string, f func() error) *Call {
	k := &Call{t: t, what: what, result: make(chan error, 1)}
	t.spawn(func() { k.result <- f() })
	return k
}

// Result returns the channel on which the result of the call arrives.
func (k *Call) Result() <-chan error { return k.result }

// Returned reports whether the call has returned.
func (k *Call) Returned() bool { return Arrived(k.result) }

// Returns waits until the call has returned, and returns its error. The call must return within
// d, with one of the errors, of which nil may be one. If none is given, it must succeed.
func (k *Call) Returns(d time.Duration, want ...error) error {
	err := Await(k.t, k.result, d, k.what+" has not returned")
	k.t.Want(k.what, err, want...)
	return err
}

// Want fails the rule unless err is one of want, of which nil may be one. If none is given,
// err must be nil. The text what names the call that has returned err.
func (t *Trial) Want(what string, err error, want ...error) {
	switch {
	case err == nil && len(want) == 0, Is(err, want...):
	case len(want) == 0:
		t.Fatalf("%s: %v", what, err)
	default:
		t.Fatalf("%s returned %v; want %s", what, err, wanted(want))
	}
}

func wanted(errs []error) string {
	s := ""
	for i, err := range errs {
		if i > 0 {
			s += " or "
		}
		s += fmt.Sprint(err)
		if err == ErrCancelled {
			s = s[:len(s)-len(err.Error())] + "the cause of its context"
		}
	}
	return s
}

// Is reports whether err is one of the targets.
func Is(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// SealedTo returns the address in a [backend.SealedError], or "" if err is none.
func SealedTo(err error) string {
	var sealed *backend.SealedError
	if errors.As(err, &sealed) {
		return sealed.To
	}
	return ""
}
