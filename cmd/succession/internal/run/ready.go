//go:build unix

package run

import (
	"bytes"
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
	var out bytes.Buffer
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
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return fmt.Errorf("%s", cmp.Or(withoutSecrets(ui.OneLine(lines[len(lines)-1])), fmt.Sprintf("--ready: %v", err)))
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
