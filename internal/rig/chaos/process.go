//go:build linux

package chaos

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process is a worker, a child that dies with this process.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{} // closed when it has ended and its output has been read
	err  error         // how it ended; to be read after done
}

// startProcess starts argv, in the environment of this process and env, with what it
// writes to standard error appended to the file log. Each line of its output goes to say.
func startProcess(argv, env []string, log string, say func(line []byte)) (*process, error) {
	stderr, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdout.Close()

	p := &process{cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		out.Close()
		return nil, err
	}
	started := make(chan error)
	go p.run(started, out, say)
	if err := <-started; err != nil {
		out.Close()
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return p, nil
}

// run starts the child and waits for it on one thread that does nothing else: Linux
// sends the parent-death signal when the thread that forked ends, not when the
// process does (prctl(2), PR_SET_PDEATHSIG).
func (p *process) run(started chan<- error, out *os.File, say func([]byte)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	var read sync.WaitGroup
	read.Go(func() {
		defer out.Close()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			say(lines.Bytes())
		}
	})
	started <- nil
	p.err = p.cmd.Wait()
	read.Wait()
	close(p.done)
}

// send gives the process a command; one that has ended takes none.
func (p *process) send(command string) { _, _ = io.WriteString(p.in, command+"\n") }

// pause returns when no thread of the process runs any more.
func (p *process) pause() error {
	if err := p.cmd.Process.Signal(unix.SIGSTOP); err != nil {
		return err
	}
	for {
		err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (p *process) resume() error { return p.cmd.Process.Signal(unix.SIGCONT) }

// kill ends the process as a crash does, and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // only one that has ended cannot be killed
	<-p.done
}

// quit asks the process to end in good order, and kills it when it does not within
// the limit.
func (p *process) quit(limit time.Duration) error {
	_ = p.in.Close()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-timer.C:
		p.kill()
		return fmt.Errorf("it had not ended %v after it was told to", limit)
	}
}
