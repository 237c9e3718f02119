//go:build unix

package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/run/child"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
)

// recheck is how often the time of the KILL is computed anew: timers stand still
// while the machine is suspended, and deadlines do not.
const recheck = 100 * time.Millisecond

// A leading is one term of a runner, with the command that runs in it: CMD, or a hook before it.
type leading struct {
	*runner
	t    *elect.Term
	c    *child.Child
	what string // the command, to people
	hook *hook  // nil for CMD

	tell   *time.Timer // when to tell the guard until when the command may run
	lost   error       // why the term ended, if it did before the command
	ended  bool        // the command has ended; what it started may still run
	told   time.Time   // when the command, or what it left behind, was told to stop
	kill   *time.Timer
	killed bool
}

// lead runs the command until it has ended or leadership is lost, and resigns when
// nothing of it runs any more. lost says that leadership ended before the command
// did; err is the exit code, nil for 0.
func (r *runner) lead(h held) (lost bool, err error) {
	defer func() {
		going := r.leaving == nil
		r.afterTerm(h.Term)
		if lost && going && r.o.restart { // it would have gone on
			err = r.left(err)
		}
		r.resign(h)
	}()
	if r.argv == nil {
		return r.stay(h.Term)
	}
	if ok, lost, err := r.beforeCommand(h.Term); !ok {
		return lost, err
	}
	var env []string
	var stdin *os.File
	if h.item != nil {
		env = itemVariables(h.item)
		if stdin, err = itemInput(h.item); err != nil {
			return false, err
		}
		defer stdin.Close()
	}
	l, lost, err := r.start(h.Term, r.path, r.argv, env, stdin)
	if l == nil {
		return lost, err
	}
	r.report.info("started", fmt.Sprintf("started %s (pid %d)", l.what, l.c.Pid()), token(l.t), slog.Int("pid", l.c.Pid()))
	stop := l.acknowledge()
	l.attend()
	stop()

	status := l.c.Status()
	switch {
	case status.GuardDied:
		return l.lost != nil, l.guardDied()
	case l.lost != nil && r.leaving == nil:
		return true, r.o.codes.exitLost()
	case status.ExitCode() != 0:
		return l.lost != nil, &ui.ExitError{Code: status.ExitCode()}
	case h.item != nil:
		return l.lost != nil, r.confirm(&h)
	}
	return l.lost != nil, nil
}

// start starts a command that may run as long as the term lasts. It returns nil where it could not: then
// lost says that the term had ended before, and err is the exit code.
func (r *runner) start(t *elect.Term, path string, argv, env []string, stdin *os.File) (l *leading, lost bool, err error) {
	before := func(err error) (*leading, bool, error) {
		r.report.warn("lost", fmt.Sprintf("lost before %s was started: %v", argv[0], reason(err)), token(t), cause(err))
		return nil, true, r.o.codes.exitLost()
	}
	if err := t.Check(); err != nil {
		return before(err)
	}
	place, err := t.Files() // the guard keeps it open
	switch {
	case errors.Is(err, backend.ErrNotMember):
		return before(err)
	case err != nil:
		return nil, false, err
	}
	c, err := child.Start(child.Command{
		Path:    path,
		Args:    argv,
		Guard:   []string{guardCommand},
		Until:   func() time.Duration { return r.until(t) },
		Hold:    place,
		Stopped: func(pid int, sig syscall.Signal) { r.standsStill(t, argv[0], pid, sig) },
		Refused: func(pid int) { r.takesNoSignal(t, pid) },
		Blind:   func(err error) { r.cannotLook(t, argv[0], err) },
		Env:     append(r.environment(t), env...),
		Stdin:   stdin,
	})
	for _, f := range place {
		f.Close()
	}
	switch {
	case errors.Is(err, child.ErrExpired):
		return before(err)
	case err != nil:
		return nil, false, startError(argv[0], err)
	}
	l = &leading{runner: r, t: t, c: c, what: argv[0], tell: time.NewTimer(0), kill: time.NewTimer(time.Hour)}
	l.kill.Stop()
	return l, false, nil
}

// environment is what commands have in their environment in the term.
func (r *runner) environment(t *elect.Term) []string {
	return append(os.Environ(),
		"SUCCESSION_ELECTION="+r.name,
		"SUCCESSION_ID="+r.o.id,
		"SUCCESSION_TOKEN="+strconv.FormatUint(t.Token(), 10),
		"SUCCESSION_POSITION="+strconv.FormatUint(t.Member().Position, 10),
	)
}

// maxVariable is how long the value of a variable may be, in bytes. Linux takes none of 128 KiB (execve(2)).
const maxVariable = 64 << 10

// variable returns a variable of the environment with a value that others may have written. The value is empty if the system would
// not take it, which would keep the command from being started.
func variable(name, value string) string {
	if strings.ContainsRune(value, 0) || len(value) > maxVariable {
		value = ""
	}
	return name + "=" + value
}

// stay holds the term of a runner that has no command until a signal comes, or the term is lost.
func (r *runner) stay(t *elect.Term) (lost bool, err error) {
	err = r.attend(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if r.leaving != nil {
		return false, r.left(err)
	}
	r.report.warn("lost", fmt.Sprintf("lost: %v", reason(err)), token(t), cause(err))
	return true, r.o.codes.exitLost()
}

// startError turns the reason why the command cannot be executed into an exit
// code.
func startError(name string, err error) error {
	var p *os.PathError
	switch {
	case errors.Is(err, syscall.ENOENT):
		return ui.Exitf(ui.ExitNotFound, "%s: not found, or its interpreter is not", name)
	case errors.As(err, &p):
		return ui.Exitf(ui.ExitNotExecutable, "%s: it cannot be executed: %w", name, p.Err)
	}
	return err
}

// attend looks after the command until nothing of it runs.
func (l *leading) attend() {
	defer l.kill.Stop()
	defer l.tell.Stop()
	lost, ended := l.t.Context().Done(), l.c.Ended()
	for {
		select {
		case <-lost:
			lost = nil
			if !l.ended {
				l.lose()
			}
		case <-l.hook.tooLong():
			l.takesTooLong()
		case sig := <-l.signals:
			l.forward(sig.(syscall.Signal))
		case <-l.tell.C:
			l.tell.Reset(l.c.Tell())
		case <-l.kill.C:
			l.killInTime()
		case <-ended:
			ended = nil
			l.end()
			l.sweep()
		case <-l.c.Gone():
			if !l.ended {
				l.end()
			}
			return
		}
	}
}

// lose stops the command because the term has ended.
func (l *leading) lose() {
	if l.told.IsZero() {
		l.told = time.Now()
		l.c.Stop(syscall.SIGTERM)
	}
	l.lost = context.Cause(l.t.Context())
	l.killInTime()
	l.report.warn("lost", fmt.Sprintf("lost: %v; stopping %s (pid %d)", reason(l.lost), l.what, l.c.Pid()),
		token(l.t), cause(l.lost), slog.Int("pid", l.c.Pid()))
	l.termEnds(l.t, reason(l.lost).Error())
}

// reason is the short form of why a term was lost, for people.
func reason(err error) error {
	if lost := (*elect.LostError)(nil); errors.As(err, &lost) {
		return lost.Err
	}
	return err
}

// killInTime kills the command when its time is up, and otherwise sets the timer that
// calls it again.
func (l *leading) killInTime() {
	deadline := l.t.SessionDeadline()
	now := time.Now()
	switch left := killIn(now, l.told, deadline, l.grace); {
	case left > 0:
		l.kill.Reset(min(left, recheck))
	case !deadline.IsZero() && !now.Before(deadline):
		l.killNow("the session is over")
	default:
		l.killNow("it did not end in time")
	}
}

func (l *leading) killNow(why string) {
	if l.killed {
		return
	}
	l.killed = true
	l.c.Kill()
	what := fmt.Sprintf("%s (pid %d)", l.what, l.c.Pid())
	if l.ended {
		what = "what " + l.what + " left behind"
	}
	l.report.warn("killing", fmt.Sprintf("killing %s: %s", what, why),
		token(l.t), slog.Int("pid", l.c.Pid()), slog.String("cause", why))
}

// forward passes a signal on to the command. The first INT or TERM asks this process to
// end, and the second one kills the command.
func (l *leading) forward(sig syscall.Signal) {
	pass := l.c.Signal
	if endsWaiting(sig) {
		pass = l.c.Stop
	}
	if sig != syscall.SIGINT && sig != syscall.SIGTERM {
		pass(sig)
		return
	}
	if l.leaving != nil {
		l.killNow("a second " + ui.SignalName(sig))
		return
	}
	l.leaving = sig
	l.report.tell("STOPPING=1")
	l.report.info("interrupted", fmt.Sprintf("passing %s on to %s (pid %d)", ui.SignalName(sig), l.what, l.c.Pid()),
		token(l.t), slog.String("signal", ui.SignalName(sig)), slog.Int("pid", l.c.Pid()))
	pass(sig)
}

// end reports that the command has ended.
func (l *leading) end() {
	l.ended = true
	s := l.c.Status()
	if s.Expired {
		l.stoodStill()
	}
	if l.hook != nil {
		l.hook.ended(l.report, l.t, s)
		return
	}
	if s.GuardDied {
		err := l.guardDied()
		l.report.warn("ended", err.Error(), token(l.t), slog.Int("pid", l.c.Pid()), cause(err))
		return
	}
	text := fmt.Sprintf("%s ended with exit code %d", l.what, s.Code)
	attrs := []slog.Attr{token(l.t), slog.Int("pid", l.c.Pid()), slog.Int("code", s.ExitCode())}
	if s.Signal != 0 {
		text = fmt.Sprintf("%s was ended by %s", l.what, ui.SignalName(s.Signal))
		attrs = append(attrs, slog.String("signal", ui.SignalName(s.Signal)))
	}
	l.report.info("ended", text, attrs...)
}

// guardDied is why it is not known how the command has ended.
func (l *leading) guardDied() error {
	return fmt.Errorf("the guard process was killed, and %s (pid %d) with it", l.what, l.c.Pid())
}

// sweep stops what the command left behind, in the same way as the command.
func (l *leading) sweep() {
	l.c.Sweep()
	if l.told.IsZero() { // otherwise the time of the KILL is set
		l.told = time.Now()
	}
	l.killInTime()
}

// acknowledge tells observers that this leader is at work, where --ack asks for it. It
// does not block. The caller must call stop, which ends what is still under way.
func (l *leading) acknowledge() (stop func()) {
	if !l.o.ack {
		return func() {}
	}
	ctx, cancel := context.WithCancel(l.t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		if err := l.t.Acknowledge(ctx); err != nil && ctx.Err() == nil {
			l.report.warn("unacknowledged", "could not acknowledge: "+err.Error(), token(l.t), cause(err))
		}
	})
	return func() {
		cancel()
		writing.Wait()
	}
}
