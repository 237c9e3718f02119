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
func (c choice) options(o *elect.Options) {
	o.Priority, o.Site = c.priority, c.site
	if c.ready != "" {
		o.Ready = c.ask
	}
}

// ask runs the line of shell. It is not ready if that exits with another code than 0, or does not end in time. What the line
// says last is the reason. What it has started in the background is killed.
func (c choice) ask(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", c.ready)
	cmd.WaitDelay = 100 * time.Millisecond // what it has started in the background may hold its output open
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	b, err := child.StartBeside(cmd)
	if err == nil {
		err = b.Wait()
		b.Clear()
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
