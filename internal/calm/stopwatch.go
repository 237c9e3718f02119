package calm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/succession-dev/succession/internal/scratch"
)

// A TB is what a Stopwatch needs of a [testing.TB].
//
// [testing.TB]: https://pkg.go.dev/testing#TB
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(f func())
}

// A Stopwatch measures how long something takes in a test, and how busy the machine is meanwhile.
type Stopwatch struct {
	t       TB
	monitor *Monitor
	began   time.Time
}

// Start starts a Stopwatch. It runs until Within, or until the end of the test. Its plain request is a write where the tests' servers
// write: they share the processors with this process, and wait for the same disk, if there is one.
func Start(t TB) *Stopwatch {
	write := func(context.Context) error { return Write(scratch.Memory()) }
	w := &Stopwatch{t: t, monitor: Watch(0, write), began: time.Now()}
	t.Cleanup(w.monitor.Close)
	return w
}

// Write makes a file in the folder, brings it to the disk, as a server does with what is written to it, and removes it. If the folder is
// empty, it is that for temporary files.
func Write(dir string) error {
	f, err := os.CreateTemp(dir, "calm-")
	if err != nil {
		return err
	}
	_, err = f.WriteString("calm")
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
}

// From sets the instant from which Within counts, such as a deadline.
func (w *Stopwatch) From(at time.Time) *Stopwatch {
	w.began = at
	return w
}

// Began returns when the Stopwatch was started.
func (w *Stopwatch) Began() time.Time { return w.began }

// Within stops the Stopwatch, and fails the test if more than bound has passed since Start. On a machine that was too busy it does
// not: it says so in the test's log, and gotest counts that as not judged. The text says what took so
// long.
func (w *Stopwatch) Within(bound time.Duration, format string, args ...any) {
	w.t.Helper()
	took := time.Since(w.began)
	r := w.monitor.Since(w.began)
	w.monitor.Close()
	w.judge(took, bound, r, fmt.Sprintf(format, args...))
}

// NotJudged reports whether the machine has been too busy, since Start, for something that takes bound at most. It says so in the test's
// log, as Within does. It is for what has gone wrong because something else was late, and is called before Within.
func (w *Stopwatch) NotJudged(bound time.Duration, format string, args ...any) bool {
	w.t.Helper()
	r := w.monitor.Since(w.began)
	r.Limit = Limit(bound)
	if r.Disturbed() {
		w.t.Logf("calm: not judged: %s: %v", fmt.Sprintf(format, args...), r)
	}
	return r.Disturbed()
}

func (w *Stopwatch) judge(took, bound time.Duration, r Reading, what string) {
	w.t.Helper()
	r.Limit = Limit(bound)
	switch {
	case took <= bound:
	case r.Disturbed():
		w.t.Logf("calm: not judged: %s took %v, %v at most: %v", what, took.Round(time.Millisecond), bound, r)
	default:
		w.t.Errorf("%s took %v, want %v at most", what, took.Round(time.Millisecond), bound)
	}
}
