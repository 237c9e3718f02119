//go:build linux

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/local"
)

func TestRunExitCodes(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	orphan := filepath.Join(t.TempDir(), "orphan")
	if err := os.WriteFile(orphan, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	url := localURL(t)
	for _, tt := range []struct {
		name string
		args []string
		want int
		says string // on standard error
	}{
		{"success", []string{"reports", "--", "true"}, 0, `"resigned"`},
		{"the command's own", []string{"reports", "--", "sh", "-c", "exit 3"}, 3, `"code":3`},
		{"TERM", []string{"reports", "--", "sh", "-c", "kill -TERM $$"}, 143, "SIGTERM"},
		{"KILL", []string{"reports", "--", "sh", "-c", "kill -KILL $$"}, 137, "SIGKILL"},
		{"not found", []string{"reports", "--", "no-such-program"}, 127, "no-such-program: not found"},
		{"path not found", []string{"reports", "--", "/no/such/program"}, 127, "not found"},
		{"not executable", []string{"reports", "--", plain}, 126, "cannot be executed"},
		{"a folder", []string{"reports", "--", t.TempDir()}, 126, "cannot be executed"},
		{"interpreter not found", []string{"reports", "--", orphan}, 127, "interpreter"},
		{"no dashes", []string{"reports", "true"}, 125, `write "--" before the command`},
		{"no dashes, and flags", []string{"reports", "sh", "-c", "true"}, 125, `write "--" before the command`},
		{"no name", []string{"--", "true"}, 125, "want one NAME"},
		{"two names", []string{"a", "b", "--", "true"}, 125, "want one NAME"},
		{"no command", []string{"reports", "--"}, 125, "no command"},
		{"bad name", []string{"/reports", "--", "true"}, 125, "begins with a slash"},
		{"bad id", []string{"--id", "a\nb", "reports", "--", "true"}, 125, "one line"},
		{"bad scheme", []string{"--url", "nosuch:x", "reports", "--", "true"}, 125, "known are"},
		{"negative wait", []string{"--wait", "-1s", "reports", "--", "true"}, 125, "--wait"},
		{"negative grace", []string{"--grace", "-1s", "reports", "--", "true"}, 125, "--grace"},
		{"impossible grace", []string{"--url", "memory:grace?ttl=4s", "--grace", "3s", "reports", "--", "true"}, 125, "session of 4s"},
		{"negative history", []string{"--history", "-1", "reports", "--", "true"}, 125, "--history"},
		{"a failure by another code", []string{"-E", "failed=99", "--grace", "-1s", "reports", "--", "true"}, 99, "--grace"},
		{"of the command's own code", []string{"-E", "failed=99,lost=98,conflict=97", "reports", "--", "sh", "-c", "exit 125"}, 125, `"code":125`},
		{"impossible code", []string{"-E", "256", "reports", "--", "true"}, 125, "0 to 255"},
		{"unknown kind of code", []string{"-E", "won=1", "reports", "--", "true"}, 125, "conflict, lost and failed"},
		{"free, tried", []string{"--try", "reports", "--", "true"}, 0, `"resigned"`},
		{"free, not waited for", []string{"--wait", "0", "reports", "--", "true"}, 0, `"resigned"`},
		{"bad log", []string{"--log", "xml", "reports", "--", "true"}, 125, "text, json or off"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(inProcess, "yes") // for the grace time, which only a session time makes impossible
			code, _, stderr := result(t, append([]string{"--url", url, "run"}, tt.args...)...)
			if code != tt.want || !strings.Contains(stderr, tt.says) {
				t.Errorf("exit code %d, want %d; standard error %q, want %q in it", code, tt.want, stderr, tt.says)
			}
			if i := strings.LastIndex(stderr, `"event":"coordinator"`); i >= 0 { // the first message of who stands in line
				_, stderr, _ = strings.Cut(stderr[i:], "\n")
			}
			if tt.want == 125 && tt.says != `"code":125` && strings.Count(stderr, "\n") != 1 {
				t.Errorf("standard error %q is not one line", stderr)
			}
		})
	}
}

func TestRunExits124(t *testing.T) {
	t.Parallel()
	url := localURL(t)
	leader := start(t, "--url", url, "run", "--id", "web-1", "reports", "--", "sleep", "1000")
	leader.event("started")
	waiter := start(t, "--url", url, "run", "--wait", "8s", "reports", "--", "echo", "never")
	if e := waiter.event("waiting"); e.Behind != "web-1" {
		t.Errorf("waits behind %q, want web-1", e.Behind)
	}
	waiter.event("failed")
	waiter.exits(124)
	waiter.nothingLeft()
}

// Now or never, and by which exit code.
func TestRunTries(t *testing.T) {
	url := localURL(t)
	leader := start(t, "--url", url, "run", "--id", "web-1", "reports", "--", "sleep", "1000")
	leader.event("started")
	for _, tt := range []struct {
		flags []string
		want  int
	}{
		{[]string{"--try"}, 124}, {[]string{"-n", "-E", "9"}, 9}, {[]string{"--wait", "0"}, 124}, {[]string{"--wait=0s", "-E", "lost=8,conflict=7"}, 7},
		{[]string{"--wait", "500ms", "-E", "6"}, 6}, {[]string{"--try", "--wait", "1s"}, 125},
	} {
		code, stdout, stderr := result(t, slices.Concat([]string{"--url", url, "run"}, tt.flags, []string{"reports", "--", "echo", "never"})...)
		if code != tt.want || stdout != "" || tt.want != 125 && !strings.Contains(stderr, "not elected leader of") {
			t.Errorf("%q: exit code %d, want %d; output %q, standard error %q", tt.flags, code, tt.want, stdout, stderr)
		}
	}
	if _, stdout, _ := result(t, "--url", url, "line", "reports"); strings.Count(stdout, "\n") != 2 {
		t.Errorf("more than the leader stands in line:\n%s", stdout)
	}
}

// What was lost has the exit code that is asked for.
func TestRunLostByAnotherCode(t *testing.T) {
	url := localURL(t)
	p := start(t, "--url", url, "run", "-E", "lost=90", "reports", "--", "sleep", "1000")
	p.event("started")
	if code, stdout, stderr := result(t, "--url", url, "resign", "reports", "-o", "json"); code != 0 || !strings.HasPrefix(stdout, `{"resigned":{"id":"`) || !strings.HasSuffix(stdout, `,"next":null}`+"\n") {
		t.Errorf("resign: exit code %d, output %q, standard error %q", code, stdout, stderr)
	}
	p.exits(90)
}

// The first message says which coordinator is meant, without secrets.
func TestTheFirstMessageNamesTheCoordinator(t *testing.T) {
	url := localURL(t)
	if e := start(t, "--url", url, "run", "reports", "--", "true").event("coordinator"); e.URL != url {
		t.Errorf("the coordinator is %q, want %q", e.URL, url)
	}
	_, _, stderr := result(t, "--url", "etcd://127.0.0.1:1/?password=hunter2", "run", "--log", "text", "reports", "--", "true")
	if !strings.HasPrefix(stderr, `succession: this is "reports" on etcd://127.0.0.1:1/?password=redacted`+"\n") || strings.Contains(stderr, "hunter2") {
		t.Errorf("standard error %q", stderr)
	}
	_, _, stderr = result(t, "run", "--log", "text", "--try", coordtest.Name(t), "--", "true")
	if first, _, _ := strings.Cut(stderr, "\n"); !strings.Contains(first, "for this user of this machine alone (local:"+local.DefaultDir()+")") {
		t.Errorf("without a URL the first message is %q", first)
	}
}

func TestRunGivesTheCommandItsArgumentsAndEnvironment(t *testing.T) {
	cmd := command("--url", localURL(t), "run", "--id", "web-1", "reports", "--",
		"sh", "-c", `echo "$SUCCESSION_ELECTION $SUCCESSION_ID $SUCCESSION_TOKEN"; printf '<%s>' "$@"; echo`, "sh", "a b", "", "$HOME", "--", "-x")
	cmd.Env = append(cmd.Env, "SUCCESSION_ID=outer", "SUCCESSION_TOKEN=1") // as within another's command
	p := startCommand(t, cmd)
	token := p.event("elected").Token
	p.line("reports web-1 " + strconv.FormatUint(token, 10))
	p.line("<a b><><$HOME><--><-x>")
	p.exits(0)
}

func TestRunOrder(t *testing.T) {
	p := start(t, "--url", localURL(t), "run", "reports", "--", "true")
	p.exits(0)
	if got, want := p.rest(), []string{"coordinator", "elected", "started", "ended", "resigned"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestRunText(t *testing.T) {
	_, _, stderr := result(t, "--url", localURL(t), "run", "--log", "text", "reports", "--", "true")
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for i, want := range []string{
		`succession: this is "reports" on local:/`,
		`succession: elected leader of "reports", token `,
		"succession: started true (pid ",
		"succession: true ended with exit code 0",
		"succession: resigned, token ",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("standard error:\n%s\nline %d does not begin with %q", stderr, i+1, want)
		}
	}
	if code, _, stderr := result(t, "--url", localURL(t), "run", "--log", "off", "reports", "--", "true"); code != 0 || stderr != "" {
		t.Errorf("--log off: exit code %d, standard error %q", code, stderr)
	}
}

func TestWaitingLeavesTheLineOnSignals(t *testing.T) {
	url := localURL(t)
	leader := start(t, "--url", url, "run", "reports", "--", "sleep", "1000")
	leader.event("started")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(ui.SignalName(sig), func(t *testing.T) {
			waiter := start(t, "--url", url, "run", "reports", "--", "echo", "never")
			waiter.event("waiting")
			waiter.signal(syscall.SIGUSR1) // is for a command that does not run yet
			waiter.signal(sig)
			waiter.exits(128 + int(sig))
			waiter.nothingLeft()
			if _, stdout, _ := result(t, "--url", url, "line", "reports"); strings.Count(stdout, "\n") != 2 {
				t.Errorf("more than the leader stands in line:\n%s", stdout)
			}
		})
	}
}

// An interrupted candidate must not start its command even if it is elected at the
// same moment.
func TestNoCommandAfterAnInterrupt(t *testing.T) {
	url := localURL(t)
	for range 10 {
		leader := start(t, "--url", url, "run", "reports", "--", "sleep", "1000")
		leader.event("started")
		waiter := start(t, "--url", url, "run", "reports", "--", "echo", "never")
		waiter.event("waiting")
		waiter.signal(syscall.SIGTERM)
		waiter.event("interrupted") // it has heard, and perhaps not left the line yet
		leader.signal(syscall.SIGKILL)
		waiter.exits(143)
		waiter.nothingLeft()
		leader.nothingLeft()
	}
}

func TestSignalsAreForwarded(t *testing.T) {
	const script = `
		for s in INT TERM HUP QUIT USR1 USR2 WINCH; do trap "echo $s" $s; done
		echo ready
		while :; do sleep 1000 & wait; kill $!; done`
	p := start(t, "--url", localURL(t), "run", "reports", "--", "bash", "-c", script)
	p.line("ready")
	for _, s := range []struct {
		sig  syscall.Signal
		name string
	}{
		{syscall.SIGHUP, "HUP"}, {syscall.SIGQUIT, "QUIT"}, {syscall.SIGUSR1, "USR1"},
		{syscall.SIGUSR2, "USR2"}, {syscall.SIGWINCH, "WINCH"}, {syscall.SIGINT, "INT"},
	} {
		p.signal(s.sig)
		p.line(s.name)
	}
	// It has heard INT and goes on. The next one is not for it to decide.
	p.signal(syscall.SIGTERM)
	if e := p.event("killing"); e.Cause != "a second SIGTERM" {
		t.Errorf("cause %q", e.Cause)
	}
	p.exits(137)
	p.nothingLeft()
}

func TestForwardedSignalReachesTheWholeGroup(t *testing.T) {
	const script = `trap : USR1; sh -c 'trap "echo grandchild; exit" USR1; echo ready; while :; do sleep 0.01; done' & wait; wait; echo child`
	p := start(t, "--url", localURL(t), "run", "reports", "--", "sh", "-c", script)
	p.line("ready")
	p.signal(syscall.SIGUSR1)
	p.line("grandchild")
	p.line("child")
	p.exits(0)
}

func TestTheSecondTakesOverOnce(t *testing.T) {
	url := localURL(t)
	const script = `echo "run $SUCCESSION_TOKEN"; exec sleep 1000`
	first := start(t, "--url", url, "run", "--id", "web-1", "reports", "--", "sh", "-c", script)
	t1 := first.event("started").Token
	second := start(t, "--url", url, "run", "--id", "web-2", "reports", "--", "sh", "-c", script)
	second.event("waiting")
	third := start(t, "--url", url, "run", "--id", "web-3", "reports", "--", "sh", "-c", "echo third")
	third.event("waiting")
	first.signal(syscall.SIGTERM)
	first.exits(143)
	t2 := second.event("started").Token
	if t2 <= t1 {
		t.Errorf("the second's token is %d, the first's %d: tokens must grow", t2, t1)
	}
	second.line("run " + strconv.FormatUint(t2, 10))
	second.signal(syscall.SIGTERM)
	second.exits(143)
	if t3 := third.event("started").Token; t3 <= t2 {
		t.Errorf("the third's token is %d, the second's %d: tokens must grow", t3, t2)
	}
	third.exits(0)
	second.nothingLeft()
}

func TestNothingOutlivesAKilledSuccession(t *testing.T) {
	// A grandchild in the group, one that ignores what it can, and one in a session
	// of its own, all with our standard output.
	const script = `
		sh -c 'sleep 1000; :' &
		sh -c 'trap "" TERM HUP INT; sleep 1000; :' &
		setsid sh -c 'sleep 1000; :' &
		setsid sh -c 'setsid sleep 1000 & echo ready'
		wait`
	p := start(t, "--url", localURL(t), "run", "reports", "--", "sh", "-c", script)
	p.line("ready")
	begin := time.Now()
	p.signal(syscall.SIGKILL)
	p.nothingLeft()
	t.Logf("everything was gone %v after kill -9", time.Since(begin))
}

func TestTheCommandDoesNotOutliveItsGuard(t *testing.T) {
	p := start(t, "--url", localURL(t), "run", "reports", "--", "sh", "-c", "sh -c 'echo $PPID; sleep 1000; :'; :")
	p.event("started")
	pid, _ := p.next()
	guard, ok := parentOf(t, pid)
	if !ok || guard == p.cmd.Process.Pid {
		t.Fatalf("the parent of the command is %d, want a guard", guard)
	}
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := p.event("ended"); !strings.Contains(e.Cause, "guard") {
		t.Errorf("the command ended because of %q, which does not speak of the guard", e.Cause)
	}
	if e := p.event("failed"); !strings.Contains(e.Cause, "guard") {
		t.Errorf("cause %q does not speak of the guard", e.Cause)
	}
	p.exits(125)
	p.nothingLeft()
}

// Without a /proc that shows what the command starts, nobody could end that.
func TestRunNeedsItsOwnProc(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, flags, before, want string }{
		{"another namespace", "-rfp", "", "/proc, which is of another PID namespace; mount"},
		{"none", "-rm", "mount -t tmpfs none /proc && ", "/proc, which cannot be read; mount"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if out, err := exec.Command("unshare", tt.flags, "sh", "-c", tt.before+"true").CombinedOutput(); err != nil {
				t.Skipf("%v: %s", err, out)
			}
			cmd := command()
			cmd.Path, cmd.Args = "/usr/bin/unshare", []string{"unshare", tt.flags, "sh", "-c",
				tt.before + `exec "$0" "$@"`, self, "--url", localURL(t), "run", "--log", "text", "reports", "--", "echo", "ran"}
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != ui.ExitFailed || !strings.Contains(string(out), tt.want) || strings.Contains(string(out), "ran\n") {
				t.Errorf("exit code %d (%v), and it says\n%s\nwant %d and %q", code, err, out, ui.ExitFailed, tt.want)
			}
		})
	}
}

func parentOf(t *testing.T, pid string) (int, bool) {
	t.Helper()
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if s, ok := strings.CutPrefix(line, "PPid:"); ok {
			ppid, err := strconv.Atoi(strings.TrimSpace(s))
			return ppid, err == nil
		}
	}
	return 0, false
}

func TestWhatTheCommandLeavesBehindIsStoppedFirst(t *testing.T) {
	t.Parallel()
	url := localURL(t)
	const stops = `sh -c 'trap "echo stopped; exit" TERM; echo ready; while :; do sleep 0.01; done'`
	const deaf = `sh -c 'trap "echo deaf" TERM; echo ready; while :; do sleep 0.01; done'`
	byItself := func(_ *process, in io.Closer) { in.Close() }
	term := func(p *process, _ io.Closer) { p.signal(syscall.SIGTERM) }
	interrupt := func(p *process, _ io.Closer) { p.signal(syscall.SIGINT) }
	resign := func(p *process, _ io.Closer) {
		if code, _, stderr := result(p.t, "--url", url, "resign", "reports"); code != 0 {
			p.t.Errorf("resign: exit code %d, %s", code, stderr)
		}
	}
	for _, tt := range []struct {
		name, grace, left string
		end               func(*process, io.Closer)
		says              string
		code              int
		events            []string
	}{
		{"it stops at TERM", "1m", "setsid " + stops, byItself, "stopped", 3, []string{"ended", "resigned"}},
		{"it has to be killed", "3s", "setsid " + deaf, byItself, "deaf", 3, []string{"ended", "killing", "resigned"}},
		{"it stops with the command", "1m", "setsid " + stops, term, "stopped", 3, []string{"interrupted", "ended", "resigned"}},
		{"it stops at a loss", "1m", "setsid " + stops, resign, "stopped", ui.ExitLost, []string{"lost", "ended", "resigned"}},
		{"it has got INT alone", "1m", stops, interrupt, "stopped", 130, []string{"interrupted", "ended", "resigned"}},
		{"it was told with the command", "3s", deaf, term, "deaf", 3, []string{"interrupted", "ended", "killing", "resigned"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := command("--url", url, "run", "--grace", tt.grace, "reports", "--", "sh", "-c", `trap "exit 3" TERM; `+tt.left+` & read line; exit 3`)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			p := startCommand(t, cmd)
			p.event("started")
			p.line("ready")
			tt.end(p, in)
			p.line(tt.says)
			p.exits(tt.code)
			if got := p.rest(); !slices.Equal(got, tt.events) {
				t.Errorf("events %q, want %q", got, tt.events)
			}
			p.nothingLeft()
		})
	}
}

// A line of --ready that takes no signal is not waited for: the process says that it is not ready, and ends when it is asked to.
func TestReadyThatCannotBeKilled(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pid")
	cmd := command("--url", localURL(t), "run", "--ready", "echo $$ >"+file+"; exec setpriv --reuid=65534 --regid=65534 --clear-groups sleep 1000", "reports", "--", "true")
	cmd.Path = "/usr/bin/setpriv"
	cmd.Args = slices.Concat([]string{"setpriv", "--bounding-set=-kill", self}, cmd.Args[1:]) // as an ordinary user is
	p := startCommand(t, cmd)
	if e := p.event("not-ready"); !strings.Contains(e.Cause, "although it was killed") {
		t.Errorf("%+v, want why it is not ready", e)
	}
	p.signal(syscall.SIGTERM)
	p.exits(128 + int(syscall.SIGTERM))
	p.rest()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("it has ended: %v", err)
	}
}

// Whoever is not ready has not been elected, which scripts tell by the exit code. A conflict may have another one.
func TestTryWhileNotReady(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--try"}, {"--try", "-E", "7"}} {
		code, _, stderr := result(t, slices.Concat([]string{"--url", localURL(t), "run"}, args, []string{"--ready", "echo no disk; false", "reports", "--", "true"})...)
		want := ui.ExitTimeout
		if len(args) > 1 {
			want = 7
		}
		if code != want || !strings.Contains(stderr, "no disk") {
			t.Errorf("%q: exit code %d, want %d; %s", args, code, want, stderr)
		}
	}
}

// Whoever waits in a paused election is told so: who has paused it stands in front, and is no candidate.
func TestWaitingWhilePaused(t *testing.T) {
	t.Parallel()
	url := localURL(t)
	if code, _, stderr := result(t, "--url", url, "pause", "reports"); code != 0 {
		t.Fatalf("pause: exit code %d, %s", code, stderr)
	}
	p := start(t, "--url", url, "run", "reports", "--", "true")
	if e := p.event("waiting"); !strings.Contains(e.Cause, "paused") || e.Behind == "" {
		t.Errorf("%+v, want that somebody has paused the election", e)
	}
	p.signal(syscall.SIGTERM)
	p.exits(128 + int(syscall.SIGTERM))
	p.rest()
}

// A process that was not ready for its term leaves the others time to lead before it stands in line again.
func TestRestartPauses(t *testing.T) {
	t.Parallel()
	url, busy := localURL(t), filepath.Join(t.TempDir(), "busy")
	p := start(t, "--url", url, "run", "--restart", "--ready", "test ! -e "+busy, "reports", "--", "sh", "-c", "echo >"+busy+"; exec sleep 1000")
	p.event("started")
	next := start(t, "--url", url, "run", "reports", "--", "sleep", "1000")
	left := p.event("resigned")
	next.event("started")
	if again := p.event("waiting"); again.Time.Sub(left.Time) < time.Second {
		t.Errorf("it stands in line again after %v", again.Time.Sub(left.Time))
	}
	for _, p := range []*process{next, p} {
		p.signal(syscall.SIGTERM)
		p.rest()
	}
}

// A command that somebody has stopped holds up the line, which is said, and hears
// nevertheless that it is to end.
func TestAStoppedCommandHearsThatItIsToEnd(t *testing.T) {
	url := localURL(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(ui.SignalName(sig), func(t *testing.T) {
			p := start(t, "--url", url, "run", "reports", "--", "sh", "-c", "kill -STOP $$")
			if e := p.event("stopped"); e.Signal != "SIGSTOP" || e.PID == 0 {
				t.Errorf("%+v, want that the command was stopped by SIGSTOP", e)
			}
			p.signal(sig)
			p.exits(128 + int(sig))
		})
	}
}

// Sockets of a service manager and make's job server are descriptors that the command
// inherits; it gets no other.
func TestTheCommandInheritsDescriptors(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	const script = "cd /proc/$$/fd; readlink 3 4 5 6 7; ls; echo end"
	for _, files := range [][]*os.File{ // from 3 on
		nil, {null, null, null}, {null, nil, null}, {nil, nil, nil, nil, null},
	} {
		direct := exec.Command("sh", "-c", script)
		direct.ExtraFiles = files
		out, err := direct.Output()
		if err != nil {
			t.Fatal(err)
		}
		cmd := command("--url", localURL(t), "run", "reports", "--", "sh", "-c", script)
		cmd.ExtraFiles = files
		p := startCommand(t, cmd)
		for want := range strings.Lines(string(out)) {
			p.line(strings.TrimSpace(want))
		}
		p.exits(0)
	}
}

// To write the local time, package time opens the file of the time zone without
// close-on-exec, and here it reads until a pipe is closed. The command must not get that
// file. The test can miss a mistake, but never report one that is none.
func TestTheCommandInheritsNoTimeZone(t *testing.T) {
	for range 5 {
		fifo := filepath.Join(t.TempDir(), "zone")
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() {
			zone, err := os.OpenFile(fifo, os.O_WRONLY, 0) // blocks until it is opened for reading
			if err == nil {
				time.Sleep(100 * time.Millisecond) // time for a command that starts too early
				err = zone.Close()
			}
			closed <- err
		}()
		cmd := command("--url", localURL(t), "run", "reports", "--", "sh", "-c", "readlink /proc/$$/fd/*; echo end")
		cmd.Env = append(cmd.Env, "TZ="+fifo)
		p := startCommand(t, cmd)
		for line := ""; line != "end"; {
			if line, _ = p.next(); line == fifo {
				t.Error("the command has the file of the time zone open")
			}
		}
		p.exits(0)
		if err := <-closed; err != nil {
			t.Error(err)
		}
	}
}

// A command that becomes another user can take no signal. That is said, and nobody
// resigns as long as it runs.
func TestTheCommandBecomesAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	begin := func(t *testing.T) (*process, io.Closer) {
		cmd := command("--url", localURL(t), "run", "reports", "--",
			"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", "echo ready; read line; exit 3")
		cmd.Path = "/usr/bin/setpriv"
		cmd.Args = slices.Concat([]string{"setpriv", "--bounding-set=-kill", self}, cmd.Args[1:]) // as an ordinary user is
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		p := startCommand(t, cmd)
		p.line("ready")
		return p, in
	}
	t.Run("asked to end", func(t *testing.T) {
		p, in := begin(t)
		pid := p.event("started").PID
		p.signal(syscall.SIGTERM)
		if e := p.event("refused"); e.PID != pid || !strings.Contains(e.Cause, "another user") {
			t.Errorf("%+v, want that process %d is another user's", e, pid)
		}
		p.signal(syscall.SIGTERM)
		p.event("killing")
		p.waits("while the command runs")
		in.Close()
		p.exits(3)
		if got, want := p.rest(), []string{"ended", "resigned"}; !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
	t.Run("the guard is killed", func(t *testing.T) {
		p, in := begin(t)
		pid := p.event("started").PID
		out, err := exec.Command("ps", "-o", "ppid=", "-p", strconv.Itoa(pid)).Output()
		if err != nil {
			t.Fatal(err)
		}
		guard, err := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if e := p.event("refused"); e.PID != pid {
			t.Errorf("%+v, want that process %d takes no signal", e, pid)
		}
		p.waits("while the command runs")
		in.Close()
		p.exits(ui.ExitFailed)
		if got := p.rest(); slices.Contains(got, "refused") {
			t.Errorf("events %q, want that it is said once", got)
		}
	})
	t.Run("killed", func(t *testing.T) {
		p, in := begin(t)
		p.signal(syscall.SIGKILL)
		p.exits(-9)
		p.says("runs as another user") // the guard, which would find nothing if the command had ended
		in.Close()
		p.nothingLeft()
		p.rest()
	})
}
