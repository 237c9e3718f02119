//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	_ "github.com/succession-dev/succession/memory"
)

// asCommand makes the test binary be the command, so that tests start real
// processes of what was compiled with them.
const asCommand = "SUCCESSION_TEST_AS_COMMAND"

// inProcess says that a process may use a coordinator that it alone can see.
const inProcess = "SUCCESSION_TEST_IN_PROCESS"

// patience is how long a test waits for what must come.
const patience = time.Minute

func TestMain(m *testing.M) {
	connect.InProcess = os.Getenv(inProcess) != ""
	if os.Getenv(asCommand) != "" {
		main()
	}
	connect.InProcess = true
	os.Unsetenv("SUCCESSION_URL")
	// Under nohup(1), or in the background of a script, which is not for the processes of
	// the tests.
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	// The goroutine that waits for signals for ever begins here, and not in the virtual
	// time of the first test that has the command listen to them.
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	signal.Stop(c)
	coordtest.Main(m, 8)
}

// localURL is a coordinator of the test's own.
func localURL(t *testing.T) string {
	t.Helper()
	return "local:" + t.TempDir()
}

// A process is a running succession.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    chan string // lines of standard output; closed when nothing holds it open
	events chan event
	texts  chan string   // lines of the log that are no events
	stderr *bytes.Buffer // the same; it may be read when events is closed
}

// An event is a line of the log.
type event struct {
	Event, Election, ID, Cause, Behind, Signal, Address, URL, Hook string

	Time      time.Time
	Token     uint64
	PID, Code int
}

func command(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.WaitDelay = patience // where something that it has started holds its output open
	// With the race detector a process sleeps for a second before it exits.
	cmd.Env = append(os.Environ(), asCommand+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// start starts succession with args; the test ends it.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startCommand(t, command(args...))
}

func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, out: make(chan string, 1000), events: make(chan event, 1000), texts: make(chan string, 1000), stderr: new(bytes.Buffer)}
	// Pipes of our own: those of os/exec are closed by Wait, and we want to see
	// what survives the process.
	out, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	log, logW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = outW, logW
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	outW.Close()
	logW.Close()
	go func() {
		defer close(p.out)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.out <- s.Text()
		}
	}()
	go func() {
		defer close(p.events)
		for s := bufio.NewScanner(log); s.Scan(); {
			var e event
			if json.Unmarshal(s.Bytes(), &e) != nil {
				fmt.Fprintln(p.stderr, s.Text())
				p.texts <- s.Text()
				continue
			}
			p.events <- e
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		drain(t, p.out, out)
		drain(t, p.events, log)
	})
	return p
}

// drain reads c until it is closed, which it is when nothing can write to in any more, and
// closes in. It fails the test when that takes too long.
func drain[T any](t *testing.T, c <-chan T, in *os.File) {
	t.Helper()
	defer in.Close()
	for timeout := time.After(patience); ; {
		select {
		case _, ok := <-c:
			if !ok {
				return
			}
		case <-timeout:
			t.Errorf("succession was killed, and after %v something still holds its output open", patience)
			return
		}
	}
}

// line waits for the next line of output, which must be want.
func (p *process) line(want string) {
	p.t.Helper()
	if got, ok := p.next(); !ok || got != want {
		p.t.Fatalf("output %q (open: %v), want %q; the log goes on:\n%s", got, ok, want, p.goesOn())
	}
}

// goesOn returns what comes of the log until it ends, or there is nothing more for a while.
func (p *process) goesOn() string {
	var text strings.Builder
	for {
		select {
		case e, ok := <-p.events:
			if !ok {
				return text.String() + p.stderr.String()
			}
			fmt.Fprintf(&text, "%+v\n", e)
		case <-time.After(time.Second):
			return text.String()
		}
	}
}

func (p *process) next() (string, bool) {
	p.t.Helper()
	select {
	case s, ok := <-p.out:
		return s, ok
	case <-time.After(patience):
		p.t.Fatal("no output")
		return "", false
	}
}

// nothingLeft waits until nobody holds standard output open any more: neither
// succession, nor the command, nor anything that it started.
func (p *process) nothingLeft() {
	p.t.Helper()
	if s, ok := p.next(); ok {
		p.t.Fatalf("more output: %q", s)
	}
}

// event waits for the event with that name; those before it are passed over.
func (p *process) event(name string) event {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case e, ok := <-p.events:
			if !ok {
				p.t.Fatalf("ended without event %q; standard error: %s", name, p.stderr)
			}
			if e.Event == name {
				return e
			}
		case <-timeout:
			p.t.Fatalf("no event %q", name)
		}
	}
}

// says waits for a line of the log that is no event, with that text in it.
func (p *process) says(text string) {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case s := <-p.texts:
			if strings.Contains(s, text) {
				return
			}
		case <-timeout:
			p.t.Fatalf("standard error does not say %q", text)
		}
	}
}

// rest waits until the log ends and returns the names of the events left in it.
func (p *process) rest() []string {
	p.t.Helper()
	var names []string
	timeout := time.After(patience)
	for {
		select {
		case e, ok := <-p.events:
			if !ok {
				return names
			}
			names = append(names, e.Event)
		case <-timeout:
			p.t.Fatalf("the log does not end; so far %q", names)
		}
	}
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// exits waits for the end of succession, and compares its exit code.
func (p *process) exits(want int) {
	p.t.Helper()
	if got := waitCode(p.t, p.cmd); got != want {
		p.rest()
		p.t.Fatalf("exit code %d, want %d; standard error: %s", got, want, p.stderr)
	}
}

// waitCode waits for the end of cmd and returns its exit code. A process that does not
// end is killed, and the test fails.
func waitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	watchdog := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	if !watchdog.Stop() {
		t.Fatalf("%q had not ended after %v, and was killed", cmd.Args, patience)
	}
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		if ws := e.Sys().(syscall.WaitStatus); ws.Signaled() {
			return -int(ws.Signal())
		}
		return e.ExitCode()
	}
	if err != nil {
		t.Fatalf("%q: %v", cmd.Args, err)
	}
	return 0
}

// result runs succession to its end.
func result(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := command(args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return waitCode(t, cmd), out.String(), errs.String()
}

// here runs succession in this process.
func here(args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	code = execute(args, &out, &errs)
	return code, out.String(), errs.String()
}

// asNobody makes cmd run as a user without rights.
func asNobody(cmd *exec.Cmd) {
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}
