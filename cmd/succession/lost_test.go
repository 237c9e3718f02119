//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
)

// rivalElection is where the "rival" coordinator lets its rival stand.
const rivalElection = "reports"

// The URL rival:FOLDER?ttl=1s is a coordinator in the process itself. When "cut" or
// "expire" is written to FOLDER/act, a FIFO, it puts a rival in line behind the process,
// and cuts the process off or ends its session. The rival writes to FOLDER/log when it
// has been elected.
func init() {
	coordinator.Register(coordinator.Driver{Scheme: "rival", Open: func(u *coordinator.URL) (backend.Backend, error) {
		c := memory.New(&memory.Options{TTL: u.Duration("ttl", time.Second)})
		b := &rivalled{Backend: c.Client("us"), rival: c.Client("rival"), elected: make(chan error, 1)}
		go func() { b.elected <- b.campaign(u.Path) }()
		return b, u.Err()
	}})
}

type rivalled struct {
	*memory.Backend
	rival   *memory.Backend
	elected chan error
}

func (b *rivalled) campaign(folder string) error {
	act, err := os.ReadFile(filepath.Join(folder, "act"))
	if err != nil {
		return err
	}
	t, err := elect.New(b.rival, rivalElection, &elect.Options{Trace: func(ev trace.Event) {
		switch {
		case ev.Kind != trace.Waiting:
		case string(act) == "cut":
			b.Cut()
		case string(act) == "expire":
			b.Expire()
		}
	}}).Campaign(context.Background())
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(folder, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = fmt.Fprintln(log, "rival", t.Token())
	return err
}

// Close waits for the rival, so that it has its turn before the process ends.
func (b *rivalled) Close() error {
	if err := <-b.elected; err != nil {
		return err
	}
	b.rival.Close()
	b.Heal()
	return b.Backend.Close()
}

// strike runs script as the command of a leader, and does act to that once the script
// has said "ready".
func strike(t *testing.T, act string, ttl time.Duration, script string, flags ...string) (p *process, log string) {
	t.Helper()
	folder := t.TempDir()
	fifo := filepath.Join(folder, "act")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--url", fmt.Sprintf("rival:%s?ttl=%v", folder, ttl), "run"}, flags...)
	cmd := command(append(args, rivalElection, "--", "bash", "-c", script)...)
	log = filepath.Join(folder, "log")
	cmd.Env = append(cmd.Env, "LOG="+log)
	p = startCommand(t, cmd)
	p.line("ready")
	if err := os.WriteFile(fifo, []byte(act), 0); err != nil {
		t.Fatal(err)
	}
	return p, log
}

func readLines(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

func TestLossIsTermThenKillBeforeAnotherLeads(t *testing.T) {
	t.Parallel()
	// It does not mind TERM and writes all the time, from two processes.
	const script = `
		trap 'echo term >>$LOG' TERM
		work() { while :; do echo "$1" >>$LOG; sleep 0.005; done; }
		(trap '' TERM; work grandchild) &
		echo ready
		work child`
	p, log := strike(t, "cut", 10*time.Second, script, "--grace", "3s")
	p.exits(ui.ExitLost)
	if got, want := p.rest(), []string{"coordinator", "elected", "started", "lost", "killing", "ended", "resigned"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	p.nothingLeft()
	lines := readLines(t, log)
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "rival ") {
		t.Errorf("the last line of the log is %q: work went on after the rival was elected", last)
	}
	term := slices.Index(lines, "term")
	if term < 0 || !slices.Contains(lines[term:], "child") || !slices.Contains(lines[term:], "grandchild") {
		t.Errorf("there was no grace time between TERM (line %d) and KILL; the log has %d lines", term, len(lines))
	}
}

// A session that an operator has ended is over before its time: somebody else may lead.
func TestCommandDoesNotOutliveItsSession(t *testing.T) {
	p, _ := strike(t, "expire", time.Minute, `trap '' TERM; echo ready; while :; do sleep 0.005; done`, "--grace", "20s")
	if e := p.event("killing"); e.Cause != "the session is over" {
		t.Errorf("killed because %q", e.Cause)
	}
	p.event("lost")
	p.exits(ui.ExitLost)
	p.nothingLeft()
}

func TestLossStopsAWillingCommandWithTerm(t *testing.T) {
	t.Parallel()
	const script = `trap 'echo stopping; exit 5' TERM; echo ready; while :; do sleep 0.005; done`
	p, log := strike(t, "cut", 10*time.Second, script, "--grace", "4s")
	p.line("stopping")
	p.exits(ui.ExitLost) // not 5: the leadership is what the caller has to know of
	if got, want := p.rest(), []string{"coordinator", "elected", "started", "lost", "ended", "resigned"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if lines := readLines(t, log); len(lines) != 1 {
		t.Errorf("log %q, want the rival alone", lines)
	}
}

func TestLossReachesACommandThatStandsStill(t *testing.T) {
	t.Parallel()
	const script = `trap 'echo stopping; exit 5' TERM; echo ready; kill -STOP $$; while :; do sleep 0.005; done`
	p, _ := strike(t, "cut", 10*time.Second, script, "--grace", "4s")
	p.line("stopping")
	p.exits(ui.ExitLost)
}

func TestAskedToResign(t *testing.T) {
	url := localURL(t)
	const script = `trap 'echo stopping; exit 0' TERM; echo ready; while :; do sleep 0.005; done`
	p := start(t, "--url", url, "run", "--id", "web-1", "reports", "--", "sh", "-c", script)
	p.line("ready")
	token := p.event("started").Token
	code, stdout, stderr := result(t, "--url", url, "resign", "reports")
	if want := fmt.Sprintf("web-1 resigned (token %d); nobody leads\n", token); code != 0 || stdout != want {
		t.Errorf("resign: exit code %d, output %q, standard error %q; want %q", code, stdout, stderr, want)
	}
	p.line("stopping")
	if e := p.event("lost"); !strings.Contains(e.Cause, "asked to resign") {
		t.Errorf("cause %q", e.Cause)
	}
	p.exits(ui.ExitLost)
}

func TestRestartStandsInLineAgain(t *testing.T) {
	url := localURL(t)
	p := start(t, "--url", url, "run", "--restart", "reports", "--", "sh", "-c", "echo ready; exec sleep 1000")
	p.line("ready")
	first := p.event("started").Token
	if code, _, stderr := result(t, "--url", url, "resign", "reports"); code != 0 {
		t.Fatalf("resign: exit code %d: %s", code, stderr)
	}
	p.event("resigned")
	p.line("ready")
	if second := p.event("started").Token; second <= first {
		t.Errorf("token %d after %d", second, first)
	}
	p.signal(syscall.SIGTERM)
	p.exits(143)
}

// The member of a leader on local: is a file. An operator who removes it takes the
// leadership away.
func TestMemberRemovedByAnOperator(t *testing.T) {
	folder := t.TempDir()
	p := start(t, "--url", "local:"+folder, "run", "reports", "--", "sh", "-c", "echo ready; exec sleep 1000")
	p.line("ready")
	if out, err := exec.Command("sh", "-c", "rm "+folder+"/reports/@n_*").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.event("lost")
	p.exits(ui.ExitLost)
}

func TestAck(t *testing.T) {
	url := localURL(t)
	p := start(t, "--url", url, "run", "--ack", "--id", "web-1", "reports", "--", "sleep", "1000")
	w := start(t, "--url", url, "watch", "-o", "json", "reports")
	for {
		line, ok := w.next()
		if !ok {
			t.Fatal("watch ended")
		}
		if strings.Contains(line, `"event":"acknowledged"`) && strings.Contains(line, `"id":"web-1"`) {
			break
		}
	}
	p.signal(syscall.SIGTERM)
	p.exits(143)
	w.signal(syscall.SIGINT)
	w.exits(130)
}
