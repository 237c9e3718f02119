//go:build unix

package run

import (
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/run/child"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
)

// guardCommand is the subcommand that run starts as its command's guard.
const guardCommand = "guard"

// Guard returns the hidden subcommand that run starts by itself.
func Guard() *cobra.Command {
	return &cobra.Command{
		Use:                guardCommand,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := child.Guard(args); code != 0 {
				return &ui.ExitError{Code: code}
			}
			return nil
		},
	}
}

// errStoodStill is why a term was lost when the guard had to kill the command.
var errStoodStill = errors.New("succession stood still until the session's deadline; it was stopped, or the machine suspended or too busy")

// until is when the guard has to kill the command of t, unless it hears from this
// process again: a little after killIn has had it killed, and before the session's
// deadline. The session moves its deadline ahead until a grace time before it, so the
// guard hears of each new deadline in time. A migration may give a term a deadline, or
// take it away. It is on the clock of [child.Now]; 0 is never.
func (r *runner) until(t *elect.Term) time.Duration {
	// The clock is read first: should this process or the machine stand still after
	// this line, the result is too early and not too late.
	now := child.Now()
	deadline := t.SessionDeadline()
	if deadline.IsZero() {
		return 0
	}
	return max(1, now+time.Until(deadline.Add(-r.grace/20)))
}

// stoodStill reports that the guard has killed the command in this process's place.
func (l *leading) stoodStill() {
	what := fmt.Sprintf("%s (pid %d)", l.what, l.c.Pid())
	attrs := []slog.Attr{token(l.t), slog.Int("pid", l.c.Pid()), cause(errStoodStill)}
	if l.lost == nil {
		l.lost = errStoodStill
		l.report.warn("lost", fmt.Sprintf("lost: %v", errStoodStill), attrs...)
	}
	if !l.killed {
		l.killed = true
		l.report.warn("killing", fmt.Sprintf("the guard has killed %s: %v", what, errStoodStill), attrs...)
	}
}

// standsStill reports that the command of t was stopped, which holds up the line.
func (r *runner) standsStill(t *elect.Term, what string, pid int, sig syscall.Signal) {
	why := fmt.Sprintf("let it go on (kill -CONT %d), or end it", pid)
	if sig == syscall.SIGTTIN || sig == syscall.SIGTTOU {
		why = "it wants the terminal, which is not its own; bring succession to the foreground (fg), or give it no terminal (</dev/null)"
	}
	r.report.warn("stopped", fmt.Sprintf("%s (pid %d) was stopped by %s and holds up the line: %s", what, pid, ui.SignalName(sig), why),
		token(t), slog.Int("pid", pid), slog.String("signal", ui.SignalName(sig)), slog.String("cause", why))
}

// takesNoSignal reports that the command of t, or part of it, cannot be stopped.
func (r *runner) takesNoSignal(t *elect.Term, pid int) {
	why := "it has become another user's, as by sudo; let it end, and run succession as that user"
	r.report.warn("refused", fmt.Sprintf("process %d takes no signal and runs on, perhaps beside another leader: %s", pid, why),
		token(t), slog.Int("pid", pid), slog.String("cause", why))
}

// cannotLook reports that it is not known what runs of the command of t.
func (r *runner) cannotLook(t *elect.Term, what string, err error) {
	r.report.warn("unknown", fmt.Sprintf("it is not known whether everything that %s started has ended; looking again: %v", what, err),
		token(t), cause(err))
}
