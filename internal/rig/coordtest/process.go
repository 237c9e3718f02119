package coordtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"syscall"
	"testing"
	"time"
)

// stopTimeout is how long a process may take to end after SIGTERM before it gets
// SIGKILL.
const stopTimeout = 5 * time.Second

// A process is a child that dies with this process. Its methods are safe for
// concurrent use.
type process struct {
	os    *os.Process
	forks bool          // it has children, and what is done to it is done to them
	done  chan struct{} // closed when the child has been waited for
	err   error         // how it ended; to be read after done
}

// startProcess starts the process of a server with its output appended to the file log; see startCommand.
func startProcess(spec spec, log string, at *port) (*process, error) {
	argv := spec.argv
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()

	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	if testing.Testing() {
		// A server that is mostly idle spends a tenth of its processor time on waking a second
		// thread. Programs that measure leave servers as they are.
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	}
	return startCommand(cmd, at, spec.own)
}

// startCommand starts a child in the network of at, or in that of this process where
// at is nil. own, if not nil, changes how it is started, and says that it has children.
func startCommand(cmd *exec.Cmd, at *port, own func(*exec.Cmd)) (*process, error) {
	cmd.SysProcAttr = dieWithParent()
	if own != nil {
		own(cmd)
	}
	p := &process{done: make(chan struct{}), forks: own != nil}
	started := make(chan error)
	go p.run(cmd, at, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// run starts the child and waits for it on one thread that does nothing else: see dieWithParent.
func (p *process) run(cmd *exec.Cmd, at *port, started chan<- error) {
	unlabel()
	runtime.LockOSThread()
	if at == nil {
		defer runtime.UnlockOSThread()
	} else if err := at.enter(); err != nil { // never unlocked: the thread ends in there
		started <- err
		return
	}
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	p.os = cmd.Process
	started <- nil
	p.err = cmd.Wait()
	close(p.done)
}

// unlabel takes the profiler's labels off the goroutine and those that it starts,
// which belongs to a coordinator and not to whoever happens to have started it: the
// conformance suite finds by them what its clients have left behind.
func unlabel() { pprof.SetGoroutineLabels(context.Background()) }

// alive reports whether the child has not been seen to end.
func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the child at once, also when it is paused, and returns when it is gone.
func (p *process) kill() {
	gone := func() {}
	if p.forks && p.alive() && p.os.Signal(sigPause) == nil && waitStopped(p.os.Pid) == nil {
		gone = killChildren(p.os.Pid) // there are no more of them
	}
	// The only possible failure is that it has ended already.
	_ = p.os.Kill()
	<-p.done
	gone()
}

// stop asks the child to end, and kills it when it does not.
func (p *process) stop() {
	_ = p.os.Signal(syscall.SIGTERM)
	_ = p.os.Signal(sigResume)
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.kill()
	}
}

var errNotRunning = errors.New("the process is not running")

// pause returns when no thread of the child runs any more.
func (p *process) pause() error {
	if err := p.os.Signal(sigPause); err != nil {
		return errors.Join(errNotRunning, err)
	}
	if err := waitStopped(p.os.Pid); err != nil || !p.forks {
		return err
	}
	return signalChildren(p.os.Pid, sigPause)
}

// resume lets a paused child go on; one that is not paused does not mind.
func (p *process) resume() error {
	if p.forks {
		if err := signalChildren(p.os.Pid, sigResume); err != nil {
			return err
		}
	}
	if err := p.os.Signal(sigResume); err != nil {
		return errors.Join(errNotRunning, err)
	}
	return nil
}
