//go:build linux

package arena

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

// A Process is a child that dies with this process.
type Process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	Done chan struct{} // closed when it has ended and its output has been read
	Err  error         // how it ended; to be read after Done
}

// StartProcess starts argv, in the environment of this process and env, with what it
// writes to standard error appended to the file log. Each line of its output goes to say.
func StartProcess(argv, env []string, log string, say func(line []byte)) (*Process, error) {
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

	p := &Process{cmd: exec.Command(argv[0], argv[1:]...), Done: make(chan struct{})}
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
func (p *Process) run(started chan<- error, out *os.File, say func([]byte)) {
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
	p.Err = p.cmd.Wait()
	read.Wait()
	close(p.Done)
}

// send gives the process a command; one that has ended takes none.
func (p *Process) send(command string) { _, _ = io.WriteString(p.in, command+"\n") }

// pause returns when no thread of the process runs any more.
func (p *Process) pause() error {
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

func (p *Process) resume() error { return p.cmd.Process.Signal(unix.SIGCONT) }

// Kill ends the process as a crash does, and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // only one that has ended cannot be killed
	<-p.Done
}

// quit asks the process to end in good order, and kills it when it does not within
// the limit.
func (p *Process) quit(limit time.Duration) error {
	_ = p.in.Close()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.Done:
		return p.Err
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("it had not ended %v after it was told to", limit)
	}
}
