//go:build unix

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/run/child"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
)

// options adds the choice to those of an election.
func (c *choice) options(o *elect.Options) {
	o.Priority, o.Site = c.priority, c.site
	if c.ready != "" {
		o.Ready = c.ask
	}
}

// lateEnd is how long after the end of its time a line that was killed may end.
const lateEnd = 500 * time.Millisecond

// ask runs the line of shell. It is not ready if that exits with another code than 0, or does not end in time. What the line
// says last is the reason. What it has started in the background is killed. A line that does not end when it is killed, as one that waits
// for a disk or has become another user's, is left, and not run again before it has ended. One goroutine at a time may call ask.
func (c *choice) ask(ctx context.Context) error {
	select {
	case <-c.asking:
	default:
		if c.asking != nil {
			return errors.New("--ready has not ended since it was killed")
		}
	}
	ended, over := make(chan error, 1), make(chan struct{})
	c.asking = over
	cmd := exec.CommandContext(ctx, shell, "-c", c.ready)
	cmd.WaitDelay = 100 * time.Millisecond // what it has started in the background may hold its output open
	out := new(tail)
	cmd.Stdout, cmd.Stderr = out, out
	go func() {
		b, err := child.StartBeside(cmd)
		if err == nil {
			err = b.Wait()
			b.Clear()
		}
		close(over)
		ended <- err
	}()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		select {
		case err = <-ended:
		case <-time.After(lateEnd):
			return errors.New("--ready has not ended in time, and goes on although it was killed")
		}
	}
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if ctx.Err() != nil {
		return errors.New("--ready has not ended in time") // the line itself may have a password, and everybody can read this
	}
	return fmt.Errorf("%s", cmp.Or(withoutSecrets(ui.OneLine(out.lastLine())), fmt.Sprintf("--ready: %v", err)))
}

// A tail keeps the end of what is written to it.
type tail struct {
	end []byte
	cut bool // more was written before
}

// maxTail is how much a tail keeps: far more than of a reason is published.
const maxTail = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > maxTail {
		t.cut, p = true, p[n-maxTail:]
	}
	t.end = append(t.end, p...)
	if over := len(t.end) - maxTail; over > 0 {
		t.cut, t.end = true, append(t.end[:0], t.end[over:]...)
	}
	return n, nil
}

// lastLine returns the last line that is not empty; none if it is longer than the tail: what has gone of it may say
// that the rest is a secret.
func (t *tail) lastLine() string {
	end := strings.TrimSpace(string(t.end))
	i := strings.LastIndexByte(end, '\n')
	if i < 0 && t.cut {
		return ""
	}
	return end[i+1:]
}

// Programs that cannot connect print with what they have tried: a URL with a password, a connection string, a header.
var secrets = []struct {
	form *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(://)\S*@`), "${1}redacted@"},
	{regexp.MustCompile(`([^\s:@/"']+:)[^\s/]\S*@`), "${1}redacted@"}, // as drivers of databases for Go have it
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+\S+`), "${1} redacted"},
	{regexp.MustCompile(`(?i)(\bcookie:\s*).*`), "${1}redacted"},
	{regexp.MustCompile(`(?i)((?:[\w.-]*` + secretWord + `[\w.-]*|\b(?:pass|sig))(?:\\*["'])?\s*[=:]\s*)` + given), "${1}redacted"},
	{regexp.MustCompile(`(?i)(\s--?[\w-]*` + secretWord + `[\w-]*\s+)` + given), "${1}redacted"}, // a flag, as sh -x prints it
}

const (
	secretWord = `(?:passw|passphrase|pwd|secret|token|(?:api|access|account)[-_]?key|credential)`
	given      = `(?:\\+"[^"\\]*\\+"|"(?:[^"\\]|\\.)*"|'[^']*'|[^\s&;,]+)`
)

// withoutSecrets returns a reason without what looks like a secret: everybody who may read the line reads it. It knows the usual
// forms and no others.
func withoutSecrets(reason string) string {
	for _, s := range secrets {
		reason = s.form.ReplaceAllString(reason, s.with)
	}
	return reason
}
