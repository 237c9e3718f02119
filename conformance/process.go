package conformance

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

// A process is a candidate in a process of its own, which runs [Stand].
type process struct {
	t      *trial
	id     string
	cmd    *exec.Cmd
	in     io.WriteCloser
	ended  chan struct{} // closed when the process has ended
	killed atomic.Bool
}

// enterProcess starts a candidate in a process of its own, and returns when it stands
// in line.
func (s *story) enterProcess(id string) *process {
	t := s.t
	p := &process{t: t, id: id, cmd: t.h.Faults.Process(t.line, id), ended: make(chan struct{})}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.fatalf("the standard input of %s: %v", id, err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.fatalf("the standard output of %s: %v", id, err)
	}
	p.in = in
	complaint := new(bytes.Buffer)
	if p.cmd.Stderr == nil {
		p.cmd.Stderr = complaint
	}
	p.cmd.WaitDelay = t.h.soon() // for what it may have started
	ownGroup(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.fatalf("the harness could not start a process: %v", err)
	}
	t.log.add(id, "is process %d", p.cmd.Process.Pid)
	joined := make(chan struct{})
	s.done.Add(1)
	t.spawn(func() {
		defer s.done.Done()
		defer context.AfterFunc(s.ctx, p.leave)()
		noted := p.follow(s, out, sync.OnceFunc(func() { close(joined) }))
		if noted != nil {
			_ = p.cmd.Process.Kill() // nobody reads what it writes
		}
		err := errors.Join(noted, p.cmd.Wait())
		close(p.ended)
		if err != nil && !p.killed.Load() {
			t.errorf("the process of %s: %v\n%s", id, err, complaint)
		} else if s.ctx.Err() == nil && !p.killed.Load() {
			t.errorf("the process of %s has ended too early", id)
		}
	})
	await(t, joined, t.h.recovery(), id+" has not joined")
	return p
}

// follow takes over what the process notes, until its end.
func (p *process) follow(s *story, out io.Reader, joined func()) error {
	var g *reign
	err := p.t.notes.Copy(out, time.Duration(p.t.began.UnixNano()), func(e history.Event) {
		p.t.log.add(p.id, "notes: %s, token %d %s", e.Kind, e.Token, e.Why)
		switch e.Kind {
		case history.Joined:
			joined()
		case history.Won:
			g = &reign{who: p.id, token: e.Token, resign: sync.OnceFunc(func() { p.tell("resign") })}
			s.began(g)
		case history.Ended, history.CheckFailed, history.Resigned:
			s.ended(g, nil)
		}
	})
	if g != nil {
		s.ended(g, nil)
	}
	return err
}

// tell gives the process a command; see [Stand]. One that has ended hears nothing.
func (p *process) tell(command string) { _, _ = io.WriteString(p.in, command+"\n") }

// leave has the process end, by force where it does not.
func (p *process) leave() {
	p.in.Close()
	_ = proceed(p.cmd.Process) // a rule may fail while it is stopped; fails where it has ended
	end := time.NewTimer(p.t.h.recovery())
	defer end.Stop()
	select {
	case <-p.ended:
	case <-end.C:
		p.t.errorf("%s has not ended %v after its standard input", p.id, p.t.h.recovery())
		_ = p.cmd.Process.Kill()
	}
}

// kill kills the process, which leads with g.
func (p *process) kill(g *reign) {
	p.t.strikes(p.id, "killed", "SIGKILL")
	p.killed.Store(true)
	// It leads for all that anybody knows until it is killed, and then no more.
	p.t.notes.Note(history.Event{
		Kind: history.Ended, Election: p.t.line, Candidate: p.id, Token: g.token, Why: "killed",
	})
	_ = p.cmd.Process.Kill()
	await(p.t, p.ended, p.t.h.soon(), p.id+" has not ended after SIGKILL")
}

// stop stops the process.
func (p *process) stop() (resume func()) {
	over := p.t.strikes(p.id, "stopped", "SIGSTOP")
	if err := halt(p.cmd.Process); err != nil {
		p.t.fatalf("%s could not be stopped: %v", p.id, err)
	}
	return p.t.healing(p.id, over, func() { _ = proceed(p.cmd.Process) }) // fails where it has ended
}

// suspend has the process believe that its machine was suspended for d.
func (p *process) suspend(d time.Duration) {
	p.t.moment(p.id, "suspended", "was suspended for "+d.String())
	p.tell("suspend " + d.String())
}
