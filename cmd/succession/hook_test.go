//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// The hooks run before and after the command, with its environment and without its input.
func TestHooksRunInOrder(t *testing.T) {
	cmd := command("--url", localURL(t), "run", "--id", "web-1",
		"--on-elected", `read a; echo "elected $SUCCESSION_ELECTION $SUCCESSION_ID ${SUCCESSION_TOKEN:+with a token}<$a>"`,
		"--on-lost", `echo "lost $SUCCESSION_ID ${SUCCESSION_TOKEN:+with a token}, $SUCCESSION_REASON"`,
		"reports", "--", "sh", "-c", `read a; echo "<$a>"; exit 3`)
	cmd.Stdin = strings.NewReader("input\n")
	p := startCommand(t, cmd)
	p.line("elected reports web-1 with a token<>")
	p.line("<input>")
	p.line("lost web-1 with a token, resigned")
	p.exits(3)
	if got, want := p.rest(), []string{"coordinator", "elected", "hook", "started", "ended", "hook", "resigned"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// A hook that fails, or takes too long, keeps the command from being started. What it began is ended, and
// the other hook can tidy up.
func TestHookOnElectedFails(t *testing.T) {
	t.Parallel()
	url := localURL(t)
	for _, tt := range []struct{ name, grace, hook, says string }{
		{"it fails", "1m", "exit 3", "exit code is 3"},
		{"it dies", "1m", "kill -KILL $$", "SIGKILL"},
		{"its guard dies", "1m", "kill -KILL $PPID; sleep 1000", "guard"},
		{"it hangs", "3s", "trap '' TERM; sleep 1000", "within 3s (--grace)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, "--url", url, "run", "--grace", tt.grace, "--on-elected", tt.hook, "--on-lost", "echo tidy", "reports", "--", "echo", "never")
			if e := p.event("hook"); e.Hook != "on-elected" || !strings.Contains(e.Cause, tt.says) {
				t.Errorf("%+v, want that on-elected failed: %s", e, tt.says)
			}
			p.line("tidy")
			p.exits(ui.ExitFailed)
			p.nothingLeft()
		})
	}
}

// While the hook runs, a signal and a loss mean what they mean for the command.
func TestHookOnElectedIsInterrupted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		end    func(t *testing.T, url string, p *process)
		code   int
		reason string
	}{
		{"TERM", func(_ *testing.T, _ string, p *process) { p.signal(syscall.SIGTERM) }, 143, "resigned"},
		{"asked to resign", func(t *testing.T, url string, _ *process) {
			if code, _, stderr := result(t, "--url", url, "resign", "reports", "--by", "anna"); code != 0 {
				t.Errorf("resign: exit code %d, %s", code, stderr)
			}
		}, ui.ExitLost, "asked to resign by anna"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := localURL(t)
			p := start(t, "--url", url, "run", "--grace", "1m", "--on-elected", "echo ready; exec sleep 1000",
				"--on-lost", `echo "$SUCCESSION_REASON"`, "reports", "--", "echo", "never")
			p.line("ready")
			tt.end(t, url, p)
			p.line(tt.reason)
			p.exits(tt.code)
			p.nothingLeft()
		})
	}
}

// The hook of a loss begins at once, beside the command, which may need it.
func TestHookOnLostBeginsAtTheLoss(t *testing.T) {
	url, sign := localURL(t), filepath.Join(t.TempDir(), "sign")
	p := start(t, "--url", url, "run", "--grace", "1m", "--on-lost", "touch "+sign, "reports", "--",
		"sh", "-c", "trap '' TERM; echo ready; while [ ! -e "+sign+" ]; do sleep 0.01; done")
	p.line("ready")
	if code, _, stderr := result(t, "--url", url, "resign", "reports", "--by", "anna"); code != 0 {
		t.Errorf("resign: exit code %d, %s", code, stderr)
	}
	p.exits(ui.ExitLost)
}

// A hook that ends long before the command does is not said to hang.
func TestHookOnLostEndsBeforeTheCommand(t *testing.T) {
	t.Parallel()
	for range 4 {
		url := localURL(t)
		p := start(t, "--url", url, "run", "--grace", "1s", "--on-lost", "true", "reports", "--", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done")
		p.line("ready")
		if code, _, stderr := result(t, "--url", url, "resign", "reports"); code != 0 {
			t.Errorf("resign: exit code %d, %s", code, stderr)
		}
		p.exits(ui.ExitLost)
		if e := p.event("hook"); e.Cause != "" {
			t.Fatalf("%+v, want that the hook has run", e)
		}
	}
}

// TERM that comes while the hook runs ends a process that would stand in line again, and its exit code says so.
func TestHookOnLostAndTerm(t *testing.T) {
	t.Parallel()
	url := localURL(t)
	p := start(t, "--url", url, "run", "--restart", "--on-lost", "sleep 0.5; echo hook; sleep 0.5", "reports", "--", "sh", "-c", "echo ready; exec sleep 1000")
	p.line("ready")
	asks := start(t, "--url", url, "resign", "reports")
	p.line("hook") // the command has long ended
	p.signal(syscall.SIGTERM)
	p.exits(143)
	asks.exits(0)
}

// What others have written down is in the reason, and keeps no hook from being run: the system takes no variable with a zero
// byte, nor a long one.
func TestHookOnLostForReasonsOfOthers(t *testing.T) {
	for _, to := range []string{"etcd://h\x00", "etcd://" + strings.Repeat("h", 200<<10)} {
		url := localURL(t)
		p := start(t, "--url", url, "run", "--on-lost", `echo "lost: $SUCCESSION_REASON"`, "reports", "--", "sh", "-c", "echo ready; exec sleep 1000")
		p.line("ready")
		b, err := succession.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		s, err := b.Session(t.Context())
		if err == nil {
			_, err = s.Put(t.Context(), "reports", backend.Header{Sealed: to}.Encode(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, _ := p.next(); !strings.HasPrefix(line, "lost: ") || !strings.Contains(line, "etcd://h") || len(line) > 16<<10 {
			t.Errorf("the hook says %.100q", line)
		}
		p.exits(ui.ExitLost)
	}
}

// A hook that hangs delays no stop of the command, and is ended itself.
func TestHookOnLostHangs(t *testing.T) {
	t.Parallel()
	p, log := strike(t, "cut", 10*time.Second, `trap '' TERM; echo ready; while :; do echo work >>$LOG; sleep 0.005; done`,
		"--grace", "3s", "--on-lost", `echo "lost: $SUCCESSION_REASON"; trap '' TERM; sleep 1000`)
	p.line("lost: no confirmation from the coordinator before the deadline")
	p.exits(ui.ExitLost)
	if e := p.event("hook"); e.Hook != "on-lost" || !strings.Contains(e.Cause, "within 3s") {
		t.Errorf("%+v, want that the hook took too long", e)
	}
	p.nothingLeft()
	lines := readLines(t, log)
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "rival ") || !slices.Contains(lines, "work") {
		t.Errorf("the last line of the log is %q: work went on after the rival was elected", last)
	}
}

// What goes wrong with the hook of a loss changes no exit code.
func TestHookOnLostFails(t *testing.T) {
	p := start(t, "--url", localURL(t), "run", "--on-lost", "exit 3", "reports", "--", "true")
	if e := p.event("hook"); !strings.Contains(e.Cause, "exit code is 3") {
		t.Errorf("%+v", e)
	}
	p.exits(0)
}

// Who did not lead has nothing to tidy up.
func TestHooksOfOneWhoDidNotLead(t *testing.T) {
	url, sign := localURL(t), filepath.Join(t.TempDir(), "sign")
	start(t, "--url", url, "run", "reports", "--", "sleep", "1000").event("started")
	start(t, "--url", url, "run", "--try", "--on-elected", "touch "+sign, "--on-lost", "touch "+sign, "reports", "--", "true").exits(ui.ExitTimeout)
	if _, err := os.Stat(sign); err == nil {
		t.Error("a hook has run")
	}
}
