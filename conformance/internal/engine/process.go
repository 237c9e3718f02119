package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/internal/history"
)

// A ProcessCandidate is a candidate in a process of its own, which runs [Stand].
type ProcessCandidate struct {
	t      *Trial
	ID     string
	cmd    *exec.Cmd
	in     io.WriteCloser
	ended  chan struct{} // closed when the process has ended
	killed atomic.Bool
}

// EnterProcess starts a candidate in a process of its own, and returns when it stands in
// line.
func (r *Race) EnterProcess(id string) *ProcessCandidate {
	t := r.t
	p := &ProcessCandidate{t: t, ID: id, cmd: t.Faults.Process(t.Name, id), ended: make(chan struct{})}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatalf("the standard input of %s: %v", id, err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("the standard output of %s: %v", id, err)
	}
	p.in = in
	complaint := new(bytes.Buffer)
	if p.cmd.Stderr == nil {
		p.cmd.Stderr = complaint
	}
	p.cmd.WaitDelay = t.Soon() // processes that it has started may hold its output open
	ownGroup(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("the harness could not start a process: %v", err)
	}
	t.Log(id, "is process %d", p.cmd.Process.Pid)
	joined := make(chan struct{})
	r.done.Add(1)
	t.spawn(func() {
		defer r.done.Done()
		defer context.AfterFunc(r.ctx, p.leave)()
		noted := p.follow(r, out, sync.OnceFunc(func() { close(joined) }))
		if noted != nil {
			_ = p.cmd.Process.Kill() // nobody reads its output from now on
		}
		err := errors.Join(noted, p.cmd.Wait())
		close(p.ended)
		if err != nil && !p.killed.Load() {
			t.fail(crashed(err), "the process of %s: %v\n%s", id, err, complaint)
		} else if r.ctx.Err() == nil && !p.killed.Load() {
			t.errorf("the process of %s has ended too early", id)
		}
	})
	Await(t, joined, t.Recovery(), id+" has not joined")
	return p
}

// crashed reports whether a process has ended by a panic, with Go's exit status for it, or with that of its race
// detector. Any other end may have come of a busy machine, on which no coordinator was found in time.
func crashed(err error) bool {
	exit := new(exec.ExitError)
	return errors.As(err, &exit) && (exit.ExitCode() == 2 || exit.ExitCode() == 66)
}

// follow copies the notes of the process into the history, until its output ends.
func (p *ProcessCandidate) follow(r *Race, out io.Reader, joined func()) error {
	var g *Term
	err := p.t.notes.Copy(out, time.Duration(p.t.began.UnixNano()), func(e history.Event) {
		p.t.Log(p.ID, "notes: %s, token %d %s", e.Kind, e.Token, e.Why)
		switch e.Kind {
		case history.Joined:
			joined()
		case history.Won:
			g = &Term{Who: p.ID, Token: e.Token, Resign: sync.OnceFunc(func() { p.tell("resign") })}
			r.began(g)
		case history.Ended, history.CheckFailed, history.Resigned:
			r.ended(g, nil)
		}
	})
	if g != nil {
		r.ended(g, nil)
	}
	return err
}

// tell gives the process a command; see [Stand]. It does nothing if the process has ended.
func (p *ProcessCandidate) tell(command string) { _, _ = io.WriteString(p.in, command+"\n") }

// leave tells the process to end, and kills it if it does not.
func (p *ProcessCandidate) leave() {
	p.in.Close()
	_ = proceed(p.cmd.Process) // the rule may have failed while it was stopped; proceed fails if it has ended
	end := time.NewTimer(p.t.Recovery())
	defer end.Stop()
	select {
	case <-p.ended:
	case <-end.C:
		p.t.errorf("%s has not ended %v after its standard input", p.ID, p.t.Recovery())
		_ = p.cmd.Process.Kill()
	}
}

// Kill kills the process, which leads with the term g.
func (p *ProcessCandidate) Kill(g *Term) {
	p.t.strike(p.ID, "killed", "SIGKILL")
	p.killed.Store(true)
	// As far as is known, it leads until it is killed, but not after that.
	p.t.notes.Note(history.Event{
		Kind: history.Ended, Election: p.t.Name, Candidate: p.ID, Token: g.Token, Why: "killed",
	})
	_ = p.cmd.Process.Kill()
	Await(p.t, p.ended, p.t.Soon(), p.ID+" has not ended after SIGKILL")
}

// Stop stops the process with SIGSTOP. resume continues it.
func (p *ProcessCandidate) Stop() (resume func()) {
	over := p.t.strike(p.ID, "stopped", "SIGSTOP")
	if err := halt(p.cmd.Process); err != nil {
		p.t.Fatalf("%s could not be stopped: %v", p.ID, err)
	}
	return p.t.heals(p.ID, "SIGSTOP", over, func(context.Context) error {
		_ = proceed(p.cmd.Process) // it fails if the process has ended
		return nil
	})
}

// Killed reports whether the process was killed.
func (p *ProcessCandidate) Killed() bool { return p.killed.Load() }

// Suspend makes the process behave as if its machine had been suspended for d.
func (p *ProcessCandidate) Suspend(d time.Duration) {
	p.t.strike(p.ID, "suspended", "was suspended for "+d.String())()
	p.tell("suspend " + d.String())
}
