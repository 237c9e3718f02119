//go:build unix

package run

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/run/child"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
)

// Hooks are lines of shell that run beside the command. The one of --on-elected runs before it, as it
// does: while this process leads, under a guard, killed in time. The one of --on-lost runs when this process
// leads no more, so nothing has to kill it before another leads. It is bounded by the grace time.

// onElected and onLost are the names of the hooks.
const (
	onElected = "on-elected"
	onLost    = "on-lost"
)

var shell = "/bin/sh" // a test may set it

// A hook is one run of a hook.
type hook struct {
	name  string
	limit *time.Timer // when it takes too long
	err   error       // why it failed
}

// tooLong tells when the hook takes too long; it never does so for nil.
func (h *hook) tooLong() <-chan time.Time {
	if h == nil {
		return nil
	}
	return h.limit.C
}

func (h *hook) what() string { return "the hook " + h.name }

// kept returns the error that the hook has kept the command from being started.
func (h *hook) kept(command string) error {
	return fmt.Errorf("%s was not started: %s: %v", command, h.what(), h.err) // an exit code in h.err would be one of the command
}

// fail reports why the hook failed. Only the first call counts.
func (h *hook) fail(r *reporter, t *elect.Term, err error) {
	if h.err != nil {
		return
	}
	h.err = err
	r.warn("hook", fmt.Sprintf("the hook %s failed: %v", h.name, err), token(t), slog.String("hook", h.name), cause(err))
}

// ended reports how the hook has ended, unless that was said.
func (h *hook) ended(r *reporter, t *elect.Term, s child.Status) {
	h.limit.Stop()
	switch {
	case s.GuardDied:
		h.fail(r, t, errors.New("its guard process was killed, and the hook with it"))
	case s.Signal != 0:
		h.fail(r, t, fmt.Errorf("it was ended by %s", ui.SignalName(s.Signal)))
	case s.Code != 0:
		h.fail(r, t, fmt.Errorf("its exit code is %d", s.Code))
	case h.err == nil:
		r.info("hook", fmt.Sprintf("the hook %s has run", h.name), token(t), slog.String("hook", h.name))
	}
}

// beforeCommand runs the hook of --on-elected. If it returns false, the command is not to be started: lost and err
// are then as lead returns them.
func (r *runner) beforeCommand(t *elect.Term) (ok, lost bool, err error) {
	if r.o.onElected == "" {
		return true, false, nil
	}
	nothing, err := os.Open(os.DevNull) // the input is for the command
	if err != nil {
		return false, false, err
	}
	defer nothing.Close()
	l, lost, err := r.start(t, shell, []string{"sh", "-c", r.o.onElected}, nil, nothing)
	h := &hook{name: onElected, limit: time.NewTimer(r.grace)}
	switch {
	case lost:
		return false, true, err
	case err != nil:
		h.fail(r.report, t, err)
		return false, false, h.kept(r.argv[0])
	}
	l.what, l.hook = h.what(), h
	l.attend()
	l.hook.limit.Stop()
	switch {
	case l.lost != nil && r.leaving == nil:
		return false, true, r.o.codes.exitLost()
	case r.leaving != nil:
		return false, l.lost != nil, &ui.ExitError{Code: ui.SignalExit(r.leaving)}
	case l.hook.err != nil:
		return false, false, h.kept(r.argv[0])
	}
	return true, false, nil
}

// takesTooLong stops a hook whose time is up.
func (l *leading) takesTooLong() {
	l.hook.fail(l.report, l.t, fmt.Errorf("it has not ended within %v (--grace)", l.grace))
	l.killNow("it did not end in time")
}

// termEnds starts the hook of --on-lost, once in a term. It does not block.
func (r *runner) termEnds(t *elect.Term, why string) {
	if r.o.onLost == "" || r.after != nil {
		return
	}
	cmd := exec.Command(shell, "-c", r.o.onLost)
	cmd.Env = append(r.environment(t), variable("SUCCESSION_REASON", ui.OneLine(why)))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	a := &after{hook: hook{name: onLost, limit: time.NewTimer(r.grace)}, started: make(chan struct{}), done: make(chan error, 1)}
	r.after = a
	go func() {
		var err error
		a.b, err = child.StartBeside(cmd)
		close(a.started)
		if err == nil {
			err = a.b.Wait()
		}
		a.limit.Stop() // the command may go on for longer
		a.done <- err
	}()
}

// An after is a run of the hook of --on-lost.
type after struct {
	hook
	b       *child.Beside // as far as it could be started, once started is closed
	started chan struct{}
	done    chan error
}

// kill kills the hook. It waits until that has been started.
func (a *after) kill() {
	<-a.started
	a.b.Kill()
}

// afterTerm waits for the hook of --on-lost, which begins now unless it has begun: when the term has ended by
// itself. What it does changes no exit code.
func (r *runner) afterTerm(t *elect.Term) {
	why := "resigned"
	if err := t.Check(); err != nil {
		why = reason(err).Error()
	}
	r.termEnds(t, why)
	a := r.after
	if a == nil {
		return
	}
	r.after = nil
	for {
		select {
		case err := <-a.done:
			status := child.Status{}
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				ws := exit.Sys().(syscall.WaitStatus)
				if status.Code = ws.ExitStatus(); ws.Signaled() {
					status = child.Status{Signal: ws.Signal()}
				}
			} else if err != nil {
				a.fail(r.report, t, err)
			}
			a.ended(r.report, t, status)
			return
		case <-a.limit.C:
			a.fail(r.report, t, fmt.Errorf("it has not ended within %v (--grace)", r.grace))
			a.kill()
		case sig := <-r.signals:
			if !endsWaiting(sig) {
				break
			}
			if r.leaving != nil {
				a.kill()
			}
			r.leaving = sig
		}
	}
}
