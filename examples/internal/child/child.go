// Package child lets an example start, stop and kill processes of its own program.
package child

import (
	"context"
	"io"
	"os"
	"os/exec"
)

// A Process is one of them.
type Process struct {
	ID   string
	Args []string
	Out  *os.File // its standard output: one pipe for all keeps the order

	*os.Process // once it was started
	cmd         *exec.Cmd
	lives       io.Closer // the process ends when this is closed, and so also when its parent dies
}

// Start starts the process, also again after it has ended.
func (p *Process) Start() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p.cmd = exec.Command(program, p.Args...)
	p.cmd.Stdout, p.cmd.Stderr = p.Out, os.Stderr
	if p.lives, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.Process = p.cmd.Process
	return nil
}

// Stop asks the process to end, and waits for that.
func (p *Process) Stop() {
	p.lives.Close()
	p.cmd.Wait()
}

// Crash kills the process.
func (p *Process) Crash() {
	p.Process.Kill()
	p.cmd.Wait()
}

// Context returns a context for the process itself, which ends when it is asked to end.
func Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx, cancel
}

// URL returns url or, if that is empty, the URL of a temporary folder of this machine, which remove
// deletes.
func URL(url string) (_ string, remove func(), err error) {
	if url != "" {
		return url, func() {}, nil
	}
	folder, err := os.MkdirTemp("", "succession-example-")
	return "local:" + folder, func() { os.RemoveAll(folder) }, err
}
